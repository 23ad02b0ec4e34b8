/*
 * A rank that opens and closes contexts, memory and binds, over and over. Its requests succeed, or,
 * where its daemon may be killed, their outcome is unknown.
 *
 * Thread: one of its own, from start to stop.
 */
#ifndef PWC_TESTS_SYSTEM_REQUESTER_H
#define PWC_TESTS_SYSTEM_REQUESTER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "tests/lib/rank.h"

struct requester {
    struct rank rank;
    struct pwc_key key;
    pthread_t thread;
    bool runs;
    bool may_abort;
    _Atomic uint64_t rounds, aborted;
    _Atomic bool stop;
    _Atomic bool failed; /* and has been printed on standard error */
};

int requester_start(struct requester *r, const char *socket, const char *job, bool may_abort);
/* Whether all went well. */
bool requester_stop(struct requester *r);

#endif
