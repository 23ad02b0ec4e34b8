/*
 * Flush: until everything, or everything towards one peer, has ended.
 *
 * Local events that come meanwhile are kept for later probes, so that gets whose data comes through
 * a copy are really done; handlers of messages run, since peers may wait for us as we for them. For
 * one peer a SUBMIT_FLUSH goes along its queue, whose own event the channel swallows; for all peers
 * the session's count of ended operations tells.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/attach/wake.h"
#include "clientlib/calls/flush.h"
#include "clientlib/calls/wait.h"
#include "clientlib/neighbours/direct.h"

enum {
    NAP_NS = 1000000, /* no bell rings for the end of an operation without an event */
};

static void begin_waiting(struct pwc_ctx *ctx)
{
    patience_worked(&ctx->patience, (uint64_t)clock_now());
}

/* Lets time pass, then keeps what has come: 0, or why waiting is of no use any more. */
static int pass_time(struct pwc_ctx *ctx)
{
    int64_t now = clock_now();
    int rc = channel_state(&ctx->channel);

    if (rc < 0)
        return rc;
    wait_pause(ctx, PWC_LOCAL, now, now + NAP_NS);
    rc = channel_collect(&ctx->channel);
    if (rc >= 0)
        rc = channel_run(&ctx->channel);
    if (ctx->channel.neighbours.wakes_due)
        wake_retry(ctx);
    return rc;
}

static int flush_all(struct pwc_ctx *ctx)
{
    int rc = 0;

    begin_waiting(ctx);
    /* A get's end is seen when its event is collected. */
    while (rc == 0 && !(channel_idle(&ctx->channel) && ctx->gets.pending == 0))
        rc = pass_time(ctx);
    if (ctx->channel.neighbours.wakes_due)
        wait_for_due_wakes(ctx);
    return rc;
}

int flush_peer(struct pwc_ctx *ctx, const struct pwc_remote *remote)
{
    struct submit_record record = {
        .kind = SUBMIT_FLUSH,
        .remote = remote->handle,
        .lid = ++ctx->flushes,
    };
    int rc;

    if (direct_idle(remote)) {
        if (ctx->channel.neighbours.wakes_due)
            wait_for_due_wakes(ctx);
        return ctx->channel.submit.open ? -EBUSY : channel_state(&ctx->channel);
    }
    begin_waiting(ctx);
    while ((rc = channel_submit(&ctx->channel, &record, NULL, NULL, NULL)) == -EAGAIN) {
        rc = pass_time(ctx);
        if (rc < 0)
            return rc;
    }
    if (rc < 0)
        return rc;
    if (rc == 1)
        wake_daemon(ctx);
    rc = 0;
    while (rc == 0 && ctx->channel.flushed < record.lid)
        rc = pass_time(ctx);
    return rc;
}

int pwc_flush(pwc_ctx *ctx, pwc_peer peer)
{
    const struct pwc_remote *remote = ctx->remotes;
    int rc = client_may_block(ctx->client);

    if (rc < 0)
        return rc;
    if (peer == PWC_ANY)
        return flush_all(ctx);
    while (remote && remote->peer != peer)
        remote = remote->next;
    return remote ? flush_peer(ctx, remote) : channel_state(&ctx->channel);
}
