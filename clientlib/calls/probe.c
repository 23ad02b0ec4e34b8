/*
 * Probe, wait, and the descriptor that becomes readable.
 *
 * Two ways to be woken: in pwc_wait by a futex on the session's event bell; through pwc_fd by a
 * byte on the wake socket, which an empty probe arms once pwc_fd has been called. The wake socket
 * also hangs up when the daemon dies, which no bell tells.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include "clientlib/attach/context.h"
#include "clientlib/attach/deadline.h"
#include "shm_ring/doorbell.h"

enum {
    KINDS_ALL = PWC_LOCAL | PWC_REMOTE | PWC_MESSAGE,
    HEALTH_NS = 1000000000, /* look after the daemon's health so often */
    NEIGHBOUR_PROBES = 100, /* between two yields: about a microsecond */
    HELD_NS = 1000000,      /* room for the reply to a request that waits is told by no bell */
};

static bool daemon_hung_up(struct pwc_ctx *ctx)
{
    struct pollfd wake = {.fd = ctx->wake_fd, .events = POLLRDHUP};

    return poll(&wake, 1, 0) > 0 && (wake.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

/* As channel_arm; what the daemon tells of neighbours is worth a probe too, also where it was told
 * before we could be rung. */
static int arm(struct pwc_ctx *ctx, uint32_t mode, unsigned kinds)
{
    int rc = channel_arm(&ctx->channel, mode, kinds);

    if (rc == 0 && context_neighbours_told(ctx)) {
        channel_disarm(&ctx->channel);
        rc = 1;
    }
    return rc;
}

static void sleep_until_rung(struct pwc_ctx *ctx, unsigned kinds, int64_t now, int64_t deadline)
{
    int64_t longest = channel_holds_request(&ctx->channel) ? HELD_NS : HEALTH_NS;
    int64_t left = deadline - now;
    int64_t nap = left < longest ? left : longest;

    if (nap <= 0 || arm(ctx, DOORBELL_FUTEX, kinds) != 0)
        return;
    if (doorbell_sleep(&ctx->channel.shared->event_bell, nap) != -ETIMEDOUT) {
        patience_worked(&ctx->patience, (uint64_t)clock_now());
    } else if (now + nap >= ctx->health_at) {
        if (daemon_hung_up(ctx))
            channel_end(&ctx->channel, -ESHUTDOWN);
        ctx->health_at = now + nap + HEALTH_NS;
    }
    channel_disarm(&ctx->channel);
}

void context_pause(struct pwc_ctx *ctx, unsigned kinds, int64_t now, int64_t deadline)
{
    if (patience_next(&ctx->patience, (uint64_t)now, UINT64_MAX) == PATIENCE_YIELD) {
        sched_yield();
        patience_yielded(&ctx->patience, (uint64_t)now, (uint64_t)clock_now());
    } else {
        sleep_until_rung(ctx, kinds, now, deadline);
    }
}

/* After an empty probe: makes the descriptor tell of what comes next. */
static int arm_descriptor(struct pwc_ctx *ctx, pwc_peer peer, unsigned kinds, struct pwc_event *out)
{
    int rc = 0;

    while (rc == 0) {
        context_read_wake(ctx);
        if (arm(ctx, DOORBELL_FD, kinds) == 0)
            break;
        rc = context_probe(ctx, peer, kinds, out);
    }
    return rc;
}

int pwc_probe(pwc_ctx *ctx, pwc_peer peer, unsigned kinds, struct pwc_event *out)
{
    int rc = client_may_block(ctx->client);

    if (rc < 0)
        return rc;
    if (kinds & ~(unsigned)KINDS_ALL)
        return -EINVAL;
    rc = context_probe(ctx, peer, kinds, out);
    if (rc == 0 && ctx->fd_used)
        rc = arm_descriptor(ctx, peer, kinds, out);
    return rc;
}

/* A neighbour answers within less time than a yield takes. */
static int probe_awhile(struct pwc_ctx *ctx, pwc_peer peer, unsigned kinds, struct pwc_event *out)
{
    const struct neighbours *n = &ctx->channel.neighbours;
    unsigned probes = n->count > 0 || n->awaited > 0 ? NEIGHBOUR_PROBES : 1;
    int rc = 0;

    for (unsigned i = 0; i < probes && rc == 0; i++)
        rc = context_probe(ctx, peer, kinds, out);
    return rc;
}

static __attribute__((noinline)) int wait_for(struct pwc_ctx *ctx, pwc_peer peer, unsigned kinds,
                                              struct pwc_event *out, int timeout_ms)
{
    int64_t deadline = deadline_after_ms(timeout_ms);
    int64_t now = clock_now();
    int rc;

    patience_worked(&ctx->patience, (uint64_t)now);
    while (now < deadline) {
        context_pause(ctx, kinds, now, deadline);
        rc = probe_awhile(ctx, peer, kinds, out);
        if (rc != 0)
            return rc;
        now = clock_now();
    }
    return ctx->fd_used ? arm_descriptor(ctx, peer, kinds, out) : 0;
}

int pwc_wait(pwc_ctx *ctx, pwc_peer peer, unsigned kinds, struct pwc_event *out, int timeout_ms)
{
    int rc = client_may_block(ctx->client);

    if (rc < 0)
        return rc;
    if (kinds & ~(unsigned)KINDS_ALL)
        return -EINVAL;
    rc = probe_awhile(ctx, peer, kinds, out);
    return rc != 0 ? rc : wait_for(ctx, peer, kinds, out, timeout_ms);
}

int pwc_fd(pwc_ctx *ctx)
{
    if (client_is_forked(ctx->client))
        return -EOWNERDEAD;
    ctx->fd_used = true;
    return ctx->wake_fd;
}
