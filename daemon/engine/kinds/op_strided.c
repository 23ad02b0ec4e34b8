/*
 * A record of a vector of puts for equal elements at equal distances. Its submission describes the
 * elements (struct submit_strided). The record on the wire has their bytes, which are copied out of
 * the client's memory when the record is staged; after a break of the link they are copied again.
 * Thread: the progress thread.
 */
#include "daemon/engine/kinds/strided_format.h"

#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/ops/op.h"
#include "daemon/engine/ops/owner.h"

static struct submit_strided strided_of(const struct submit_record *r)
{
    struct submit_strided s;

    memcpy(&s, (const uint8_t *)(r + 1) + abi_pad8(r->lid_len) + abi_pad8(r->rid_len), sizeof(s));
    return s;
}

static uint64_t bytes_of(const struct submit_strided *s)
{
    return (uint64_t)s->element * s->count;
}

/* Checks that all elements lie in the segment's first `length` bytes: 0 or -EFAULT. */
static int check_source(const struct submit_strided *s, uint64_t local_offset, uint64_t length)
{
    uint64_t end;

    if (strided_end(local_offset, s->local_stride, s->element, s->count, &end) < 0)
        return -EFAULT;
    return end <= length ? 0 : -EFAULT;
}

static int strided_validate(struct engine *e, uint32_t client, const struct submit_record *r,
                            const struct remote *remote)
{
    const struct submit_record first = {.segment = r->segment, .local_offset = r->local_offset};
    uint64_t end;
    struct submit_strided s;

    if (r->length != sizeof(s) || !(r->flags & SUBMIT_INLINE) || r->code != SUBMIT_PUT)
        return -EPROTO;
    s = strided_of(r);
    if (s.element == 0 || s.count == 0 || s.count > VECTOR_PIECES_MAX ||
        bytes_of(&s) > e->config.packed_max || bytes_of(&s) > r->total)
        return -EPROTO;
    if (op_check_local(e, client, &first) < 0 ||
        check_source(&s, r->local_offset, e->segments[r->segment].length) < 0)
        return -EFAULT;
    if (r->total > e->fabric->traits.message_max || r->total > UINT32_MAX)
        return -EMSGSIZE;
    if (!remote->has_key || remote->state == REMOTE_REVOKED ||
        !(remote->rights & ENGINE_REMOTE_WRITE))
        return -EKEYREJECTED;
    if (remote->packet > 0)
        return -EOPNOTSUPP;
    if (strided_end(s.offset, s.remote_stride, s.element, s.count, &end) < 0)
        return -ERANGE;
    return end <= remote->length ? 0 : -ERANGE;
}

static uint64_t strided_bytes(const struct submit_record *r)
{
    const struct submit_strided s = strided_of(r);

    return bytes_of(&s);
}

/* Copies the elements behind each other. The segment may be another one than at submission. Returns
 * 0 or -EFAULT; where the client's memory has faulted, the client is quarantined. */
static int gather(struct engine *e, uint32_t flow, const struct op *op,
                  const struct submit_strided *s, uint8_t *to)
{
    uint32_t client = owner_client(e, e->flows[flow].owner);
    uint64_t bytes = bytes_of(s);

    if (check_source(s, op->local_offset, e->segments[op->segment].length) < 0 ||
        e->clients[client].quarantine != QUARANTINE_NONE)
        return -EFAULT;
    memset(to + bytes, 0, abi_pad8((uint32_t)bytes) - bytes);
    strided_copy(to, s->element, e->segment_live[op->segment].base + op->local_offset,
                 s->local_stride, s->element, s->count);
    strided_round(e, s->element, s->count);
    if (!e->host->faulted || !e->host->faulted(e->host->context, client))
        return 0;
    client_quarantine(e, client, QUARANTINE_MEMORY);
    return -EFAULT;
}

static int stage_elements(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    struct flow *f = &e->flows[flow];
    const struct remote *remote = &e->remotes[op->remote];
    const struct ledger_mark mark = {.flow = flow, .epoch = f->epoch, .slot = slot, .nonce = NONE};
    uint32_t id = abi_pad8(op_id_len(op)), size;
    struct submit_strided s;
    struct wire_strided *w;
    int r;

    op_bytes(e, f, slot, op, abi_pad8(op->lid_len) + abi_pad8(op->rid_len), sizeof(s), &s);
    size = (uint32_t)sizeof(*w) + id + abi_pad8((uint32_t)bytes_of(&s));
    w = ledger_place(e, f->peer, size, LEDGER_OPERATION);
    if (!w)
        return -ENOSPC;
    /* Before anything is staged: the peer must not get zeros where the memory has faulted. */
    r = gather(e, flow, op, &s, (uint8_t *)(w + 1) + id);
    if (r < 0)
        return r;
    w = ledger_stage(e, f->peer, WIRE_STRIDED, size, LEDGER_OPERATION, &mark);
    if (!w)
        return -ENOSPC;
    op_fill_wire(e, flow, slot, op, &w->op, w + 1);
    w->op.length = (uint32_t)op->total;
    w->slot = remote->key.slot;
    w->generation = remote->key.generation;
    w->offset = s.offset;
    w->stride = s.remote_stride;
    w->element = s.element;
    w->count = s.count;
    return 1;
}

static int strided_record(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    int r;

    if (op->status < 0)
        return op_stage_plain(e, flow, slot, op, WIRE_NOTE);
    r = op_usable(e, flow, op, 0);
    return r < 0 ? r : stage_elements(e, flow, slot, op);
}

const struct op_kind op_strided = {
    .described = true,
    .over_remote = true,
    .notifies = true,
    .in_vector = true,
    .counter = OP_COUNT_PUT,
    .validate = strided_validate,
    .bytes = strided_bytes,
    .record = strided_record,
};
