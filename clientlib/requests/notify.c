/*
 * Owns nothing: notified puts and gets of a window, and requests for notifications. Thread: the one
 * that owns the context.
 */
#include <errno.h>
#include "clientlib/requests/request.h"
#include "clientlib/calls/transfer.h"
#include "clientlib/memory/window.h"

/* The remote of a rank, if it is bound already; NULL: it is not, or there is no such rank. */
static inline pwc_remote *bound(const pwc_window *w, uint32_t rank)
{
    return rank < w->size ? w->remotes[rank] : NULL;
}

int pwc_put_notify(pwc_window *w, uint32_t rank, uint64_t off, const void *src, size_t len,
                   uint32_t tag, pwc_cid lid, unsigned flags)
{
    const pwc_cid rid = pwc_notice(w->space.number, tag);
    pwc_remote *remote = bound(w, rank);
    int rc = tag == PWC_ANY_TAG ? -EINVAL : remote ? 0 : pwc_window_remote(w, rank, &remote);

    return rc < 0 ? rc : transfer_put(remote, off, src, len, &lid, &rid, flags | PWC_NOTIFY);
}

int pwc_get_notify(pwc_window *w, uint32_t rank, uint64_t off, void *dst, size_t len, uint32_t tag,
                   pwc_cid lid, unsigned flags)
{
    const pwc_cid rid = pwc_notice(w->space.number, tag);
    pwc_remote *remote = bound(w, rank);
    int rc = tag == PWC_ANY_TAG ? -EINVAL : remote ? 0 : pwc_window_remote(w, rank, &remote);

    return rc < 0 ? rc : transfer_get(remote, off, dst, len, &lid, &rid, flags | PWC_NOTIFY);
}

int pwc_notify_init(pwc_window *w, uint32_t source, uint32_t tag, uint32_t count, pwc_cid lid,
                    pwc_request **out)
{
    struct channel *ch = &w->ctx->channel;
    bool any_rank = source == PWC_ANY_RANK;
    struct matcher_pattern pattern = {
        .id = pwc_notice(w->space.number, tag).value,
        .any_peer = any_rank,
        .any_tag = tag == PWC_ANY_TAG,
    };
    struct pwc_request *r;
    int rc;

    if (client_is_forked(w->ctx->client))
        return -EOWNERDEAD;
    if ((!any_rank && source >= w->size) || count == 0)
        return -EINVAL;
    if (!any_rank)
        pattern.peer = w->members[source].peer;
    rc = request_pool_take(&ch->requests, REQUEST_NOTIFY, &r);
    if (rc < 0)
        return rc;
    r->wanted = count;
    rc = request_set_lid(r, &lid);
    if (rc == 0)
        rc = channel_notify_open(ch, r, &pattern);
    if (rc < 0)
        (void)request_pool_give(r);
    else
        *out = r;
    return rc;
}

static int start(struct pwc_ctx *ctx, struct pwc_request *r)
{
    return channel_notify_start(&ctx->channel, r);
}

static void take_back(struct pwc_ctx *ctx, struct pwc_request *r)
{
    channel_notify_stop(&ctx->channel, r);
}

const struct request_kind request_notify = {
    .ended_by = PWC_NOTIFICATION, .start = start, .take_back = take_back};
