/*
 * A batch: small puts of one flow over one remote, one behind the other in the submit ring, taken
 * as one operation (session_batch.c): one record on the wire, one acknowledgement. The puts succeed
 * or fail together, as they would anyway: they do not differ in anything that a target can refuse.
 * Each put has its own events.
 *
 * The client does not see the batch. The operation's entries hold, behind the first, what goes on
 * the wire (struct wire_batch_put and payload, of each), then the lids:
 *
 *     op | put, payload | put, payload | ... | lid | lid | ...
 *         <--------- batch.bytes ----------> <- 8 * batch.count ->
 *
 * All entries of a batch stand in one chunk, so they can be copied in one piece. Thread: the
 * progress thread.
 */
#include "daemon/engine/ops/batch_format.h"

#include <string.h>
#include "daemon/engine/ledger/ledger.h"
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
    if (remote->state == REMOTE_REVOKED || !op_remote_ours(e, flow, op))
        return -EKEYREJECTED;
    w = ledger_stage(e, f->peer, op->batch.record, sizeof(*w) + bytes, LEDGER_OPERATION, &mark);
    if (!w)
        return -ENOSPC;
    op_fill_wire(e, flow, slot, op, &w->op, w + 1);
    w->op.count = op->batch.count;
    w->slot = remote->key.slot;
    w->generation = remote->key.generation;
    memcpy(w + 1, op + 1, bytes);
    return 1;
}

static uint32_t batch_part(const struct op *op, uint32_t i, uint32_t at, uint64_t *lid,
                           uint64_t *bytes)
{
    const uint8_t *block = (const uint8_t *)(op + 1);
    uint64_t rid, offset;
    uint32_t length;

    memcpy(lid, block + op->batch.bytes + UINT64_C(8) * i, sizeof(*lid));
    at = batch_step(block, at, &rid, &offset, &length);
    *bytes = length;
    return at;
}

const struct op_kind op_batch = {.record = batch_record, .part = batch_part};
