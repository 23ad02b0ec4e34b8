/*
 * Two contexts of one client, and a request of the first: the start of tests of requests.
 *
 * Thread: the test's; the daemon has its own.
 */
#ifndef PWC_TESTS_TWO_CONTEXTS_H
#define PWC_TESTS_TWO_CONTEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tests/clientlib/daemon/client_world.h"
#include "pwc/request.h"

enum { HANDLER = 3 }; /* index of the handler that b has registered */

/* `to_b` leads from a to b, with the world's region. */
struct two {
    struct world *w;
    pwc_ctx *a, *b;
    pwc_remote *to_b;
    pwc_request *request; /* a request of context a */
    unsigned handled;     /* messages, by b's handler */
};

/* With `pairs`, operations from a to b are direct, without the daemon. */
struct two *two_new(bool pairs);
void two_free(struct two *t);

/* Makes the daemon hold: no operation ends until this is called with false. */
void hold(struct two *t, bool hold);

/* The main function of a thread: waits until one of the contexts sleeps in a call, then lets the
 * daemon continue. */
void *let_go_of_sleeper(void *two);

/* Checks that no event of an operation is left, in the rings or among those that the library has
 * kept. */
void expect_no_event(struct two *t);

/* Waits for the request's end and checks it, also that a further test finds the same. */
struct pwc_status expect_end(pwc_request *r, int status, uint32_t count);

/* Returns a remote of context a. Its region was freed, so operations towards it fail with
 * -EKEYREJECTED. */
pwc_remote *stale_remote(struct two *t);

/* A put of `len` bytes from a to b, with the request `r`. */
int put_request(struct two *t, pwc_request *r, size_t len);

#endif
