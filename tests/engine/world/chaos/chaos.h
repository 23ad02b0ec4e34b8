/*
 * One random run: a few nodes with clients that do everything at random over a fabric that does
 * anything it may, while links break, daemons die and come back, clients die, and hostile clients
 * throw bytes at their daemon. Everything follows from the seed.
 *
 * Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_CHAOS_H
#define PWC_TESTS_ENGINE_CHAOS_H

#include <stdint.h>
#include <stdio.h>

/* How often each thing has happened in all runs. */
struct chaos_counters {
    uint64_t operations, signals, events, errors, rounds;
    uint64_t breaks, cuts, blackouts, silences, asks, losses, crashes, states_lost, deaths,
        quarantines, spills, starved, grown;
    uint64_t overtaken, striped, atomics;
    uint64_t contexts_opened, contexts_closed, withdrawals, unbinds, flushes;
};

/* Makes one run, and adds to the counters. Returns NULL, or what went wrong, in `failure`. */
const char *chaos_run(uint64_t seed, FILE *trace, struct chaos_counters *counters,
                      char failure[400]);

#endif
