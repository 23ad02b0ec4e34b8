/*
 * Put and get: check what can be checked here, find the memory, submit.
 *
 * Thread: the one that owns the context. No system call unless the daemon sleeps, no allocation, no
 * lock (but for a copy of the span table when a region has come or gone).
 */
#include <errno.h>
#include <string.h>
#include "context.h"

enum { FLAGS_ALL = PWC_NO_LCE | PWC_NO_RCE | PWC_LCE_SOURCE | PWC_FENCE | PWC_UNORDERED };

static_assert((int)PWC_NO_LCE == (int)SUBMIT_NO_LCE && (int)PWC_NO_RCE == (int)SUBMIT_NO_RCE &&
                  (int)PWC_LCE_SOURCE == (int)SUBMIT_LCE_SOURCE &&
                  (int)PWC_FENCE == (int)SUBMIT_FENCE &&
                  (int)PWC_UNORDERED == (int)SUBMIT_UNORDERED,
              "flags pass to the daemon as they are");

static int check(const struct pwc_ctx *ctx, const struct pwc_remote *remote, uint64_t off,
                 uint64_t len, const pwc_cid *lid, const pwc_cid *rid, unsigned flags,
                 unsigned right)
{
    if (client_is_forked(ctx->client))
        return -EOWNERDEAD;
    if ((flags & ~(unsigned)FLAGS_ALL) || lid->size > PWC_CID_MAX || rid->size > PWC_CID_MAX ||
        remote->ctx != ctx)
        return -EINVAL;
    if (len > ctx->client->message_max)
        return -EMSGSIZE;
    if (off > remote->length || len > remote->length - off)
        return -ERANGE;
    if (len > 0 && !(remote->rights & right))
        return -EKEYREJECTED;
    return 0;
}

static struct submit_record make_record(uint8_t kind, const struct pwc_remote *remote, uint64_t off,
                                        uint64_t len, const pwc_cid *rid, unsigned flags)
{
    return (struct submit_record){
        .kind = kind,
        .flags = (uint16_t)flags,
        .remote = remote->handle,
        .offset = off,
        .length = len,
        .rid = rid->size == 0 ? rid->value : 0,
        .rid_len = (uint16_t)rid->size,
    };
}

static int submit(struct pwc_ctx *ctx, const struct submit_record *record, const void *lid,
                  const void *rid, const void *payload)
{
    int rc = channel_submit(&ctx->channel, record, lid, rid, payload);

    if (rc == 1) {
        context_ring(ctx);
        rc = 0;
    }
    return rc;
}

/* Names the source by segment and offset; a shadow is brought up to date. */
static int place_source(struct pwc_ctx *ctx, struct submit_record *record, const void *src)
{
    uint8_t *shadow;
    int rc = span_view_find(&ctx->spans, &ctx->client->spans, src, record->length, &record->segment,
                            &record->local_offset, &shadow);

    if (rc == 0 && shadow)
        memcpy(shadow, src, record->length);
    return rc;
}

int pwc_put(pwc_ctx *ctx, pwc_remote *dst, uint64_t off, const void *src, size_t len, pwc_cid lid,
            pwc_cid rid, unsigned flags)
{
    struct submit_record record;
    int rc = check(ctx, dst, off, len, &lid, &rid, flags, PWC_REMOTE_WRITE);

    if (rc < 0)
        return rc;
    record = make_record(SUBMIT_PUT, dst, off, len, &rid, flags);
    record.lid = lid.size == 0 ? lid.value : 0;
    record.lid_len = (uint16_t)lid.size;
    if (len == 0)
        return submit(ctx, &record, lid.data, rid.data, NULL);
    if (len <= ctx->client->packed_max) {
        record.flags |= SUBMIT_INLINE;
        rc = submit(ctx, &record, lid.data, rid.data, src);
        if (rc != -EMSGSIZE)
            return rc;
        record.flags &= (uint16_t)~SUBMIT_INLINE; /* a small ring: from a region, then */
    }
    rc = place_source(ctx, &record, src);
    if (rc < 0)
        return rc == -EFAULT && len <= ctx->client->packed_max ? -EMSGSIZE : rc;
    return submit(ctx, &record, lid.data, rid.data, NULL);
}

int pwc_get(pwc_ctx *ctx, pwc_remote *src, uint64_t off, void *dst, size_t len, pwc_cid lid,
            pwc_cid rid, unsigned flags)
{
    bool silent = flags & PWC_NO_LCE;
    struct submit_record record;
    uint8_t *shadow = NULL;
    int64_t slot;
    int rc = check(ctx, src, off, len, &lid, &rid, flags, PWC_REMOTE_READ);

    if (rc < 0)
        return rc;
    record = make_record(SUBMIT_GET, src, off, len, &rid, flags & ~(unsigned)PWC_NO_LCE);
    if (len > 0) {
        rc = span_view_find(&ctx->spans, &ctx->client->spans, dst, len, &record.segment,
                            &record.local_offset, &shadow);
        if (rc < 0)
            return rc;
    }
    slot = gets_begin(&ctx->gets, &lid, silent, shadow ? dst : NULL, shadow, len);
    if (slot < 0)
        return (int)slot;
    record.lid = (uint64_t)slot;
    rc = submit(ctx, &record, NULL, rid.data, NULL);
    if (rc < 0)
        gets_cancel(&ctx->gets, (uint32_t)slot);
    return rc;
}
