/*
 * Atomics at their origin: one record with the operands (ATOMIC), and, if values are fetched, a
 * RESULT in return, ahead of the acknowledgement. The target carries them out (record_atomic.c).
 *
 *     what the operation is            where its outcome stands       what its event shows as bytes
 *     fetches nothing                  -                              bytes of the words
 *     fetches one value                op->value                      the value
 *     fetches several                  the client's memory            bytes of the words
 *     ended with -EBUSY                op->value                      elements that are done
 *
 * A RESULT comes at most once: it is sent again only where it was not consumed, and a record whose
 * RESULT was consumed has been consumed itself. Thread: the progress thread.
 */
#include "daemon/engine/ops/op.h"

#include <string.h>
#include "daemon/engine/ops/owner.h"
#include "proto/word_abi.h"

static uint64_t atomic_reach(const struct submit_record *r)
{
    return word_reach(r->code, r->length);
}

/* Whether an honest library may have submitted this operation. */
static bool atomic_formed(const struct submit_record *r)
{
    uint64_t words = atomic_reach(r);
    bool fetch = r->flags & SUBMIT_FETCH;

    if (!(r->flags & SUBMIT_INLINE) || !word_code_valid(r->code))
        return false;
    return (words & (word_bytes(r->code) - 1)) == 0 &&
           words << word_is_swap_if(r->code) == r->length &&
           (fetch ? words >> word_shift(r->code) <= SUBMIT_FETCH_MAX
                  : word_op(r->code) != WORD_READ);
}

static int atomic_validate(struct engine *e, uint32_t client, const struct submit_record *r,
                           const struct remote *remote)
{
    struct submit_record words = *r;
    int status = 0;

    if (!atomic_formed(r))
        return -EPROTO;
    words.length = atomic_reach(r);
    if (r->flags & SUBMIT_FETCH && words.length > word_bytes(r->code) &&
        op_check_local(e, client, &words) < 0)
        return -EFAULT;
    if (word_op(r->code) != WORD_READ)
        status = op_check_remote(e, &words, remote, ENGINE_REMOTE_WRITE);
    if (status == 0 && r->flags & SUBMIT_FETCH)
        status = op_check_remote(e, &words, remote, ENGINE_REMOTE_READ);
    return status == 0 && !word_aligned(r->offset, r->code) ? -EINVAL : status;
}

/* Whether the atomic is of one element with one operand. */
static bool atomic_batchable(const struct submit_record *r)
{
    return word_code_valid(r->code) && r->length == word_bytes(r->code) &&
           !word_is_swap_if(r->code) && word_aligned(r->offset, r->code);
}

static int atomic_record(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    uint32_t words = (uint32_t)word_reach(op->code, op->length);
    uint32_t pad = op->flags & SUBMIT_FETCH ? wire_fetch_pad(abi_pad8(words)) : 0;
    struct wire_put *w;
    int r;

    if (op->status < 0)
        return op_stage_plain(e, flow, slot, op, WIRE_NOTE);
    r = put_packed(e, flow, slot, op, WIRE_ATOMIC, pad, &w);
    if (r <= 0)
        return r;
    w->op.atomic = op_wire_code(op);
    w->op.length = words;
    return r;
}

/* Copies the earlier values of several elements into the client's memory. Returns 0 or the
 * operation's status. */
static int32_t values_place(struct engine *e, uint32_t flow, const struct op *op,
                            const uint8_t *values, uint32_t bytes)
{
    uint32_t client = owner_client(e, e->flows[flow].owner);
    const struct segment *segment = &e->segments[op->segment];
    uint8_t *base = e->segment_live[op->segment].base;

    /* While the operation was under way its segment may have gone, and the index may be another
     * client's. */
    if (segment->state != SEGMENT_OPEN || segment->client != client || !base ||
        !(op->local_offset <= segment->length && bytes <= segment->length - op->local_offset))
        return -EFAULT;
    memcpy(base + op->local_offset, values, bytes);
    if (!e->host->faulted || !e->host->faulted(e->host->context, client))
        return 0;
    client_quarantine(e, client, QUARANTINE_MEMORY);
    return -EFAULT;
}

static int atomic_result(struct engine *e, uint32_t flow, struct op *op,
                         const struct op_result *result)
{
    uint32_t elements = (uint32_t)word_reach(op->code, op->length) >> word_shift(op->code);
    uint32_t bytes = result->done << word_shift(op->code);
    int32_t status = result->status;
    uint64_t value = 0;

    if (!(op->flags & SUBMIT_FETCH) || result->done > elements ||
        result->bytes != abi_pad8(bytes) ||
        (status == 0 ? result->done != elements : status != -EBUSY))
        return -EPROTO;
    if (elements > 1) {
        int32_t placed = values_place(e, flow, op, result->values, bytes);

        value = result->done;
        if (placed < 0)
            status = placed;
    } else {
        memcpy(&value, result->values, bytes);
    }
    set64(e, &op->value, value);
    if (status < 0)
        set32(e, (uint32_t *)&op->status, (uint32_t)status);
    return 0;
}

static uint64_t atomic_shown(const struct op *op)
{
    uint64_t words = word_reach(op->code, op->length);

    if (op->status == -EBUSY)
        return op->value;
    if (op->status != 0)
        return 0;
    return op->flags & SUBMIT_FETCH && words == word_bytes(op->code) ? op->value : words;
}

const struct op_kind op_atomic = {
    .over_remote = true,
    .notifies = true,
    .counter = OP_COUNT_ATOMIC,
    .batch = WIRE_ATOMICS,
    .batch_flags = SUBMIT_FETCH,
    .batchable = atomic_batchable,
    .validate = atomic_validate,
    .bytes = atomic_reach,
    .record = atomic_record,
    .result = atomic_result,
    .failed = op_partly_done,
    .shown = atomic_shown,
};
