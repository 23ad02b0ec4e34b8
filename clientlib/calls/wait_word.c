/*
 * Waiting for a word of memory: polls it, then sleeps by the session's event bell, which rings for
 * signals, atomics and events of this context. The bell is armed before the last look at the word,
 * so no change that rings is missed. Other changes are found by looking again.
 *
 * Thread: the one that owns the context.
 */
#include "pwc/signal.h"

#include <errno.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/calls/wait.h"
#include "clientlib/teams/teams.h"
#include "shm_ring/doorbell.h"

enum {
    LOOK_NS = 1000000, /* between two looks of a sleeper: not every change rings the bell */
};

/* The condition of one wait. */
struct until {
    const uint64_t *word;
    enum pwc_compare compare;
    uint64_t value;
};

/* After this look, everything that the writer of the word stored before it is visible. */
static bool holds(const struct until *u)
{
    uint64_t now = __atomic_load_n(u->word, __ATOMIC_ACQUIRE);

    switch (u->compare) {
    case PWC_EQ:
        return now == u->value;
    case PWC_NE:
        return now != u->value;
    case PWC_GT:
        return now > u->value;
    case PWC_GE:
        return now >= u->value;
    case PWC_LT:
        return now < u->value;
    case PWC_LE:
        return now <= u->value;
    }
    return false;
}

static bool holds_soon(const struct pwc_ctx *ctx, const struct until *u)
{
    bool yes = false;

    for (unsigned spins = wait_spins(ctx); spins > 0 && !yes; spins--)
        yes = holds(u);
    return yes;
}

/* Does the work of this context that others may wait for. Returns 0, or the error that makes
 * waiting useless. */
static int progress(struct pwc_ctx *ctx)
{
    int rc = wait_collect(ctx, 0);

    return rc == 0 ? channel_state(&ctx->channel) : rc;
}

/* Yields, or sleeps until the bell rings or it is time to look again. Only messages keep it awake:
 * events stay for probes. */
static void pause_until(struct pwc_ctx *ctx, const struct until *u, int64_t now, int64_t deadline)
{
    int64_t look = deadline - now < LOOK_NS ? deadline : now + LOOK_NS;

    if (wait_yield(ctx, now) || wait_arm_sleep(ctx, PWC_MESSAGE) != 0)
        return;
    if (holds(u))
        wait_disarm(ctx);
    else
        wait_sleep(ctx, now, look);
}

static __attribute__((noinline)) int wait_until(struct pwc_ctx *ctx, const struct until *u,
                                                int timeout_ms)
{
    int64_t deadline = deadline_after_ms(timeout_ms);
    int64_t now = clock_now();
    int rc;

    patience_worked(&ctx->patience, (uint64_t)now);
    while (!holds_soon(ctx, u)) {
        rc = progress(ctx);
        if (rc < 0)
            return holds(u) ? 1 : rc;
        if (now >= deadline)
            return 0;
        pause_until(ctx, u, now, deadline);
        now = clock_now();
    }
    return 1;
}

int pwc_wait_word(pwc_ctx *ctx, const uint64_t *word, enum pwc_compare compare, uint64_t value,
                  int timeout_ms)
{
    const struct until u = {word, compare, value};
    int rc = client_may_block(ctx->client);

    if (rc < 0)
        return rc;
    if ((unsigned)compare > PWC_LE || (uintptr_t)word % sizeof(*word) != 0)
        return -EINVAL;
    if (holds_soon(ctx, &u))
        return 1;
    wait_begin(ctx, SESSION_WAITS_EVENT);
    rc = wait_until(ctx, &u, timeout_ms);
    wait_end(ctx);
    return rc;
}
