/*
 * A batch: small puts, or atomics of one code, of one flow over one remote, one after the other in
 * the submit ring, taken as one operation (session_batch.c): one record on the wire, one
 * acknowledgement. The operations of a batch succeed or fail together, as they would one by one:
 * they do not differ in anything that a target can refuse. Atomics are an exception: where they end
 * with -EBUSY, the first op->value ones are done. Each has its own events. Puts to an offload's
 * region are another exception: each ends on its own, and where some have failed (op->apart), the
 * status of each takes the place of its payload.
 *
 * The client does not see the batch. The operation's entries hold, after the first, what goes on
 * the wire (struct wire_batch_put and payload, of each), then the lids:
 *
 *     op | put, payload | put, payload | ... | lid | lid | ...
 *         <--------- batch.bytes ----------> <- 8 * batch.count ->
 *
 * A value that an atomic has fetched takes its operand's place. All entries of a batch stand in one
 * chunk, so they can be copied in one piece. Thread: the progress thread.
 */
#include "daemon/engine/kinds/batch_format.h"

#include <string.h>
#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ops/op.h"

static int batch_record(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    const struct flow *f = &e->flows[flow];
    const struct remote *remote = &e->remotes[op->remote];
    struct ledger_mark mark = {.flow = flow, .epoch = f->epoch, .slot = slot, .nonce = NONE};
    uint32_t bytes = op->batch.bytes;
    struct wire_batch *w;

    if (op->status < 0)
        return op_stage_plain(e, flow, slot, op, WIRE_NOTE);
    if (!op_remote_ours(e, flow, op))
        return -EKEYREJECTED;
    /* A batch that its target has refused may be done in part; only the target can say which
     * part. */
    if (remote->state == REMOTE_REVOKED && !(remote->packet > 0 && flow_awaited(f, slot)))
        return -EKEYREJECTED;
    w = ledger_stage(e, f->peer, op->batch.record, sizeof(*w) + bytes, LEDGER_OPERATION, &mark);
    if (!w)
        return -ENOSPC;
    op_fill_wire(e, flow, slot, op, &w->op, w + 1);
    w->op.count = op->batch.count;
    w->op.atomic = op_wire_code(op);
    w->slot = remote->key.slot;
    w->generation = remote->key.generation;
    memcpy(w + 1, op + 1, bytes);
    return 1;
}

/* Where the payload of the put at `at` stands. */
static uint64_t *batch_payload(const struct op *op, uint32_t at)
{
    return (uint64_t *)((uint8_t *)(op + 1) + at + sizeof(struct wire_batch_put));
}

/* Each value takes the place of its operand, which has 8 bytes with its padding. */
static int batch_result(struct engine *e, uint32_t flow, struct op *op,
                        const struct op_result *result)
{
    uint32_t at = 0, length;
    uint64_t rid, offset, value;

    if (!(op->flags & SUBMIT_FETCH) || result->done > op->batch.count ||
        result->bytes != 8 * result->done ||
        (result->status == 0 ? result->done != op->batch.count : result->status != -EBUSY))
        return -EPROTO;
    for (uint32_t i = 0; i < result->done; i++) {
        memcpy(&value, result->values + UINT64_C(8) * i, sizeof(value));
        set64(e, batch_payload(op, at), value);
        at = batch_step((const uint8_t *)(op + 1), at, &rid, &offset, &length);
    }
    if (result->status < 0) {
        set32(e, (uint32_t *)&op->status, (uint32_t)result->status);
        set64(e, &op->value, result->done);
    }
    return 0;
}

static void batch_failed(struct engine *e, struct op *op, uint32_t done)
{
    if (op->batch.kind == SUBMIT_ATOMIC)
        op_partly_done(e, op, done);
}

static int batch_failed_apart(struct engine *e, struct op *op, const struct op_outcomes *outcomes)
{
    uint32_t at = 0, length;
    uint64_t rid, offset;

    if (op->batch.kind != SUBMIT_PUT || outcomes->count != op->batch.count)
        return -EPROTO;
    for (uint32_t i = 0; i < outcomes->count; i++) {
        set64(e, batch_payload(op, at), outcomes->errnos[i]);
        at = batch_step((const uint8_t *)(op + 1), at, &rid, &offset, &length);
    }
    set64(e, &op->apart, 1);
    return 0;
}

/* The status of the i-th operation, which begins at `at`, of a batch that has failed. */
static int32_t part_status(const struct op *op, uint32_t i, uint32_t at)
{
    if (op->batch.kind == SUBMIT_PUT && op->apart)
        return -(int32_t)*batch_payload(op, at);
    return op->status == -EBUSY && i < op->value ? 0 : op->status;
}

static uint32_t batch_part(const struct op *op, uint32_t i, uint32_t at, struct op_part *out)
{
    const uint8_t *block = (const uint8_t *)(op + 1);
    uint64_t rid, offset;
    uint32_t length, next = batch_step(block, at, &rid, &offset, &length);

    memcpy(&out->lid, block + op->batch.bytes + UINT64_C(8) * i, sizeof(out->lid));
    out->status = 0;
    out->bytes = length;
    if (__builtin_expect((op->flags & SUBMIT_FETCH) != 0, false))
        out->bytes = *batch_payload(op, at);
    if (__builtin_expect(op->status < 0, false)) {
        out->status = part_status(op, i, at);
        if (out->status < 0)
            out->bytes = 0;
    }
    return next;
}

const struct op_kind op_batch = {
    .record = batch_record,
    .result = batch_result,
    .failed = batch_failed,
    .failed_apart = batch_failed_apart,
    .part = batch_part,
};
