/*
 * One random run of messages: all clients to all, over rings as small as may be and a fabric that
 * does anything it may, while links break, daemons die and come back, links are lost for good,
 * clients die, and clients do not probe for a while. It always drains. All of it follows from the
 * seed. Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_MESSAGE_RUN_H
#define PWC_TESTS_ENGINE_MESSAGE_RUN_H

#include <stdint.h>
#include <stdio.h>

/* Counts of what happened, over all runs. */
struct message_counters {
    uint64_t messages, events, replies, busy, errors, spilled, starved, overtaken;
    uint64_t breaks, crashes, losses, deaths;
};

/* NULL, or what went wrong, in `failure`. Adds to the counters. */
const char *message_run(uint64_t seed, FILE *trace, struct message_counters *counters,
                        char failure[400]);

#endif
