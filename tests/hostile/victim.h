/*
 * The honest neighbour of a hostile client: a rank of the same job, which puts to the hostile
 * client, reads the events that this causes, and checks that its puts to itself arrive whole.
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
    struct rank rank;    /* with a region whose key the hostile client gets */
    pwc_region *own;     /* a region whose key no other rank knows */
    pwc_remote *to_self; /* remote of `own` */
    struct board *board;
    pthread_t thread;
    uint64_t rounds; /* rounds that succeeded */
    uint64_t events; /* events that the hostile client has caused */
    bool failed;
};

/* Attaches as rank 0 of 2, and publishes the key of its region on the board. */
int victim_start(struct victim *v, const struct cluster_node *node, const char *job,
                 struct board *board);
/* Ends the victim, after the board's `stop` was set. Returns whether all went well. */
bool victim_stop(struct victim *v);

#endif
