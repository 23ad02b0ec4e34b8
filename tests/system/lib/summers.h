/*
 * Ranks of two nodes that call allreduces and barriers, hundreds of them under way at once, and
 * check every sum. The last rank can be held, so that the others wait for it.
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
    SUMMERS = 4,         /* two on each node, so that calls use both areas and letters */
    SUMMERS_CALLS = 900, /* calls of a lap */
    SUMMERS_LONG = 1500  /* words of the lap's long call, which takes several letters */
};

struct summer {
    struct summers *all;
    struct rank rank;
    pwc_team *team;
    pwc_request *request;
    pthread_t thread;
    bool runs;
    bool failed; /* the failure was printed on standard error */
    uint64_t in[SUMMERS_CALLS + SUMMERS_LONG], out[SUMMERS_CALLS + SUMMERS_LONG];
};

struct summers {
    struct summer ranks[SUMMERS];
    pthread_mutex_t gate; /* the last rank locks and unlocks it before each lap */
    sem_t lap_over;       /* posted by the first rank */
    _Atomic bool stop;
    _Atomic uint64_t calls; /* calls of each rank that have ended */
};

/* Rank r is on node r % 2. */
int summers_start(struct summers *s, const char *job, const char *const sockets[2]);
/* Waits until a lap that begins now has ended. Returns whether it has ended within 30 seconds. */
bool summers_end_lap(struct summers *s);
/* Hold the last rank before its next lap, and release it. */
void summers_hold(struct summers *s);
void summers_release(struct summers *s);
/* Makes one more team of the same ranks, frees both teams, and stops. Returns whether all went
 * well. */
bool summers_stop(struct summers *s);

#endif
