/*
 * Get: reads by the fabric into client memory, piece by piece; then a record reports to the owner
 * of the data that it has been read. A get without a remote event has this record only where its
 * target observes. Thread: the progress thread.
 */
#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/ops/op.h"

#include "shm_ring/fault.h"

static int get_validate(struct engine *e, uint32_t client, const struct submit_record *r,
                        const struct remote *remote)
{
    int status = op_check_remote(e, r, remote, ENGINE_REMOTE_READ);

    if (r->flags & SUBMIT_INLINE)
        return -EPROTO;
    if (r->length > 0 && status != -EMSGSIZE && op_check_local(e, client, r) < 0)
        return -EFAULT;
    return status;
}

static int get_start(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    const struct remote *remote = &e->remotes[op->remote];
    const struct segment_live *segment;
    uint64_t posted = e->flows[flow].posted, length;
    struct fabric_read read;
    int r;

    if (op->length == 0 || op->phase == OP_READY)
        return 0;
    r = op_usable(e, flow, op, op->length);
    if (r == 0)
        r = op_window_open(e, flow);
    if (r < 0)
        return r;
    length = op_piece_length(e, op, posted);
    segment = &e->segment_live[op->segment];
    read = (struct fabric_read){
        .peer = e->flows[flow].peer,
        .memory = segment->memory.index,
        .destination = segment->base + op->local_offset + posted,
        .length = length,
        .remote_address = remote->address + op->offset + posted,
        .remote_key = remote->fabric_key,
        .cookie = cookie_of_op(flow, slot),
    };
    r = FAULT(GET_POST);
    if (r == 0)
        r = fabric_post_read(e->fabric, &read);
    return r < 0 ? r : op_piece_posted(e, flow, op, length);
}

/* Whether a handler of the target is to see the get. */
static bool is_observed(const struct engine *e, uint32_t flow, const struct op *op)
{
    return e->remotes[op->remote].ways & GETS_OBSERVED && op_remote_ours(e, flow, op);
}

static int stage_observed(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    struct flow *f = &e->flows[flow];
    const struct engine_key *key = &e->remotes[op->remote].key;
    struct ledger_mark mark = {.flow = flow, .epoch = f->epoch, .slot = slot, .nonce = NONE};
    struct wire_put *w = ledger_stage(
        e, f->peer, WIRE_OBSERVED, sizeof(*w) + abi_pad8(op_id_len(op)), LEDGER_OPERATION, &mark);

    if (!w)
        return -ENOSPC;
    op_fill_wire(e, flow, slot, op, &w->op, w + 1);
    w->slot = key->slot;
    w->generation = key->generation;
    w->offset = op->offset;
    return 1;
}

static int get_record(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    /* Even a get without a remote event waits here: once it counted as staged, a read that is lost
     * with the link would not be posted again. */
    if (op->length > 0 && op->phase != OP_READY)
        return -EINPROGRESS;
    return is_observed(e, flow, op) ? stage_observed(e, flow, slot, op)
                                    : op_stage_plain(e, flow, slot, op, WIRE_GOT);
}

static void get_on_fabric(struct engine *e, uint32_t flow, struct op *op)
{
    bool silent;

    if (op->phase != OP_QUEUED)
        return;
    silent = op->flags & SUBMIT_NO_RCE && !is_observed(e, flow, op);
    set8(e, &op->phase, silent ? OP_PLACED : OP_READY);
    commit(e);
}

const struct op_kind op_get = {
    .over_remote = true,
    .in_vector = true,
    .reads = true,
    .notifies = true,
    .counter = OP_COUNT_GET,
    .validate = get_validate,
    .start = get_start,
    .record = get_record,
    .on_fabric = get_on_fabric,
};
