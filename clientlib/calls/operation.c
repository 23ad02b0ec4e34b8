/*
 * Owns nothing: checks an operation, finds its memory, writes it into a ring. Thread: the one that
 * owns the context.
 */
#include "clientlib/attach/wake.h"
#include "clientlib/calls/operation.h"

#include <errno.h>
#include <string.h>
#include "clientlib/calls/give_way.h"
#include "clientlib/calls/series.h"
#include "pwc/tuning.h"

static_assert((int)PWC_NO_LCE == (int)SUBMIT_NO_LCE && (int)PWC_NO_RCE == (int)SUBMIT_NO_RCE &&
                  (int)PWC_LCE_SOURCE == (int)SUBMIT_LCE_SOURCE &&
                  (int)PWC_FENCE == (int)SUBMIT_FENCE && (int)PWC_NOTIFY == (int)SUBMIT_NOTIFY &&
                  (int)PWC_UNORDERED == (int)SUBMIT_UNORDERED,
              "flags pass to the daemon as they are");
static_assert((int)PWC_PROTOCOL_ORDERED == (int)SUBMIT_ORDERED &&
                  (int)PWC_PROTOCOL_REASSEMBLE == (int)SUBMIT_REASSEMBLE &&
                  (int)PWC_PROTOCOL_CHAIN == (int)SUBMIT_CHAIN &&
                  (int)PWC_AM_NO_REPLY == (int)SUBMIT_NO_REPLY,
              "and so do those of active messages");
static_assert((int)PWC_OP_PUT == (int)SUBMIT_PUT && (int)PWC_OP_GET == (int)SUBMIT_GET &&
                  (int)PWC_OP_SHORT == (int)SUBMIT_SHORT &&
                  (int)PWC_OP_MEDIUM == (int)SUBMIT_MEDIUM &&
                  (int)PWC_OP_LONG == (int)SUBMIT_LONG && (int)PWC_OP_SIGNAL == (int)SUBMIT_SIGNAL,
              "events name an operation as the daemon does");

void operation_commit(struct pwc_ctx *ctx, struct channel_outbox *outbox)
{
    bool replies = outbox != &ctx->channel.submit;
    int rc = channel_commit(&ctx->channel, outbox);

    if (replies)
        give_way_passes_over(ctx);
    if (rc == CHANNEL_WAKES || (rc > 0 && !replies))
        give_way_or_wake(ctx, rc);
}

int operation_submit(struct pwc_ctx *ctx, const struct operation *op)
{
    const struct submit_record *record = &op->record;
    uint8_t *at;
    int rc = channel_begin(&ctx->channel, op->outbox, record, &at);

    if (rc < 0)
        return give_way_refused(&ctx->give_way, rc);
    at = channel_append(at, op->lid, record->lid_len);
    if (op->block) {
        at = channel_append(at, op->block, sizeof(*op->block));
        at = channel_append(at, op->arguments, 8u * op->block->arguments);
        at = channel_append(at, op->payload, op->block->payload_len);
    } else {
        at = channel_append(at, op->rid, record->rid_len);
    }
    if (record->flags & SUBMIT_INLINE)
        (void)channel_append(at, op->payload, (uint32_t)record->length);
    operation_commit(ctx, op->outbox);
    return 0;
}

int operation_check_memory(struct pwc_ctx *ctx, const void *start, size_t length)
{
    uint32_t segment;
    uint64_t offset;
    uint8_t *shadow;

    return span_view_find(&ctx->spans, &ctx->client->spans, start, length, &segment, &offset,
                          &shadow);
}

/* Sets segment and offset of a source of record->length bytes; if its region is a copy, copies the
 * bytes there. 0, -EFAULT, -ENOMEM. */
static int place_source(struct pwc_ctx *ctx, struct submit_record *record, const void *src)
{
    uint8_t *shadow;
    int rc = span_view_find(&ctx->spans, &ctx->client->spans, src, record->length, &record->segment,
                            &record->local_offset, &shadow);

    if (rc == 0 && shadow)
        memcpy(shadow, src, record->length);
    return rc;
}

/* Submits a payload from loose memory. A reply cannot use staging, because it may not wait. */
static __attribute__((noinline, cold)) int submit_loose(struct pwc_ctx *ctx,
                                                        const struct operation *op, const void *src)
{
    if (op->outbox == &ctx->channel.submit)
        return series_put(ctx, op, src);
    return op->record.length <= ctx->client->packed_max ? -EMSGSIZE : -EFAULT;
}

int operation_submit_payload(struct pwc_ctx *ctx, struct operation *op, const void *src)
{
    bool short_enough = op->record.length <= ctx->client->packed_max;
    int rc;

    if (op->record.length == 0)
        return operation_submit(ctx, op);
    if (short_enough) {
        op->record.flags |= SUBMIT_INLINE;
        op->payload = src;
        rc = operation_submit(ctx, op);
        if (rc != -EMSGSIZE)
            return rc;
        op->record.flags &=
            (uint16_t)~SUBMIT_INLINE; /* the ring is small: send from a region instead */
    }
    rc = place_source(ctx, &op->record, src);
    if (rc < 0)
        return rc == -EFAULT ? submit_loose(ctx, op, src) : rc;
    return operation_submit(ctx, op);
}
