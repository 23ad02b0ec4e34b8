/*
 * One random run of messages: all clients to all, over rings as small as may be and a fabric that
 * does anything it may, while links break, daemons die and come back, links are lost for good,
 * clients die, and clients take no events for a while. In the end every message has ended.
 * Everything follows from the seed. Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_MESSAGE_RUN_H
#define PWC_TESTS_ENGINE_MESSAGE_RUN_H

#include <stdint.h>
#include <stdio.h>

/* How often each thing has happened in all runs. */
struct message_counters {
    uint64_t messages, events, replies, busy, errors, spilled, starved, overtaken;
    uint64_t breaks, crashes, losses, deaths;
};

/* Makes one run, and adds to the counters. Returns NULL, or what went wrong, in `failure`. */
const char *message_run(uint64_t seed, FILE *trace, struct message_counters *counters,
                        char failure[400]);

#endif
