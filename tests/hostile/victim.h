/*
 * The well-behaved neighbour of a hostile client: one rank of its job, which puts to it, reads
 * the events that come from it, and checks that what it puts to itself comes back whole.
 *
 * Thread: one of its own, from start to stop.
 */
#ifndef PWC_TESTS_HOSTILE_VICTIM_H
#define PWC_TESTS_HOSTILE_VICTIM_H

#include <pthread.h>
#include <stdbool.h>
#include "tests/hostile/hostile.h"
#include "tests/lib/rank.h"

struct victim {
    struct rank rank;    /* its own region, which the other's key names */
    pwc_region *own;     /* nobody else knows its key */
    pwc_remote *to_self; /* that region */
    struct board *board;
    pthread_t thread;
    uint64_t rounds; /* that went well */
    uint64_t events; /* that the other wrote */
    bool failed;
};

/* Attaches as rank 0 of 2, and publishes its key on the board. */
int victim_start(struct victim *v, const struct cluster_node *node, const char *job,
                 struct board *board);
/* Ends the victim; the board must say stop before. Returns whether all went well. */
bool victim_stop(struct victim *v);

#endif
