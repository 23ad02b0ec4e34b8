/*
 * Put: packed (id and payload in one record) or two-put (the payload by a write of its own, from
 * client memory to client memory). Two-put has three protocols: ordered, reassembled at the target,
 * chained. Over several rails a large payload leaves in stripes, a write each, all of one nonce;
 * the next link begins with the first again. Thread: the progress thread.
 */
#include "daemon/engine/ops/op.h"

#include <string.h>
#include "shm_ring/fault.h"
#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/peer/marks.h"

int put_validate(struct engine *e, uint32_t client, const struct submit_record *r,
                 const struct remote *remote)
{
    int status = op_check_remote(e, r, remote, ENGINE_REMOTE_WRITE);

    if (r->length > 0 && !(r->flags & SUBMIT_INLINE) && status != -EMSGSIZE &&
        op_check_local(e, client, r) < 0)
        return -EFAULT;
    return status;
}

/* The protocol that the operation names, or else the configured one. */
static uint32_t protocol_for(const struct engine *e, const struct op *op)
{
    uint32_t asked = op->flags & SUBMIT_PROTOCOL;
    uint32_t protocol = e->config.protocol;

    static_assert(SUBMIT_ORDERED == ENGINE_PROTOCOL_ORDERED << SUBMIT_PROTOCOL_SHIFT &&
                      SUBMIT_REASSEMBLE == ENGINE_PROTOCOL_REASSEMBLE << SUBMIT_PROTOCOL_SHIFT &&
                      SUBMIT_CHAIN == ENGINE_PROTOCOL_CHAIN << SUBMIT_PROTOCOL_SHIFT,
                  "the operation's protocols are the engine's");
    if (asked)
        protocol = asked >> SUBMIT_PROTOCOL_SHIFT;
    if (protocol != ENGINE_PROTOCOL_AUTO && protocol != ENGINE_PROTOCOL_ORDERED)
        return protocol;
    return op->length <= e->ordered_max ? ENGINE_PROTOCOL_ORDERED : ENGINE_PROTOCOL_REASSEMBLE;
}

/* Posts the stripes that are not on their way yet. 0, or why there are some left. */
static int put_stripes(struct engine *e, uint32_t flow, struct op *op, struct fabric_write write)
{
    uint32_t shift = op_stripe_shift(e, op), stripes = 1u << shift;
    uint64_t stripe = op->length >> shift & ~(uint64_t)(STRIPE_ALIGN - 1);
    const uint8_t *source = write.source;
    uint64_t target = write.remote_address;

    for (; op->posted < stripes; op->posted++) {
        uint64_t at = op->posted * stripe;
        int r;

        write.source = source + at;
        write.remote_address = target + at;
        write.length = op->posted + 1u < stripes ? stripe : op->length - at;
        r = FAULT(PUT_POST);
        if (r == 0)
            r = fabric_post_write(e->fabric, &write);
        if (r < 0)
            return r;
        op_fabric_begin(e, flow, op);
    }
    op->posted = 0;
    return 0;
}

int put_start(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    const struct flow *f = &e->flows[flow];
    const struct remote *remote = &e->remotes[op->remote];
    struct ledger_out *out = &e->peer_live[f->peer].out;
    const struct segment_live *segment;
    uint32_t protocol, nonces_kept;
    struct fabric_write write;
    bool fresh = op->posted == 0;
    int r;

    /* An earlier nonce was given back, or belonged to an earlier link. */
    if (fresh)
        op->nonce = UINT16_MAX;
    if (op->length == 0 || op->flags & SUBMIT_INLINE || op->phase == OP_READY)
        return 0;
    r = op_usable(e, flow, op);
    if (r < 0)
        return r;
    segment = &e->segment_live[op->segment];
    protocol = protocol_for(e, op);
    nonces_kept = f->traffic == FLOW_REPLIES ? 0 : NONCES_FOR_REPLIES;
    if (protocol == ENGINE_PROTOCOL_REASSEMBLE && fresh && out->nonces_free <= nonces_kept) {
        /* When nothing under way will give one back, a new link begins with all of them. */
        if (e->peer_live[f->peer].outstanding == 0 && out->voids == 0 &&
            queue_count(&e->peers[f->peer].sent) == 0) {
            peer_broken(e, f->peer, -ENOBUFS);
            return -EAGAIN;
        }
        return -EBUSY;
    }
    write = (struct fabric_write){
        .peer = f->peer,
        .memory = segment->memory.index,
        .source = segment->base + op->local_offset,
        .remote_address = remote->address + op->offset,
        .remote_key = remote->fabric_key,
        .cookie = cookie_of_op(flow, slot),
        /* A withdrawn region is answered for when no operation names it: where nothing else orders
         * that answer behind the payload, the completion must mean that it has landed. */
        .placed = protocol == ENGINE_PROTOCOL_CHAIN || op->length > e->ordered_max,
    };
    if (protocol == ENGINE_PROTOCOL_REASSEMBLE) {
        if (fresh)
            op->nonce = out->nonces[--out->nonces_free];
        write.announce = true;
        write.immediate = wire_immediate(WIRE_PAYLOAD, e->config.self, op->nonce);
    }
    r = put_stripes(e, flow, op, write);
    if (r < 0 && op->posted == 0) { /* nothing left: the nonce is still unused */
        ledger_free_nonce(e, f->peer, op->nonce == UINT16_MAX ? NONE : op->nonce);
        op->nonce = UINT16_MAX;
    } else if (r < 0 && r != -EAGAIN) { /* the target waits for the stripes that are missing */
        peer_broken(e, f->peer, r);
        r = -EAGAIN;
    }
    return r;
}

void put_abandon(struct engine *e, uint32_t peer, struct op *op)
{
    uint32_t stripes = op->posted > 0 ? op->posted : 1u << op_stripe_shift(e, op);

    if (op->length == 0 || op->flags & SUBMIT_INLINE || op->phase != OP_QUEUED ||
        op->nonce == UINT16_MAX)
        return;
    ledger_void(e, peer, op->nonce, stripes);
    op->nonce = UINT16_MAX;
    op->posted = 0; /* all stripes are sent again if the flow goes on */
}

static int put_packed(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    struct flow *f = &e->flows[flow];
    const struct remote *remote = &e->remotes[op->remote];
    uint32_t id_bytes = abi_pad8(op_id_len(op));
    uint32_t payload = abi_pad8((uint32_t)op->length);
    uint32_t payload_at = abi_pad8(op->lid_len) + abi_pad8(op->rid_len);
    struct ledger_mark mark = {.flow = flow, .epoch = f->epoch, .slot = slot, .nonce = NONE};
    struct wire_put *w;

    if (remote->state == REMOTE_REVOKED || !op_remote_ours(e, flow, op))
        return -EKEYREJECTED;
    w = ledger_stage(e, f->peer, WIRE_PUT, sizeof(*w) + id_bytes + payload, LEDGER_OPERATION,
                     &mark);
    if (!w)
        return -ENOSPC;
    op_fill_wire(e, flow, slot, op, &w->op, w + 1);
    w->slot = remote->key.slot;
    w->generation = remote->key.generation;
    w->offset = op->offset;
    op_bytes(e, f, slot, payload_at, payload, (uint8_t *)(w + 1) + id_bytes);
    return 1;
}

int put_record(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    if (op->length == 0 || op->status < 0)
        return op_stage_plain(e, flow, slot, op, WIRE_NOTE);
    if (op->flags & SUBMIT_INLINE)
        return put_packed(e, flow, slot, op);
    if (protocol_for(e, op) == ENGINE_PROTOCOL_CHAIN && op->phase != OP_READY)
        return -EINPROGRESS;
    return op_stage_plain(e, flow, slot, op, WIRE_PLACED);
}

void put_on_fabric(struct engine *e, uint32_t flow, struct op *op)
{
    if (protocol_for(e, op) != ENGINE_PROTOCOL_CHAIN || op->phase != OP_QUEUED || op->pending > 0 ||
        op->posted > 0)
        return;
    set8(e, &op->phase, OP_READY);
    commit(e);
}

const struct op_kind op_put = {
    .over_remote = true,
    .counter = OP_COUNT_PUT,
    .batch = WIRE_BATCH,
    .validate = put_validate,
    .start = put_start,
    .record = put_record,
    .on_fabric = put_on_fabric,
    .abandon = put_abandon,
};
