/*
 * Owns nothing: waits for requests.
 *
 * A wait looks at its requests once and marks those that are under way. A marked one that ends is
 * put on the list of the wait (request.h), so nothing looks at the others again. A context has one
 * wait at a time, for handlers may not wait.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/calls/request.h"
#include "clientlib/calls/wait.h"

static void wait_begin(struct request_pool *pool)
{
    pool->wait++;
    pool->ended = 0;
    pool->ended_first = pool->ended_last = REQUEST_NONE;
}

/* The marks are worth nothing any more. */
static void wait_end(struct request_pool *pool)
{
    pool->wait++;
}

static void mark(struct request_pool *pool, struct pwc_request *r, uint32_t position)
{
    r->waiter = pool->wait;
    r->position = position;
}

/* 1: so many of the marked requests have ended; 0: not yet; or why waiting is of no use. */
static int progress_awhile(struct pwc_ctx *ctx, uint32_t needed)
{
    const struct request_pool *pool = &ctx->channel.requests;
    int rc = 0;

    for (unsigned i = wait_spins(ctx); i > 0 && rc == 0 && pool->ended < needed; i--)
        rc = request_progress(ctx);
    return pool->ended >= needed ? 1 : rc;
}

/* Waits until so many of the marked requests have ended: 1; 0 after the timeout; or an error. */
static int wait_for(struct pwc_ctx *ctx, uint32_t needed, unsigned kinds, int timeout_ms)
{
    int rc = progress_awhile(ctx, needed);
    int64_t deadline, now;

    if (rc != 0)
        return rc;
    deadline = deadline_after_ms(timeout_ms);
    now = clock_now();
    patience_worked(&ctx->patience, (uint64_t)now);
    while (rc == 0 && now < deadline) {
        wait_pause(ctx, kinds, now, deadline);
        rc = progress_awhile(ctx, needed);
        now = clock_now();
    }
    return rc;
}

int pwc_request_wait(pwc_request *request, struct pwc_status *out, int timeout_ms)
{
    struct pwc_ctx *ctx = request_ctx(request);
    struct request_pool *pool = &ctx->channel.requests;
    int rc = client_may_block(ctx->client);

    if (rc < 0)
        return rc;
    if (request->left > 0) {
        wait_begin(pool);
        mark(pool, request, 0);
        rc = wait_for(ctx, 1, PWC_LOCAL, timeout_ms);
        wait_end(pool);
        if (rc <= 0)
            return rc;
    }
    request_tell(request, out);
    return 1;
}
