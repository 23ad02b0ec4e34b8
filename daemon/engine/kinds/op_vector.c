/*
 * A vector's short pieces, which stand in one record, and its end (session_abi.h). Its long pieces
 * are puts and gets of their own in the same flow. The end of a vector of puts is its last block,
 * which may be empty. The end of a vector of gets is a record after all reads, which brings the
 * event to the owner of the data. Thread: the progress thread.
 */
#include "daemon/engine/kinds/vector_format.h"

#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/ops/op.h"

static uint32_t block_bytes(const struct submit_record *r)
{
    return r->flags & SUBMIT_INLINE ? (uint32_t)r->length : 0;
}

static const uint8_t *block_of(const struct submit_record *r)
{
    return (const uint8_t *)(r + 1) + abi_pad8(r->lid_len) + abi_pad8(r->rid_len);
}

static int vector_validate(struct engine *e, uint32_t client, const struct submit_record *r,
                           const struct remote *remote)
{
    uint32_t bytes = block_bytes(r);
    struct vector_extent extent;

    if (r->length != bytes || vector_look(block_of(r), bytes, &extent) < 0 ||
        extent.payload > r->total ||
        (r->code != SUBMIT_PUT && (r->code != SUBMIT_GET || bytes > 0)))
        return -EPROTO;
    if (r->total > e->fabric->traits.message_max || r->total > UINT32_MAX)
        return -EMSGSIZE;
    if (!remote->has_key || remote->state == REMOTE_REVOKED ||
        !(remote->rights & (r->code == SUBMIT_PUT ? ENGINE_REMOTE_WRITE : ENGINE_REMOTE_READ)))
        return -EKEYREJECTED;
    if (remote->packet > 0 && r->code == SUBMIT_PUT)
        return -EOPNOTSUPP;
    return extent.end <= remote->length ? 0 : -ERANGE;
}

static uint64_t vector_bytes(const struct submit_record *r)
{
    struct vector_extent extent;

    if (r->flags & SUBMIT_MORE)
        return r->total;
    (void)vector_look(block_of(r), block_bytes(r), &extent);
    return extent.payload;
}

/* Stages the end of a vector of gets, which reports to the target that its data has been read. */
static int stage_read(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    struct flow *f = &e->flows[flow];
    struct ledger_mark mark = {.flow = flow, .epoch = f->epoch, .slot = slot, .nonce = NONE};
    struct wire_op *w = ledger_stage(e, f->peer, WIRE_GOT, sizeof(*w) + abi_pad8(op_id_len(op)),
                                     LEDGER_OPERATION, &mark);

    if (!w)
        return -ENOSPC;
    op_fill_wire(e, flow, slot, op, w, w + 1);
    w->length = (uint32_t)op->total;
    return 1;
}

static int stage_block(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    struct flow *f = &e->flows[flow];
    const struct remote *remote = &e->remotes[op->remote];
    struct ledger_mark mark = {.flow = flow, .epoch = f->epoch, .slot = slot, .nonce = NONE};
    uint32_t id = abi_pad8(op_id_len(op)), bytes = op->length;
    uint32_t block_at = abi_pad8(op->lid_len) + abi_pad8(op->rid_len);
    struct vector_extent extent;
    struct wire_vector *w =
        ledger_stage(e, f->peer, WIRE_VECTOR, sizeof(*w) + id + bytes, LEDGER_OPERATION, &mark);

    if (!w)
        return -ENOSPC;
    op_fill_wire(e, flow, slot, op, &w->op, w + 1);
    w->op.length = (uint32_t)op->total;
    w->slot = remote->key.slot;
    w->generation = remote->key.generation;
    op_bytes(e, f, slot, op, block_at, bytes, (uint8_t *)(w + 1) + id);
    (void)vector_look((uint8_t *)(w + 1) + id, bytes, &extent);
    e->rounded += extent.rounded;
    return 1;
}

static int vector_record(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    if (op->status < 0)
        return op_stage_plain(e, flow, slot, op, WIRE_NOTE);
    if (e->remotes[op->remote].state == REMOTE_REVOKED || !op_remote_ours(e, flow, op))
        return -EKEYREJECTED;
    return op->code == SUBMIT_GET ? stage_read(e, flow, slot, op) : stage_block(e, flow, slot, op);
}

const struct op_kind op_vector = {
    .over_remote = true,
    .notifies = true,
    .in_vector = true,
    .counter = OP_COUNT_PUT,
    .validate = vector_validate,
    .bytes = vector_bytes,
    .record = vector_record,
};
