/*
 * Flush: waits until everything, or everything towards one peer, has ended, or the timeout has
 * passed.
 *
 * Local events that arrive meanwhile are kept for later probes; collecting them also copies the
 * data of gets to its destination. Handlers of messages run, and remote events are kept before they
 * fill their ring, because peers may wait for us as we wait for them. For one peer a SUBMIT_FLUSH
 * follows the peer's operations, and the channel takes its event itself; for all peers the
 * session's count of ended operations shows the end.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/attach/wake.h"
#include "clientlib/calls/give_way.h"
#include "clientlib/calls/flush.h"
#include "clientlib/calls/series.h"
#include "clientlib/calls/wait.h"
#include "clientlib/binds/bind_start.h"
#include "clientlib/neighbours/direct.h"

static void begin_waiting(struct pwc_ctx *ctx)
{
    patience_worked(&ctx->patience, (uint64_t)clock_now());
}

bool flush_has_ended(const struct pwc_ctx *ctx)
{
    return channel_idle(&ctx->channel) && ctx->channel.pending.busy == 0 && !ctx->binds.first;
}

static int flush_all(struct pwc_ctx *ctx, int64_t deadline)
{
    int rc = 0;

    begin_waiting(ctx);
    while (rc == 0 && !flush_has_ended(ctx))
        rc = wait_pass(ctx, PWC_LOCAL, flush_has_ended, deadline);
    if (ctx->channel.neighbours.wakes_due)
        wait_for_due_wakes(ctx);
    if (rc == -ETIMEDOUT && flush_has_ended(ctx))
        rc = 0;
    /* Operations with a request end when their events are collected. So if this context has used
     * requests, collect once more. */
    if (rc == 0 && ctx->channel.requests.chunk_count > 0)
        rc = channel_collect(&ctx->channel);
    return rc < 0 ? rc : 0;
}

/* Submits the SUBMIT_FLUSH to wait for, unless the last one has not ended and nothing was submitted
 * since: so a caller that polls with timeout 0 does not fill the ring. */
static int begin_flush(struct pwc_ctx *ctx, struct pwc_remote *remote, int64_t deadline)
{
    struct channel *ch = &ctx->channel;
    struct submit_record record = {.kind = SUBMIT_FLUSH, .remote = remote->handle};
    int rc = 0;

    while (rc == 0 && series_holds(ctx, remote->peer))
        rc = wait_pass(ctx, wait_taken_too(PWC_LOCAL), NULL, deadline);
    if (rc < 0)
        return rc;
    if (remote->flush > ch->flushed && remote->flush_at == ch->submitted)
        return 0;
    record.lid = ++ctx->flushes;
    while ((rc = channel_submit(ch, &record, NULL, NULL, NULL)) == -EAGAIN) {
        rc = wait_pass(ctx, wait_taken_too(PWC_LOCAL), NULL, deadline);
        if (rc < 0)
            return rc;
    }
    if (rc < 0)
        return rc;
    give_way_passes_over(ctx);
    if (rc == CHANNEL_WAKES)
        wake_daemon(ctx);
    remote->flush = record.lid;
    remote->flush_at = ch->submitted;
    return 0;
}

int flush_peer(struct pwc_ctx *ctx, struct pwc_remote *remote, int64_t deadline)
{
    int rc;

    if (direct_idle(remote)) {
        if (ctx->channel.neighbours.wakes_due)
            wait_for_due_wakes(ctx);
        return ctx->channel.submit.open ? -EBUSY : channel_state(&ctx->channel);
    }
    begin_waiting(ctx);
    rc = begin_flush(ctx, remote, deadline);
    if (rc < 0)
        return rc; /* no SUBMIT_FLUSH was submitted */
    while (rc == 0 && ctx->channel.flushed < remote->flush)
        rc = wait_pass(ctx, PWC_LOCAL, NULL, deadline);
    return rc == -ETIMEDOUT && ctx->channel.flushed >= remote->flush ? 0 : rc;
}

/* Waits for binds of this peer, and then for what was submitted towards it. */
static int flush_one(struct pwc_ctx *ctx, pwc_peer peer, int64_t deadline)
{
    struct pwc_remote *remote;
    int rc = 0;

    if (binds_await(ctx, peer))
        begin_waiting(ctx);
    while (rc == 0 && binds_await(ctx, peer))
        rc = wait_pass(ctx, PWC_LOCAL, NULL, deadline);
    if (rc < 0 && !(rc == -ETIMEDOUT && !binds_await(ctx, peer)))
        return rc;
    remote = bound_of_peer(&ctx->bound, peer);
    return remote ? flush_peer(ctx, remote, deadline) : channel_state(&ctx->channel);
}

int pwc_flush(pwc_ctx *ctx, pwc_peer peer, int timeout_ms)
{
    int64_t deadline = deadline_after_ms(timeout_ms);
    int rc = client_may_block(ctx->client);

    if (rc < 0)
        return rc;
    wait_begin(ctx, SESSION_WAITS_FLUSH);
    rc = peer == PWC_ANY ? flush_all(ctx, deadline) : flush_one(ctx, peer, deadline);
    wait_end(ctx);
    return rc;
}
