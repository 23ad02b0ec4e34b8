/*
 * Two contexts of one client, for tests that run on both paths: through the daemon on a thread, and
 * without it. Thread: the test's.
 */
#ifndef PWC_TESTS_CLIENTLIB_CLIENT_PATH_H
#define PWC_TESTS_CLIENTLIB_CLIENT_PATH_H

#include <stdbool.h>
#include <stdint.h>
#include "tests/clientlib/daemon/client_world.h"

/* Context a is bound to context b, with the region that both see. */
struct path {
    struct world *w;
    pwc_ctx *a, *b;
    pwc_remote *to_b;
    uint64_t *words; /* the region */
    bool direct;
};

/* Runs a test on each path, in a world of its own. */
void on_both(void (*test)(struct path *p));
/* Another remote of a that leads to b. */
pwc_remote *bind_to_b(struct path *p, const pwc_region *region);
/* Takes the next event of a context, which has no long id, and checks it. */
void expect_op(pwc_ctx *ctx, unsigned kind, int op, uint64_t id, int status, uint64_t length);
/* Flushes, and checks that no event is left. */
void expect_nothing(pwc_ctx *ctx);
/* Checks that the daemon has carried out operations since then, or none on the direct path. */
void check_path(struct path *p, unsigned executed_before);

#endif
