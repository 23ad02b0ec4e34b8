/*
 * Owns nothing: yields, sleeps and looks whether the daemon lives. A sleep ends by the session's
 * event bell (a futex). The hang-up of a daemon that died rings no bell, so the wake socket is
 * polled for it after each whole nap. Thread: the one that owns the context.
 */
#include "clientlib/calls/wait.h"

#include <poll.h>
#include <sched.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/attach/wake.h"
#include "clientlib/attach/wake_socket.h"
#include "clientlib/teams/teams.h"
#include "shm_ring/doorbell.h"

enum {
    HEALTH_NS = 1000000000, /* between two looks whether the daemon lives */
    HELD_NS = 1000000,      /* no bell rings for room for the reply to a request that waits */
    NAP_NS = 1000000,       /* nor for room in the submission ring */
    WAKES_NS = 100000000,
};

static bool daemon_hung_up(struct pwc_ctx *ctx)
{
    struct pollfd wake = {.fd = ctx->wake_fd, .events = POLLRDHUP};

    return poll(&wake, 1, 0) > 0 && (wake.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

int wait_arm(struct pwc_ctx *ctx, uint32_t mode, unsigned kinds)
{
    int rc = channel_arm(&ctx->channel, mode, kinds);

    if (rc == 0 && neighbours_have_changed(ctx)) {
        channel_disarm(&ctx->channel);
        rc = 1;
    }
    if (rc == 0 && teams_arm(ctx) == 1) {
        channel_disarm(&ctx->channel);
        rc = 1;
    }
    return rc;
}

void wait_sleep(struct pwc_ctx *ctx, int64_t now, int64_t deadline)
{
    int64_t longest = channel_holds_request(&ctx->channel) ? HELD_NS : HEALTH_NS;
    int64_t left = deadline - now;
    int64_t nap = left < longest ? left : longest;

    if (doorbell_sleep(&ctx->channel.shared->event_bell, nap) != -ETIMEDOUT) {
        patience_worked(&ctx->patience, (uint64_t)clock_now());
    } else if (now + nap >= ctx->health_at) {
        if (daemon_hung_up(ctx))
            channel_end(&ctx->channel, -ESHUTDOWN);
        ctx->health_at = now + nap + HEALTH_NS;
    }
    channel_disarm(&ctx->channel);
    teams_disarm(ctx);
}

bool wait_yield(struct pwc_ctx *ctx, int64_t now)
{
    if (patience_next(&ctx->patience, (uint64_t)now, UINT64_MAX) != PATIENCE_YIELD)
        return false;
    sched_yield();
    patience_yielded(&ctx->patience, (uint64_t)now, (uint64_t)clock_now());
    return true;
}

void wait_pause(struct pwc_ctx *ctx, unsigned kinds, int64_t now, int64_t deadline)
{
    if (!wait_yield(ctx, now) && now < deadline && wait_arm(ctx, DOORBELL_FUTEX, kinds) == 0)
        wait_sleep(ctx, now, deadline);
}

int wait_collect(struct pwc_ctx *ctx, unsigned kinds)
{
    int rc;

    teams_progress(ctx);
    rc = kinds & PWC_LOCAL ? channel_collect(&ctx->channel) : 0;

    if (rc >= 0)
        rc = channel_run(&ctx->channel);
    if (ctx->channel.neighbours.wakes_due)
        wake_retry(ctx);
    return rc;
}

void wait_for_due_wakes(struct pwc_ctx *ctx)
{
    const struct channel *ch = &ctx->channel;
    int64_t now = clock_now(), limit = now + WAKES_NS;

    for (; ch->neighbours.wakes_due && !ch->submit.open && now < limit; now = clock_now()) {
        wake_retry(ctx);
        if (channel_state(ch) < 0)
            return;
        if (ch->neighbours.wakes_due)
            wait_pause(ctx, PWC_LOCAL, now, now + NAP_NS);
    }
}
