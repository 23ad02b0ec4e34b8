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
#include "context.h"
#include "deadline.h"
#include "doorbell.h"

enum {
    KINDS_ALL = PWC_LOCAL | PWC_REMOTE | PWC_MESSAGE,
    SPIN_NS = 200000, /* polling pays for about so long: a wake-up costs a tenth of it */
    YIELD_LONG_NS =
        1000000, /* a yield that took longer ran somebody who computes: get out of the way */
    HEALTH_NS = 1000000000, /* look after the daemon's health so often */
    NEIGHBOUR_PROBES = 100, /* between two yields: about a microsecond */
    HELD_NS = 1000000,      /* room for the reply to a request that waits is told by no bell */
};

static bool daemon_hung_up(struct pwc_ctx *ctx)
{
    struct pollfd wake = {.fd = ctx->wake_fd, .events = POLLRDHUP};

    return poll(&wake, 1, 0) > 0 && (wake.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

void context_sleep(struct pwc_ctx *ctx, unsigned kinds, int64_t deadline)
{
    int64_t now = clock_now();
    int64_t longest = channel_holds_request(&ctx->channel) ? HELD_NS : HEALTH_NS;
    int64_t left = deadline - now;
    int64_t nap = left < longest ? left : longest;

    if (nap <= 0 || channel_arm(&ctx->channel, DOORBELL_FUTEX, kinds) != 0)
        return;
    if (doorbell_sleep(&ctx->channel.shared->event_bell, nap) == -ETIMEDOUT &&
        now + nap >= ctx->health_at) {
        if (daemon_hung_up(ctx))
            channel_end(&ctx->channel, -ESHUTDOWN);
        ctx->health_at = now + nap + HEALTH_NS;
    }
    channel_disarm(&ctx->channel);
}

/* After an empty probe: makes the descriptor tell of what comes next. */
static int arm_descriptor(struct pwc_ctx *ctx, pwc_peer peer, unsigned kinds, struct pwc_event *out)
{
    int rc = 0;

    while (rc == 0) {
        context_read_wake(ctx);
        if (channel_arm(&ctx->channel, DOORBELL_FD, kinds) == 0)
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

/* Polls on while that pays, else sleeps. The end of polling is moved. */
static void yield_or_sleep(struct pwc_ctx *ctx, unsigned kinds, int64_t now, int64_t *spin_end,
                           int64_t deadline)
{
    if (now < *spin_end) {
        sched_yield();
        if (clock_now() - now > YIELD_LONG_NS)
            *spin_end = now;
    } else {
        context_sleep(ctx, kinds, deadline);
        *spin_end = clock_now() + SPIN_NS;
    }
}

/* A neighbour answers within less time than a yield takes. */
static int probe_awhile(struct pwc_ctx *ctx, pwc_peer peer, unsigned kinds, struct pwc_event *out)
{
    unsigned probes = ctx->channel.neighbours.count > 0 ? NEIGHBOUR_PROBES : 1;
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
    int64_t spin_end = now + SPIN_NS;
    int rc;

    while (now < deadline) {
        yield_or_sleep(ctx, kinds, now, &spin_end, deadline);
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
