/*
 * Put: packed (id and payload in one record) or two-put (the payload by writes of its own, from
 * client memory to client memory). Two-put has three protocols: ordered, reassembled at the target,
 * chained. A large payload leaves in pieces, a write each, all of one nonce, while the peer's
 * window has room; on the next link it begins with the first piece again. A put to an offload's
 * region goes as PACKETs (op_packet.c), or, where that region stores, by two-put with a PACKET as
 * its record. Thread: the progress thread.
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
    return op_piece_length(e, op, 0) <= e->ordered_max ? ENGINE_PROTOCOL_ORDERED
                                                       : ENGINE_PROTOCOL_REASSEMBLE;
}

/* Takes a nonce for the payload that begins, if it needs one. Returns 0, -EBUSY, or -EAGAIN: the
 * link begins again. */
static int put_take_nonce(struct engine *e, const struct flow *f, struct op *op, uint32_t protocol)
{
    struct peer_live *live = &e->peer_live[f->peer];
    uint32_t kept = f->traffic == FLOW_REPLIES ? 0 : NONCES_FOR_REPLIES;

    op->nonce = UINT16_MAX; /* an earlier one was given back, or belonged to an earlier link */
    if (protocol != ENGINE_PROTOCOL_REASSEMBLE)
        return 0;
    if (live->out.nonces_free > kept) {
        op->nonce = (uint16_t)live->out.nonces[--live->out.nonces_free];
        return 0;
    }
    /* When no operation under way will give a nonce back, a new link begins with all of them
     * free. */
    if (live->outstanding > 0 || live->out.voids > 0 || queue_count(&e->peers[f->peer].sent) > 0)
        return -EBUSY;
    peer_broken(e, f->peer, -ENOBUFS);
    return -EAGAIN;
}

int put_start(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    const struct flow *f = &e->flows[flow];
    const struct remote *remote = &e->remotes[op->remote];
    const struct segment_live *segment;
    uint64_t posted = f->posted, length;
    uint32_t protocol;
    struct fabric_write write;
    int r;

    if (op->length == 0 || op->flags & SUBMIT_INLINE || op->phase == OP_READY)
        return 0;
    r = op_usable(e, flow, op, op->length);
    if (op_in_packets(e, op))
        return r;
    if (r == 0)
        r = op_window_open(e, flow);
    protocol = protocol_for(e, op);
    if (r == 0 && posted == 0)
        r = put_take_nonce(e, f, op, protocol);
    if (r < 0)
        return r;
    segment = &e->segment_live[op->segment];
    length = op_piece_length(e, op, posted);
    write = (struct fabric_write){
        .peer = f->peer,
        .memory = segment->memory.index,
        .source = segment->base + op->local_offset + posted,
        .length = length,
        .remote_address = remote->address + op->offset + posted,
        .remote_key = remote->fabric_key,
        .cookie = cookie_of_op(flow, slot),
        /* REVOKE is answered when no operation names the region any more. Where nothing else orders
         * that answer after the payload, the completion must mean that the payload is placed. */
        .placed = protocol == ENGINE_PROTOCOL_CHAIN || op_piece_length(e, op, 0) > e->ordered_max,
        .announce = protocol == ENGINE_PROTOCOL_REASSEMBLE,
    };
    if (write.announce)
        write.immediate = wire_immediate(WIRE_PAYLOAD, e->config.self, op->nonce);
    r = FAULT(PUT_POST);
    if (r == 0)
        r = fabric_post_write(e->fabric, &write);
    if (r == 0)
        return op_piece_posted(e, flow, op, length);
    if (posted == 0) { /* no piece was posted, so the nonce is unused */
        ledger_free_nonce(e, f->peer, op->nonce == UINT16_MAX ? NONE : op->nonce);
        op->nonce = UINT16_MAX;
    } else if (r != -EAGAIN) { /* the target waits for the missing pieces */
        peer_broken(e, f->peer, r);
        r = -EAGAIN;
    }
    return r;
}

void put_abandon(struct engine *e, uint32_t flow, struct op *op, uint64_t posted)
{
    struct flow *f = &e->flows[flow];

    if (op->length == 0 || op->flags & SUBMIT_INLINE || op->phase != OP_QUEUED ||
        op->nonce == UINT16_MAX)
        return;
    ledger_void(e, f->peer, op->nonce, op_pieces(e, op, posted));
    op->nonce = UINT16_MAX;
    if (posted < op->length)
        f->posted = 0; /* all pieces are sent again if the flow continues */
}

/* As put_packed. Compiled into put_record, which knows kind and padding. */
static inline __attribute__((always_inline)) int packed(struct engine *e, uint32_t flow,
                                                        uint64_t slot, struct op *op, uint8_t kind,
                                                        uint32_t pad, struct wire_put **out)
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
    w = ledger_stage(e, f->peer, kind, sizeof(*w) + id_bytes + payload + pad, LEDGER_OPERATION,
                     &mark);
    if (!w)
        return -ENOSPC;
    op_fill_wire(e, flow, slot, op, &w->op, w + 1);
    w->slot = remote->key.slot;
    w->generation = remote->key.generation;
    w->offset = op->offset;
    op_bytes(e, f, slot, op, payload_at, payload, (uint8_t *)(w + 1) + id_bytes);
    if (pad > 0)
        memset((uint8_t *)(w + 1) + id_bytes + payload, 0, pad);
    *out = w;
    return 1;
}

int put_packed(struct engine *e, uint32_t flow, uint64_t slot, struct op *op, uint8_t kind,
               uint32_t pad, struct wire_put **out)
{
    return packed(e, flow, slot, op, kind, pad, out);
}

/* Stages the record of a payload that is announced. */
static int put_matched(struct engine *e, uint32_t flow, uint64_t slot, struct op *op, uint8_t kind)
{
    struct flow *f = &e->flows[flow];
    uint32_t id_bytes = abi_pad8(op_id_len(op));
    struct ledger_mark mark = {.flow = flow, .epoch = f->epoch, .slot = slot, .nonce = op->nonce};
    struct wire_pieces pieces = {.count = op_pieces(e, op, op->length)};
    struct wire_op *w = ledger_stage(e, f->peer, kind, sizeof(*w) + id_bytes + sizeof(pieces),
                                     LEDGER_OPERATION, &mark);

    if (!w)
        return -ENOSPC;
    op_fill_wire(e, flow, slot, op, w, w + 1);
    w->head.flags |= WIRE_NONCE;
    w->nonce = op->nonce;
    memcpy((uint8_t *)(w + 1) + id_bytes, &pieces, sizeof(pieces));
    op->nonce = UINT16_MAX;
    return 1;
}

/* As put_record_as. Compiled into put_record, which knows the kinds. */
static inline __attribute__((always_inline)) int record_as(struct engine *e, uint32_t flow,
                                                           uint64_t slot, struct op *op,
                                                           uint8_t packed_kind, uint8_t placed,
                                                           uint8_t bare)
{
    struct wire_put *unused;

    if (op->length == 0 || op->status < 0)
        return op_stage_plain(e, flow, slot, op, op->status < 0 ? WIRE_NOTE : bare);
    if (op->flags & SUBMIT_INLINE)
        return packed(e, flow, slot, op, packed_kind, 0, &unused);
    if (protocol_for(e, op) == ENGINE_PROTOCOL_CHAIN && op->phase != OP_READY)
        return -EINPROGRESS;
    return op->nonce != UINT16_MAX ? put_matched(e, flow, slot, op, placed)
                                   : op_stage_plain(e, flow, slot, op, placed);
}

int put_record_as(struct engine *e, uint32_t flow, uint64_t slot, struct op *op, uint8_t packed,
                  uint8_t placed, uint8_t bare)
{
    return record_as(e, flow, slot, op, packed, placed, bare);
}

/* Stages the record of a put to an offload's region whose payload travels on its own. A put that
 * has failed is cut, because its target may have begun to handle it. */
static int put_stored(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    struct flow *f = &e->flows[flow];
    const struct remote *remote = &e->remotes[op->remote];
    bool failed = op->status < 0, matched = !failed && op->nonce != UINT16_MAX;
    uint32_t id_bytes = abi_pad8(op_id_len(op));
    struct ledger_mark mark = {
        .flow = flow, .epoch = f->epoch, .slot = slot, .nonce = matched ? op->nonce : NONE};
    struct wire_pieces pieces = {.count = op_pieces(e, op, op->length)};
    uint32_t behind = matched ? sizeof(pieces) : 0;
    struct wire_packet *w;

    if (!failed && protocol_for(e, op) == ENGINE_PROTOCOL_CHAIN && op->phase != OP_READY)
        return -EINPROGRESS;
    w = ledger_stage(e, f->peer, WIRE_PACKET, sizeof(*w) + id_bytes + behind, LEDGER_OPERATION,
                     &mark);
    if (!w)
        return -ENOSPC;
    op_fill_wire(e, flow, slot, op, &w->put.op, w + 1);
    w->put.op.head.flags |= failed ? WIRE_CUT : WIRE_STORED | (matched ? WIRE_NONCE : 0);
    w->put.op.length = 0;
    w->put.slot = remote->key.slot;
    w->put.generation = remote->key.generation;
    w->put.offset = op->offset;
    w->total = w->at = op->length;
    if (!matched)
        return 1;
    w->put.op.nonce = op->nonce;
    memcpy((uint8_t *)(w + 1) + id_bytes, &pieces, sizeof(pieces));
    op->nonce = UINT16_MAX;
    return 1;
}

int put_record(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    if (op_is_stored(e, op))
        return put_stored(e, flow, slot, op);
    if (op_in_packets(e, op))
        return packet_record(e, flow, slot, op);
    return record_as(e, flow, slot, op, WIRE_PUT, WIRE_PLACED, WIRE_NOTE);
}

void put_on_fabric(struct engine *e, uint32_t flow, struct op *op)
{
    if (protocol_for(e, op) != ENGINE_PROTOCOL_CHAIN || op->phase != OP_QUEUED)
        return;
    set8(e, &op->phase, OP_READY);
    commit(e);
}

const struct op_kind op_put = {
    .over_remote = true,
    .notifies = true,
    .in_vector = true,
    .counter = OP_COUNT_PUT,
    .batch = WIRE_BATCH,
    .validate = put_validate,
    .start = put_start,
    .record = put_record,
    .on_fabric = put_on_fabric,
    .abandon = put_abandon,
};
