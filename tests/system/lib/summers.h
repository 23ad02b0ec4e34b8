/*
 * Ranks of two nodes that call allreduces and barriers, hundreds under way at once, and check every
 * sum. One of them can be held, so that the others wait for it.
 *
 * Thread: one of its own for each rank, from start to stop.
 */
#ifndef PWC_TESTS_SYSTEM_SUMMERS_H
#define PWC_TESTS_SYSTEM_SUMMERS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "pwc/collective.h"
#include "tests/lib/rank.h"

enum {
    SUMMERS = 4,         /* two on each node, so that areas and letters both matter */
    SUMMERS_CALLS = 900, /* of a lap */
    SUMMERS_LONG = 1500  /* words of the lap's one call in several letters */
};

struct summer {
    struct summers *all;
    struct rank rank;
    pwc_team *team;
    pwc_request *request;
    pthread_t thread;
    bool runs;
    bool failed; /* and has been printed on standard error */
    uint64_t in[SUMMERS_CALLS + SUMMERS_LONG], out[SUMMERS_CALLS + SUMMERS_LONG];
};

struct summers {
    struct summer ranks[SUMMERS];
    pthread_mutex_t gate; /* passed by the last rank before each lap */
    sem_t lap_over;       /* posted by the first rank */
    _Atomic bool stop;
    _Atomic uint64_t calls; /* calls of each rank that have ended */
};

/* Rank r is on node r % 2. */
int summers_start(struct summers *s, const char *job, const char *const sockets[2]);
/* Waits until a lap that begins now has ended. Returns whether it has ended within 30 seconds. */
bool summers_end_lap(struct summers *s);
/* Keep the last rank from its next lap, and let it go. */
void summers_hold(struct summers *s);
void summers_release(struct summers *s);
/* Makes a team of the same ranks, and frees both. Whether all went well. */
bool summers_stop(struct summers *s);

#endif
