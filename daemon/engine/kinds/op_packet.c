/*
 * Puts to an offload's region at their origin: cut into records of their own, PACKETs, on which the
 * target runs handlers (offload/handle.h). The flow counts the bytes that stand in the ledger; only
 * the last packet ends the operation.
 *
 *     op, 10000 bytes     | PACKET at 0 | PACKET at 4096 | PACKET at 8192 |
 *                           first         flow->cut                   last
 *
 * A put that fails half way sends an empty last packet, so that its target does not wait. After a
 * REFUSE it continues where its target has stopped, and after a break of the link with the first
 * packet that was not consumed. All packets have one size, so the place of each is known.
 *
 * Thread: the progress thread.
 */
#include "daemon/engine/ops/op.h"

#include <string.h>
#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ops/owner.h"

/* Bytes of a packet: as the target asks, and no more than a record of ours holds. */
static uint32_t packet_size(const struct engine *e, const struct op *op)
{
    uint32_t asked = e->remotes[op->remote].packet, most = packet_longest(&e->config);

    return asked < most ? asked : most;
}

uint32_t packet_before(const struct engine *e, const struct op *op, uint32_t end)
{
    uint32_t size;

    if (op_is_stored(e, op))
        return op->length;
    if (!op_in_packets(e, op) || op->length == 0)
        return 0;
    size = packet_size(e, op);
    if (end == 0 || end > op->length)
        end = op->length;
    return (end - 1) / size * size;
}

uint32_t packet_behind(const struct engine *e, const struct op *op, uint32_t done)
{
    if (!op_in_packets(e, op) || done > op->length)
        return 0;
    return done < op->length ? done : packet_before(e, op, 0);
}

/* Copies bytes of the put into a record. False: the client's memory faulted, and the client is
 * quarantined. */
static bool copy_bytes(struct engine *e, uint32_t flow, uint64_t slot, const struct op *op,
                       uint32_t at, uint32_t length, uint8_t *to)
{
    struct flow *f = &e->flows[flow];
    uint32_t client;

    memset(to + length, 0, abi_pad8(length) - length);
    if (op->flags & SUBMIT_INLINE) {
        op_bytes(e, f, slot, op, abi_pad8(op->lid_len) + abi_pad8(op->rid_len) + at, length, to);
        return true;
    }
    if (length == 0)
        return true;
    memcpy(to, e->segment_live[op->segment].base + op->local_offset + at, length);
    client = owner_client(e, f->owner);
    if (!e->host->faulted || !e->host->faulted(e->host->context, client))
        return true;
    client_quarantine(e, client, QUARANTINE_MEMORY);
    return false;
}

/* Whether the packet may leave now, apart from room. Results as those of op_usable. */
static int usable(struct engine *e, uint32_t flow, const struct op *op)
{
    if (op->length > 0 && !(op->flags & SUBMIT_INLINE))
        return op_usable(e, flow, op, op->length);
    return e->remotes[op->remote].state == REMOTE_REVOKED || !op_remote_ours(e, flow, op)
               ? -EKEYREJECTED
               : 0;
}

int packet_record(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    struct flow *f = &e->flows[flow];
    const struct remote *remote = &e->remotes[op->remote];
    uint32_t at = f->cut < op->length ? f->cut : 0; /* never past this operation's end */
    uint32_t left = op->length - at, size = packet_size(e, op);
    uint32_t length = op->status < 0 ? 0 : left < size ? left : size;
    bool last = op->status < 0 || length == left;
    uint32_t id = at == 0 || last ? abi_pad8(op_id_len(op)) : 0;
    struct ledger_mark mark = {.flow = flow,
                               .epoch = f->epoch,
                               .slot = slot,
                               .nonce = NONE,
                               .part = last ? 0 : at + length};
    struct wire_packet *w;
    int r = op->status < 0 ? 0 : usable(e, flow, op);

    if (r < 0)
        return r;
    w = ledger_stage(e, f->peer, WIRE_PACKET, sizeof(*w) + id + abi_pad8(length), LEDGER_OPERATION,
                     &mark);
    if (!w)
        return -ENOSPC;
    op_fill_wire(e, flow, slot, op, &w->put.op, at == 0 || last ? w + 1 : NULL);
    w->put.op.length = length;
    w->put.slot = remote->key.slot;
    w->put.generation = remote->key.generation;
    w->put.offset = op->offset;
    w->total = op->length;
    w->at = at;
    if (op->status < 0)
        w->put.op.head.flags |= WIRE_CUT;
    /* Bytes that have faulted are zeros, and the handlers of a client of another node must not get
     * those: the packet ends the put. */
    else if (!copy_bytes(e, flow, slot, op, at, length, (uint8_t *)(w + 1) + id)) {
        w->put.op.head.flags |= WIRE_CUT;
        set32(e, (uint32_t *)&op->status, (uint32_t)-EFAULT);
    }
    set32(e, &f->cut, last ? 0 : at + length);
    return last ? 1 : OP_PART;
}
