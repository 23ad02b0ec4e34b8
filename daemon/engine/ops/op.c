/* Checks and helpers that the operation kinds share. Thread: the progress thread. */
#include "daemon/engine/ops/op.h"

#include <string.h>
#include "shm_ring/fault.h"
#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/ops/message.h"
#include "daemon/engine/ops/owner.h"
#include "daemon/engine/ops/signal.h"
#include "daemon/engine/ops/turn.h"

int op_check_remote(const struct engine *e, const struct submit_record *r,
                    const struct remote *remote, uint32_t right)
{
    if (r->length == 0)
        return 0;
    if (r->length > e->fabric->traits.message_max || r->length > UINT32_MAX)
        return -EMSGSIZE;
    if (!remote->has_key || remote->state == REMOTE_REVOKED || !(remote->rights & right))
        return -EKEYREJECTED;
    if (remote->packet > 0 && right == ENGINE_REMOTE_WRITE &&
        (r->kind != SUBMIT_PUT || r->flags & SUBMIT_MORE))
        return -EOPNOTSUPP;
    if (!(r->offset <= remote->length && r->length <= remote->length - r->offset))
        return -ERANGE;
    return 0;
}

bool op_remote_given(const struct engine *e, uint32_t session, uint32_t remote)
{
    const struct remote *r;

    if (remote >= e->config.remotes_max)
        return false;
    r = &e->remotes[remote];
    return r->owner == owner_of(OWNER_SESSION, session) && !r->unbound &&
           (r->state == REMOTE_READY || r->state == REMOTE_STALE || r->state == REMOTE_REVOKED);
}

int op_check_local(const struct engine *e, uint32_t client, const struct submit_record *r)
{
    const struct segment *segment;

    if (r->segment >= e->config.segments_max)
        return -EFAULT;
    segment = &e->segments[r->segment];
    if (segment->state != SEGMENT_OPEN || segment->client != client)
        return -EFAULT;
    if (!(r->local_offset <= segment->length && r->length <= segment->length - r->local_offset))
        return -EFAULT;
    return 0;
}

bool op_remote_ours(const struct engine *e, uint32_t flow, const struct op *op)
{
    const struct flow *f = &e->flows[flow];
    const struct remote *remote = &e->remotes[op->remote];

    return remote->owner == f->owner && remote->peer == f->peer && remote->endpoint == f->endpoint;
}

int op_usable(const struct engine *e, uint32_t flow, const struct op *op, uint32_t length)
{
    uint64_t owner = e->flows[flow].owner;
    const struct segment *segment = &e->segments[op->segment];
    const struct segment_live *live = &e->segment_live[op->segment];

    if (owner == OWNER_GONE)
        return -EHOSTDOWN;
    /* While the operation waited its segment may have gone, and the index may be another
     * client's. */
    if (segment->state != SEGMENT_OPEN || segment->client != owner_client(e, owner) ||
        !(op->local_offset <= segment->length && length <= segment->length - op->local_offset))
        return -EFAULT;
    if (!op_remote_ours(e, flow, op))
        return -EKEYREJECTED;
    switch (e->remotes[op->remote].state) {
    case REMOTE_READY:
        return live->registered ? 0 : live->status < 0 ? live->status : -EINPROGRESS;
    case REMOTE_STALE:
        return -EINPROGRESS;
    default:
        return -EKEYREJECTED;
    }
}

uint32_t op_piece_shift(const struct engine *e, const struct op *op)
{
    uint32_t bits = 64u - (uint32_t)__builtin_clzll(op->length | 1);
    uint32_t shift = e->piece_shift;

    if (bits > shift + PIECES_SHIFT)
        shift = bits - PIECES_SHIFT;
    if (op->length >= e->config.stripe_min && e->rails_shift > 0 &&
        bits - 1 < shift + e->rails_shift)
        shift = bits - 1 - e->rails_shift;
    return shift;
}

uint32_t op_pieces(const struct engine *e, const struct op *op, uint64_t bytes)
{
    uint32_t shift = op_piece_shift(e, op);

    static_assert(1u << PIECES_SHIFT <= WIRE_PIECES_MAX, "a record can name them");
    return (uint32_t)((bytes + (UINT64_C(1) << shift) - 1) >> shift);
}

uint64_t op_piece_length(const struct engine *e, const struct op *op, uint64_t posted)
{
    uint64_t piece = UINT64_C(1) << op_piece_shift(e, op);
    uint64_t left = op->length - posted;

    return left < piece ? left : piece;
}

/* The approximate number of bytes in each fabric operation of `op`. */
static uint64_t fabric_bytes(const struct engine *e, const struct op *op)
{
    return op_piece_length(e, op, 0);
}

int op_window_open(const struct engine *e, uint32_t flow)
{
    const struct peer_live *live = &e->peer_live[e->flows[flow].peer];

    if (live->bytes >= turn_window(e, live))
        return -ENOBUFS;
    return live->blocked.first == NONE || e->flow_live[flow].unblocked ? 0 : -ENOBUFS;
}

int op_piece_posted(struct engine *e, uint32_t flow, struct op *op, uint64_t length)
{
    struct flow *f = &e->flows[flow];
    struct peer_live *live = &e->peer_live[f->peer];

    op->pending++;
    e->flow_live[flow].outstanding++;
    e->flow_live[flow].unblocked = false;
    live->outstanding++;
    live->bytes += fabric_bytes(e, op);
    e->segment_live[op->segment].busy++;
    e->remote_busy[op->remote]++;
    FAULT(FABRIC_BEGUN);
    f->posted += length;
    return f->posted < op->length;
}

void op_fabric_end(struct engine *e, uint32_t flow, struct op *op)
{
    FAULT(FABRIC_ENDED);
    op->pending--;
    e->flow_live[flow].outstanding--;
    e->peer_live[e->flows[flow].peer].outstanding--;
    e->peer_live[e->flows[flow].peer].bytes -= fabric_bytes(e, op);
    if (--e->segment_live[op->segment].busy == 0 &&
        e->segments[op->segment].state == SEGMENT_CLOSING)
        e->sweep = true;
    if (--e->remote_busy[op->remote] == 0 && e->remotes[op->remote].revoke_due)
        e->sweep = true; /* the sweep answers the REVOKE */
}

void op_bytes_behind(struct engine *e, struct flow *f, uint64_t slot, uint32_t from, uint32_t n,
                     void *to)
{
    uint8_t *out = to;

    while (n > 0) {
        uint64_t entry = slot + 1 + from / sizeof(struct op);
        uint32_t in_entry = from % sizeof(struct op);
        uint32_t left = queue_side_by_side(&f->ops, entry) * (uint32_t)sizeof(struct op) - in_entry;
        uint32_t take = n < left ? n : left;

        memcpy(out, (const uint8_t *)queue_at(&e->pool, &f->ops, entry) + in_entry, take);
        out += take;
        from += take;
        n -= take;
    }
}

/* A failed operation that is sent anyway brings no event: a reply (the requester gets its credit
 * back), or an operation that its target has refused and waits for. */
static bool op_brings_event(const struct op *op)
{
    return !(op->flags & SUBMIT_NO_RCE) && op->status == 0;
}

uint32_t op_id_len(const struct op *op)
{
    if (op_brings_event(op))
        return op->rid_len;
    return submit_is_message(op->kind) ? sizeof(struct message) : 0;
}

/* Whether records of this kind say that others of their vector follow. */
static bool names_parts(uint8_t kind)
{
    return kind == WIRE_PUT || kind == WIRE_PLACED || kind == WIRE_VECTOR || kind == WIRE_STRIDED;
}

void op_fill_wire(struct engine *e, uint32_t flow, uint64_t slot, struct op *op, struct wire_op *w,
                  void *id)
{
    struct flow *f = &e->flows[flow];

    if (!op_brings_event(op))
        w->head.flags |= WIRE_NO_EVENT;
    else if (op->flags & SUBMIT_NOTIFY)
        w->head.flags |= WIRE_NOTIFY;
    if (op->flags & SUBMIT_MORE && w->head.flags & WIRE_NO_EVENT && names_parts(w->head.kind))
        w->head.flags |= WIRE_PART;
    w->flow = f->traffic == FLOW_REPLIES ? flow : f->inflow;
    w->sequence = (uint32_t)slot;
    w->rid = op->rid;
    w->rid_len = (uint16_t)op_id_len(op);
    w->nonce = 0;
    w->length = op->status == 0 ? (uint32_t)op->length : 0;
    if (!id) {
        w->rid_len = 0;
        return;
    }
    op_bytes(e, f, slot, op, abi_pad8(op->lid_len), abi_pad8(w->rid_len), id);
    if (submit_is_message(op->kind)) {
        w->head.flags |= message_wire_flags(f, op);
        message_fill(e, flow, op, w->rid_len == sizeof(struct message), id);
    } else if (op->kind == SUBMIT_SIGNAL && w->rid_len > 0) {
        signal_fill(&e->remotes[op->remote].key, id);
    }
}

void op_partly_done(struct engine *e, struct op *op, uint32_t done)
{
    set64(e, &op->value, done);
}

int op_stage_plain(struct engine *e, uint32_t flow, uint64_t slot, struct op *op, uint8_t kind)
{
    struct flow *f = &e->flows[flow];
    uint32_t id_bytes = abi_pad8(op_id_len(op));
    struct ledger_mark mark = {.flow = flow, .epoch = f->epoch, .slot = slot, .nonce = NONE};
    struct wire_op *w;

    w = ledger_stage(e, f->peer, kind, sizeof(*w) + id_bytes, LEDGER_OPERATION, &mark);
    if (!w)
        return -ENOSPC;
    op_fill_wire(e, flow, slot, op, w, w + 1);
    return 1;
}
