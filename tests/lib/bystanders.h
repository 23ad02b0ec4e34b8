/*
 * Two ranks on two nodes that put to each other in turn, check every event and byte, and must not
 * be affected by what happens to other clients.
 *
 * Thread: one of their own, from start to stop.
 */
#ifndef PWC_TESTS_LIB_BYSTANDERS_H
#define PWC_TESTS_LIB_BYSTANDERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"

struct bystanders {
    struct rank ranks[2];
    pthread_t thread;
    bool runs;
    _Atomic uint64_t rounds; /* rounds that went well */
    _Atomic bool stop;
    _Atomic bool failed; /* the failure was printed on standard error */
};

/* Starts ranks 0 and 1 of a job, on nodes 0 and 1. */
int bystanders_start(struct bystanders *b, const struct cluster *cluster, const char *job);
/* Starts both ranks of a job on one node. */
int bystanders_start_on(struct bystanders *b, const char *socket, const char *job);
/* Waits until puts of each length, in each direction, have succeeded once more; returns false when
 * one has failed. */
bool bystanders_go_on(const struct bystanders *b);
/* Ends both ranks. Returns whether all went well. */
bool bystanders_stop(struct bystanders *b);

#endif
