/*
 * Counters of a context (pwc/counter.h): adds up their parts, and waits for a sum.
 *
 *     session_shared.counts       the daemon writes        ended  failed  arrived
 *     session_shared.client       this library writes      ended  failed  arrived, by pairs that
 *                                                                    ^    are gone
 *     pair_counts of each pair    its origin writes                  |    arrived
 *                                                                    +----- when the pair goes
 *
 * Each word has one writer and only grows. One thread reads the words, and adds the count of a pair
 * that is going to `client`, so the sum never falls. Letter P of shm_ring/counts.h puts data before
 * its count.
 *
 * A sleeper arms the bells of session and pairs as every wait does, then looks at the sum again. An
 * arrival without an event rings a bell only where the sleeper has set `awaited`.
 *
 * Thread: the one that owns the context.
 */
#include "pwc/counter.h"

#include <errno.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/attach/wake_socket.h"
#include "clientlib/calls/wait.h"
#include "clientlib/teams/teams.h"
#include "shm_ring/counts.h"
#include "shm_ring/doorbell.h"

enum {
    LOOK_NS = 1000000, /* between two looks of a sleeper whose wake-ups of neighbours are still
                          due */
};

/* The condition of one wait. */
struct until {
    enum pwc_counter which;
    uint64_t threshold;
};

static bool is_counter(enum pwc_counter which)
{
    return (unsigned)which <= PWC_COUNT_ARRIVED;
}

static uint64_t sum_of(struct pwc_ctx *ctx, enum pwc_counter which)
{
    const struct session_shared *shared = ctx->channel.shared;

    switch (which) {
    case PWC_COUNT_ENDED:
        return count_look(&shared->counts.ended) + count_look(&shared->client.counts.ended);
    case PWC_COUNT_FAILED:
        return count_look(&shared->counts.failed) + count_look(&shared->client.counts.failed);
    case PWC_COUNT_ARRIVED:
        return count_look(&shared->counts.arrived) + count_look(&shared->client.counts.arrived) +
               neighbours_arrived(&ctx->channel.neighbours);
    }
    return 0;
}

/* Whether local events must be collected, because the library counts operations by their events. */
static bool counts_by_events(const struct pwc_ctx *ctx, enum pwc_counter which)
{
    const struct channel *ch = &ctx->channel;

    return which != PWC_COUNT_ARRIVED && (ch->pending.busy > 0 || ch->requests.chunk_count > 0);
}

int pwc_counter_read(pwc_ctx *ctx, enum pwc_counter which, uint64_t *out)
{
    int rc;

    if (client_is_forked(ctx->client))
        return -EOWNERDEAD;
    if (!is_counter(which))
        return -EINVAL;
    /* Inside a handler a neighbour's ring is being read, so the list of neighbours must not
     * change. */
    if (neighbours_have_changed(ctx) && client_may_block(ctx->client) == 0)
        neighbours_update_beside_poll(ctx);
    rc = counts_by_events(ctx, which) ? channel_collect(&ctx->channel) : 0;
    if (rc >= 0 || rc == -ENOBUFS)
        rc = channel_state(&ctx->channel);
    if (rc < 0)
        return rc;
    *out = sum_of(ctx, which);
    return 0;
}

/* ---- waiting -------------------------------------------------------------------------------- */

static bool holds(struct pwc_ctx *ctx, const struct until *u)
{
    return sum_of(ctx, u->which) >= u->threshold;
}

static bool holds_soon(struct pwc_ctx *ctx, const struct until *u)
{
    bool yes = false;

    for (unsigned spins = wait_spins(ctx); spins > 0 && !yes; spins--)
        yes = holds(ctx, u);
    return yes;
}

static unsigned kinds_of(const struct pwc_ctx *ctx, const struct until *u)
{
    return counts_by_events(ctx, u->which) ? PWC_LOCAL | PWC_MESSAGE : PWC_MESSAGE;
}

/* Does the work of this context that others may wait for. Returns 0, or the error that makes
 * waiting useless. */
static int progress(struct pwc_ctx *ctx, const struct until *u)
{
    int rc = wait_collect(ctx, kinds_of(ctx, u));

    return rc == 0 ? channel_state(&ctx->channel) : rc;
}

/* Sets whether arrivals without an event ring a bell from now on. */
static void await_counts(struct pwc_ctx *ctx, bool awaited)
{
    struct neighbours *n = &ctx->channel.neighbours;

    if (n->counts_awaited == awaited)
        return;
    neighbours_await_counts(n, awaited);
    atomic_store_explicit(&ctx->channel.shared->client.awaited, awaited,
                          memory_order_relaxed); /* C */
}

static void pause_until(struct pwc_ctx *ctx, const struct until *u, int64_t now, int64_t deadline)
{
    bool owes = ctx->channel.neighbours.wakes_due;
    int64_t look = owes && deadline - now > LOOK_NS ? now + LOOK_NS : deadline;

    if (wait_yield(ctx, now))
        return;
    await_counts(ctx, u->which == PWC_COUNT_ARRIVED);
    if (wait_arm_sleep(ctx, kinds_of(ctx, u)) != 0)
        return;
    if (holds(ctx, u))
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
        rc = progress(ctx, u);
        if (holds(ctx, u))
            return 0;
        if (rc < 0)
            return rc;
        if (now >= deadline)
            return -ETIMEDOUT;
        pause_until(ctx, u, now, deadline);
        now = clock_now();
    }
    return 0;
}

int pwc_counter_wait(pwc_ctx *ctx, enum pwc_counter which, uint64_t threshold, int timeout_ms)
{
    const struct until u = {which, threshold};
    int rc = client_may_block(ctx->client);

    if (rc < 0)
        return rc;
    if (!is_counter(which))
        return -EINVAL;
    if (holds_soon(ctx, &u))
        return 0;
    wait_begin(ctx, SESSION_WAITS_EVENT);
    rc = wait_until(ctx, &u, timeout_ms);
    await_counts(ctx, false);
    wait_end(ctx);
    return rc;
}
