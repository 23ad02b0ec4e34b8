/*
 * Put and get: check the arguments, find the memory, submit. Owns nothing.
 *
 * Thread: the one that owns the context. No system call unless the daemon sleeps or waits for this
 * processor (give_way.h), no allocation, no lock (except a copy of the span table when a region was
 * added or removed).
 */
#include <errno.h>
#include "clientlib/calls/give_way.h"
#include "clientlib/calls/operation.h"
#include "clientlib/calls/room.h"
#include "clientlib/calls/series.h"
#include "clientlib/calls/transfer.h"
#include "clientlib/neighbours/direct.h"

enum {
    GET_FLAGS = PWC_NO_LCE | PWC_NO_RCE | PWC_LCE_SOURCE | PWC_FENCE | PWC_UNORDERED | PWC_NOTIFY,
    PUT_FLAGS = GET_FLAGS | SUBMIT_PROTOCOL,
};

/* A remote range of no bytes needs no right. */
static inline int check(const struct pwc_ctx *ctx, const struct pwc_remote *remote, uint64_t off,
                        uint64_t len, const pwc_cid *lid, const pwc_cid *rid, unsigned flags,
                        unsigned flags_allowed, unsigned right)
{
    int rc = operation_check(ctx, lid, flags, flags_allowed);

    if (rc < 0)
        return rc;
    if (!operation_rid_valid(rid, flags))
        return -EINVAL;
    return operation_check_range(ctx, remote, off, len, len > 0 ? right : 0);
}

static struct operation make(struct pwc_ctx *ctx, uint8_t kind, const struct pwc_remote *remote,
                             uint64_t off, uint64_t len, const pwc_cid *rid, unsigned flags)
{
    struct operation op = {
        .outbox = &ctx->channel.submit,
        .record =
            {
                .kind = kind,
                .flags = (uint16_t)flags,
                .remote = remote->handle,
                .offset = off,
                .length = len,
            },
    };

    operation_set_rid(&op, rid);
    return op;
}

/* Submits a put with a packed payload, if the submission ring is large enough: 0, or as
 * channel_put. */
static inline int put_packed(struct pwc_ctx *ctx, const struct pwc_remote *dst, uint64_t off,
                             const void *src, size_t len, uint64_t lid, uint64_t rid,
                             unsigned flags)
{
    int rc =
        channel_put(&ctx->channel, dst->handle, off, src, (uint32_t)len, lid, rid, (uint16_t)flags);

    if (rc > 0)
        give_way_or_wake(ctx, rc);
    return rc < 0 ? give_way_refused(&ctx->give_way, rc) : 0;
}

static __attribute__((noinline)) int put_any(pwc_ctx *ctx, pwc_remote *dst, uint64_t off,
                                             const void *src, size_t len, const pwc_cid *lid,
                                             const pwc_cid *rid, unsigned flags)
{
    struct operation op = make(ctx, SUBMIT_PUT, dst, off, len, rid, flags);

    operation_set_lid(&op, lid);
    return operation_submit_payload(ctx, &op, src);
}

/* Most puts are small with ids by value: these skip the steps that others need. */
static inline int put_by_daemon(pwc_ctx *ctx, pwc_remote *dst, uint64_t off, const void *src,
                                size_t len, const pwc_cid *lid, const pwc_cid *rid, unsigned flags)
{
    int rc = -EMSGSIZE;

    if (len > 0 && len <= ctx->client->packed_max && lid->size == 0 && rid->size == 0)
        rc = put_packed(ctx, dst, off, src, len, lid->value, rid->value, flags);
    if (rc != -EMSGSIZE) /* -EMSGSIZE: the ring is too small to pack it */
        return rc;
    return put_any(ctx, dst, off, src, len, lid, rid, flags);
}

static __attribute__((noinline)) int put_directly_for_request(pwc_remote *dst, uint64_t off,
                                                              const void *src, size_t len,
                                                              struct pwc_request *r,
                                                              const pwc_cid *rid, unsigned flags)
{
    const pwc_cid none = PWC_CID_NONE;
    int rc = direct_put(dst->ctx, dst, off, src, len, &none, rid, flags | PWC_NO_LCE);

    if (rc == 0)
        request_end_at_once(r, 0, dst->peer, len);
    return rc;
}

void transfer_asks(struct room *room, uint64_t len)
{
    if (len > room->ctx->client->packed_max && !room->ctx->staging.taken)
        room_asks(room);
}

/* As transfer_put, with PWC_WAIT. */
static __attribute__((noinline, cold)) int put_waiting(pwc_remote *dst, uint64_t off,
                                                       const void *src, size_t len,
                                                       const pwc_cid *lid, const pwc_cid *rid,
                                                       unsigned flags)
{
    struct room room;
    int rc = room_begin(&room, dst, lid, flags);

    if (rc < 0)
        return rc;
    transfer_asks(&room, len);
    do
        rc = transfer_put(dst, off, src, len, lid, rid, flags & ~(unsigned)PWC_WAIT);
    while (room_wait(&room, &rc));
    return rc;
}

/* As pwc_put, for a request. Takes the same arguments, so that a jump leads here. */
static __attribute__((noinline)) int put_for_request(pwc_remote *dst, uint64_t off, const void *src,
                                                     size_t len, pwc_cid lid, pwc_cid rid,
                                                     unsigned flags)
{
    struct pwc_ctx *ctx = dst->ctx;
    struct pwc_request *r = operation_request(ctx, &lid);
    int rc;

    if (!r)
        return -EINVAL;
    if (flags & PWC_WAIT)
        return put_waiting(dst, off, src, len, &lid, &rid, flags);
    lid = request_cid(r);
    rc = check(ctx, dst, off, len, &lid, &rid, flags, PUT_FLAGS, PWC_REMOTE_WRITE);
    if (rc == 0 && dst->pair) {
        rc = direct_choose(ctx, dst, !(flags & PWC_NO_RCE));
        if (rc == 1)
            return put_directly_for_request(dst, off, src, len, r, &rid, flags);
    }
    if (rc < 0)
        return rc;
    rc = put_by_daemon(ctx, dst, off, src, len, &lid, &rid, operation_request_flags(flags));
    if (rc == 0)
        request_begin(r);
    return rc;
}

int transfer_put(pwc_remote *dst, uint64_t off, const void *src, size_t len, const pwc_cid *lid,
                 const pwc_cid *rid, unsigned flags)
{
    struct pwc_ctx *ctx;
    int rc;

    if (!dst)
        return -EINVAL;
    ctx = dst->ctx;
    if (lid->size > PWC_CID_MAX)
        return put_for_request(dst, off, src, len, *lid, *rid, flags);
    rc = check(ctx, dst, off, len, lid, rid, flags, PUT_FLAGS, PWC_REMOTE_WRITE);
    if (rc == 0 && dst->pair) {
        rc = direct_choose(ctx, dst, !(flags & PWC_NO_RCE));
        if (rc == 1)
            return direct_put(ctx, dst, off, src, len, lid, rid, flags);
    }
    if (rc < 0) /* check refuses PWC_WAIT, so an operation with it arrives here */
        return flags & PWC_WAIT ? put_waiting(dst, off, src, len, lid, rid, flags) : rc;
    return put_by_daemon(ctx, dst, off, src, len, lid, rid, flags);
}

int pwc_put(pwc_remote *dst, uint64_t off, const void *src, size_t len, pwc_cid lid, pwc_cid rid,
            unsigned flags)
{
    return transfer_put(dst, off, src, len, &lid, &rid, flags);
}

static __attribute__((noinline)) int get_by_daemon(pwc_ctx *ctx, pwc_remote *src, uint64_t off,
                                                   void *dst, size_t len, const pwc_cid *lid,
                                                   const pwc_cid *rid, unsigned flags)
{
    struct operation op =
        make(ctx, SUBMIT_GET, src, off, len, rid, (flags & ~(unsigned)PWC_NO_LCE) | SUBMIT_SLOT);
    uint8_t *shadow = NULL;
    int64_t slot;
    int rc;

    if (len > 0) {
        rc = span_view_find(&ctx->spans, &ctx->client->spans, dst, len, &op.record.segment,
                            &op.record.local_offset, &shadow);
        if (rc < 0)
            return rc == -EFAULT ? series_get(ctx, &op, lid, flags, dst) : rc;
    }
    if (flags & SUBMIT_SLOT && !shadow) { /* the id is a request's, so no slot is needed */
        op.record.lid = lid->value;
        return operation_submit(ctx, &op);
    }
    slot = pending_begin(&ctx->channel.pending, lid, flags, shadow ? dst : NULL, shadow, len);
    if (slot < 0)
        return give_way_refused(&ctx->give_way, (int)slot);
    op.record.lid = (uint64_t)slot;
    rc = operation_submit(ctx, &op);
    if (rc < 0)
        pending_cancel(&ctx->channel.pending, (uint32_t)slot);
    return rc;
}

/* As pwc_get, for a request. */
static __attribute__((noinline)) int get_for_request(pwc_remote *src, uint64_t off, void *dst,
                                                     size_t len, const pwc_cid *lid,
                                                     const pwc_cid *rid, unsigned flags)
{
    struct pwc_ctx *ctx = src->ctx;
    struct pwc_request *r = operation_request(ctx, lid);
    const pwc_cid id = r ? request_cid(r) : *lid;
    int rc = check(ctx, src, off, len, &id, rid, flags, GET_FLAGS, PWC_REMOTE_READ);

    if (rc == 0 && src->pair)
        rc = direct_choose(ctx, src, !(flags & PWC_NO_RCE));
    if (rc == 1) {
        rc = direct_get(ctx, src, off, dst, len, &id, rid, flags | PWC_NO_LCE);
        if (rc == 0)
            request_end_at_once(r, 0, src->peer, len);
    } else if (rc == 0) {
        rc = get_by_daemon(ctx, src, off, dst, len, &id, rid, operation_request_flags(flags));
        if (rc == 0)
            request_begin(r);
    }
    return rc;
}

/* As transfer_get, with PWC_WAIT. */
static __attribute__((noinline)) int get_waiting(pwc_remote *src, uint64_t off, void *dst,
                                                 size_t len, const pwc_cid *lid, const pwc_cid *rid,
                                                 unsigned flags)
{
    struct room room;
    int rc = room_begin(&room, src, lid, flags);

    if (rc < 0)
        return rc;
    transfer_asks(&room, UINT64_MAX);
    do
        rc = transfer_get(src, off, dst, len, lid, rid, flags & ~(unsigned)PWC_WAIT);
    while (room_wait(&room, &rc));
    return rc;
}

int transfer_get(pwc_remote *src, uint64_t off, void *dst, size_t len, const pwc_cid *lid,
                 const pwc_cid *rid, unsigned flags)
{
    struct pwc_ctx *ctx;
    int rc;

    if (!src)
        return -EINVAL;
    ctx = src->ctx;
    if (flags & PWC_WAIT)
        return get_waiting(src, off, dst, len, lid, rid, flags);
    if (lid->size > PWC_CID_MAX)
        return get_for_request(src, off, dst, len, lid, rid, flags);
    rc = check(ctx, src, off, len, lid, rid, flags, GET_FLAGS, PWC_REMOTE_READ);
    if (rc == 0 && src->pair) {
        rc = direct_choose(ctx, src, !(flags & PWC_NO_RCE));
        if (rc == 1)
            return direct_get(ctx, src, off, dst, len, lid, rid, flags);
    }
    return rc < 0 ? rc : get_by_daemon(ctx, src, off, dst, len, lid, rid, flags);
}

int pwc_get(pwc_remote *src, uint64_t off, void *dst, size_t len, pwc_cid lid, pwc_cid rid,
            unsigned flags)
{
    return transfer_get(src, off, dst, len, &lid, &rid, flags);
}
