/* Owns nothing: asks for wake-ups (wake.h). Thread: the one that owns the context. */
#include "clientlib/attach/wake.h"

#include <errno.h>
#include <unistd.h>
#include "clientlib/attach/context.h"
#include "shm_ring/fault.h"

void wake_daemon(struct pwc_ctx *ctx)
{
    static const uint64_t one = 1;

    /* A full counter is readable already, so a failed write loses no wake-up. */
    (void)!write(ctx->doorbell_fd, &one, sizeof(one));
    FAULT(DOORBELL_RUNG);
}

/* Submits a wake-up. Returns whether it is still due, because the submission ring is full, or a
 * Medium is being prepared in it. */
static bool submit_wake(struct pwc_ctx *ctx, uint32_t remote, uint64_t peer)
{
    int rc = channel_wake(&ctx->channel, remote, peer);
    bool due = rc == -EAGAIN || rc == -EBUSY;

    if (rc == CHANNEL_WAKES)
        wake_daemon(ctx);
    ctx->channel.neighbours.wakes_due |= due;
    return due;
}

static const struct pwc_remote *remote_of(const struct pwc_ctx *ctx, const struct direct_pair *pair)
{
    const struct pwc_remote *remote = bound_of_peer(&ctx->bound, pair->peer);

    while (remote && remote->pair != pair)
        remote = bound_next(remote);
    return remote;
}

void wake_target(struct pwc_ctx *ctx, struct direct_pair *pair)
{
    const struct pwc_remote *remote = remote_of(ctx, pair);

    pair->wake_due = remote && submit_wake(ctx, remote->handle, pair->peer);
}

void wake_retry(struct pwc_ctx *ctx)
{
    struct neighbours *n = &ctx->channel.neighbours;

    n->wakes_due = false;
    for (struct direct_pair *pair = n->ours; pair; pair = pair->next)
        if (pair->wake_due)
            wake_target(ctx, pair);
    for (uint32_t i = 0; i < n->count; i++)
        if (n->list[i].wake_due)
            n->list[i].wake_due = submit_wake(ctx, SUBMIT_NO_REMOTE, n->list[i].peer);
}
