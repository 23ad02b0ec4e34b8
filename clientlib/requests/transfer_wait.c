/*
 * Puts and gets that wait for their end: the library gives the operation a request of its own, and
 * waits for that.
 *
 * A call that gives up leaves its request on a list of the context, because the operation
 * continues. The next call frees listed requests that have ended meanwhile.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/calls/room.h"
#include "clientlib/calls/series.h"
#include "clientlib/calls/transfer.h"
#include "clientlib/requests/request.h"

/* One call of pwc_put_wait or pwc_get_wait. */
struct blocking {
    struct pwc_ctx *ctx;
    struct pwc_request *request;
    struct room room;
};

static void take_back_ended(struct pwc_ctx *ctx)
{
    struct request_pool *pool = &ctx->channel.requests;
    uint32_t *at = &ctx->left_behind;

    while (*at != REQUEST_NONE) {
        struct pwc_request *r = request_at(pool, *at);

        if (r->left > 0) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        (void)request_pool_give(r);
    }
}

static int begin(struct blocking *b, pwc_remote *remote)
{
    const pwc_cid none = PWC_CID_NONE;
    int rc;

    if (!remote)
        return -EINVAL;
    b->ctx = remote->ctx;
    rc = room_begin(&b->room, remote, &none, PWC_NO_LCE);
    if (rc < 0)
        return rc;
    if (b->ctx->left_behind != REQUEST_NONE)
        take_back_ended(b->ctx);
    return request_pool_take(&b->ctx->channel.requests, REQUEST_PLAIN, &b->request);
}

/* Waits for the end after a submission whose result is `rc`. Returns the operation's status, or an
 * error. */
static int finish(struct blocking *b, int rc)
{
    struct pwc_ctx *ctx = b->ctx;
    struct pwc_request *r = b->request;
    struct pwc_status status = {.status = rc};

    if (rc == 0)
        rc = request_wait_until(r, &status, ctx->client->link.timeout_ms, b->room.deadline);
    if (r->left == 0) {
        (void)request_pool_give(r);
        return status.status;
    }
    series_give_up(ctx, request_cid(r).value);
    r->next = ctx->left_behind;
    ctx->left_behind = request_number(r);
    return rc == 0 ? -ETIMEDOUT : rc;
}

int pwc_put_wait(pwc_remote *dst, uint64_t off, const void *src, size_t len, pwc_cid rid,
                 unsigned flags)
{
    struct blocking b;
    pwc_cid lid;
    int rc = begin(&b, dst);

    if (rc < 0)
        return rc;
    lid = pwc_cid_request(b.request);
    transfer_asks(&b.room, len);
    do
        rc = transfer_put(dst, off, src, len, &lid, &rid, flags & ~(unsigned)PWC_WAIT);
    while (room_wait(&b.room, &rc));
    return finish(&b, rc);
}

int pwc_get_wait(pwc_remote *src, uint64_t off, void *dst, size_t len, pwc_cid rid, unsigned flags)
{
    struct blocking b;
    pwc_cid lid;
    int rc = begin(&b, src);

    if (rc < 0)
        return rc;
    lid = pwc_cid_request(b.request);
    transfer_asks(&b.room, UINT64_MAX);
    do
        rc = transfer_get(src, off, dst, len, &lid, &rid, flags & ~(unsigned)PWC_WAIT);
    while (room_wait(&b.room, &rc));
    return finish(&b, rc);
}
