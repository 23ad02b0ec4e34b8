/*
 * A rank that opens and closes contexts, memory and binds again and again. Its requests must
 * succeed; where its daemon may be killed, a context may also end with an unknown outcome
 * (-ECONNABORTED): the library repeats the other requests.
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
    _Atomic bool failed; /* the failure was printed on standard error */
};

int requester_start(struct requester *r, const char *socket, const char *job, bool may_abort);
/* Stops the thread. Returns whether all went well. */
bool requester_stop(struct requester *r);

#endif
