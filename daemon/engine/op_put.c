/*
 * Put: packed (id and payload in one record) or two-put (the payload by a write of its own, from
 * client memory to client memory). Two-put has three protocols: ordered, reassembled at the target,
 * chained. Thread: the progress thread.
 */
#include "op.h"

#include <string.h>
#include "ledger.h"
#include "peer.h"

static int put_validate(struct engine *e, const struct session *s, const struct submit_record *r,
                        const struct remote *remote)
{
    int status = op_check_remote(e, r, remote, ENGINE_REMOTE_WRITE);

    if (r->length > 0 && !(r->flags & SUBMIT_INLINE) && status != -EMSGSIZE &&
        op_check_local(e, s, r) < 0)
        return -EPROTO;
    return status;
}

static uint32_t protocol_for(const struct engine *e, const struct op *op)
{
    if (e->config.protocol != ENGINE_PROTOCOL_AUTO && e->config.protocol != ENGINE_PROTOCOL_ORDERED)
        return e->config.protocol;
    return op->length <= e->ordered_max ? ENGINE_PROTOCOL_ORDERED : ENGINE_PROTOCOL_REASSEMBLE;
}

static int put_start(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    const struct flow *f = &e->flows[flow];
    const struct remote *remote = &e->remotes[op->remote];
    struct ledger_out *out = &e->peer_live[f->node].out;
    const struct segment_live *segment;
    uint32_t protocol;
    struct fabric_write write;
    int r;

    if (op->length == 0 || op->flags & SUBMIT_INLINE || op->phase == OP_READY)
        return 0;
    r = op_usable(e, flow, op);
    if (r < 0)
        return r;
    segment = &e->segment_live[op->segment];
    protocol = protocol_for(e, op);
    if (protocol == ENGINE_PROTOCOL_REASSEMBLE && out->nonces_free == 0) {
        /* Those of operations that ended between payload and record are lost to this link: when
         * nothing will give one back, begin a new link. */
        if (e->peer_live[f->node].outstanding == 0 && queue_count(&e->peers[f->node].sent) == 0)
            peer_broken(e, f->node, -ENOBUFS);
        return -EAGAIN;
    }
    op->nonce = UINT16_MAX;
    write = (struct fabric_write){
        .peer = f->node,
        .memory = segment->memory.index,
        .source = segment->base + op->local_offset,
        .length = op->length,
        .remote_address = remote->address + op->offset,
        .remote_key = remote->fabric_key,
        .cookie = cookie_of(COOKIE_OP, (uint64_t)flow << 40 | (slot & ((UINT64_C(1) << 40) - 1))),
        /* A withdrawn region is answered for when no operation names it: where nothing else orders
         * that answer behind the payload, the completion must mean that it has landed. */
        .placed = protocol != ENGINE_PROTOCOL_ORDERED,
    };
    if (protocol == ENGINE_PROTOCOL_REASSEMBLE) {
        op->nonce = out->nonces[out->nonces_free - 1];
        write.announce = true;
        write.immediate = wire_immediate(WIRE_PAYLOAD, e->config.node, op->nonce);
    }
    r = fabric_post_write(e->fabric, &write);
    if (r < 0) {
        op->nonce = UINT16_MAX;
        return r;
    }
    if (protocol == ENGINE_PROTOCOL_REASSEMBLE)
        out->nonces_free--;
    op_fabric_begin(e, flow, op);
    return 0;
}

static int put_packed(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    struct flow *f = &e->flows[flow];
    const struct remote *remote = &e->remotes[op->remote];
    uint32_t id_bytes = op->flags & SUBMIT_NO_RCE ? 0 : abi_pad8(op->rid_len);
    uint32_t payload = abi_pad8((uint32_t)op->length);
    uint32_t payload_at = abi_pad8(op->lid_len) + abi_pad8(op->rid_len);
    struct ledger_mark mark = {.flow = flow, .epoch = f->epoch, .slot = slot, .nonce = NONE};
    struct wire_put *w;

    if (remote->state == REMOTE_REVOKED)
        return -EKEYREJECTED;
    w = ledger_stage(e, f->node, WIRE_PUT, sizeof(*w) + id_bytes + payload, LEDGER_OPERATION,
                     &mark);
    if (!w)
        return -ENOSPC;
    op_fill_wire(e, flow, slot, op, &w->op);
    if (id_bytes == 0)
        w->op.rid_len = 0;
    w->slot = remote->key.slot;
    w->generation = remote->key.generation;
    w->offset = op->offset;
    if (id_bytes > 0)
        op_bytes(e, f, slot, abi_pad8(op->lid_len), id_bytes, w + 1);
    op_bytes(e, f, slot, payload_at, payload, (uint8_t *)(w + 1) + id_bytes);
    return 1;
}

static int put_record(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    if (op->length == 0)
        return op_stage_plain(e, flow, slot, op, WIRE_NOTE);
    if (op->flags & SUBMIT_INLINE)
        return put_packed(e, flow, slot, op);
    if (e->config.protocol == ENGINE_PROTOCOL_CHAIN && op->phase != OP_READY)
        return -EINPROGRESS;
    return op_stage_plain(e, flow, slot, op, WIRE_PLACED);
}

static void put_on_fabric(struct engine *e, uint32_t flow, struct op *op)
{
    if (e->config.protocol != ENGINE_PROTOCOL_CHAIN || op->phase != OP_QUEUED)
        return;
    set8(e, &op->phase, OP_READY);
    commit(e);
}

const struct op_kind op_put = {put_validate, put_start, put_record, put_on_fabric};
