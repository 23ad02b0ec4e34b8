/*
 * Active messages: Short and Medium are a record alone, with the block as its id; a Long is a put
 * of its payload with the block as its id. Thread: the progress thread.
 */
#include "daemon/engine/ops/op.h"

#include <string.h>

bool message_valid(const struct message *m, uint64_t len)
{
    if (m->index >= SESSION_HANDLERS || m->arguments > SESSION_ARGUMENTS_MAX)
        return false;
    if (m->kind != SUBMIT_SHORT && m->kind != SUBMIT_MEDIUM && m->kind != SUBMIT_LONG)
        return false;
    if (m->payload_len > UINT16_MAX || (m->payload_len > 0 && m->kind != SUBMIT_MEDIUM))
        return false;
    return len == sizeof(*m) + 8u * m->arguments + abi_pad8(m->payload_len);
}

bool message_submitted_valid(const struct engine *e, const struct submit_record *r)
{
    struct message m;

    if (r->rid_len < sizeof(m) || r->rid_len > e->message_max)
        return false;
    memcpy(&m, (const uint8_t *)(r + 1) + abi_pad8(r->lid_len), sizeof(m));
    if (m.kind != r->kind || m.payload_len > e->config.packed_max || !message_valid(&m, r->rid_len))
        return false;
    return r->kind == SUBMIT_LONG || r->length == 0;
}

void message_fill(const struct engine *e, uint32_t flow, const struct op *op, struct message *m)
{
    const struct flow *f = &e->flows[flow];

    m->slot = m->generation = m->unused = 0;
    m->offset = 0;
    m->token = WIRE_NONE;
    if (op->kind == SUBMIT_LONG && op->status == 0 && e->remotes[op->remote].has_key) {
        m->slot = e->remotes[op->remote].key.slot;
        m->generation = e->remotes[op->remote].key.generation;
        m->offset = op->offset;
    }
    if (f->traffic == FLOW_REPLIES)
        m->token = f->inflow;
    if (op_id_len(op) == sizeof(*m)) {
        m->arguments = 0;
        m->payload_len = 0;
    }
}

uint8_t message_wire_flags(const struct flow *f, const struct op *op)
{
    if (f->traffic == FLOW_REPLIES)
        return WIRE_MESSAGE | WIRE_REPLY;
    return op->flags & SUBMIT_NO_REPLY ? WIRE_MESSAGE | WIRE_NO_REPLY : WIRE_MESSAGE;
}

static int plain_validate(struct engine *e, const struct session *s, const struct submit_record *r,
                          const struct remote *remote)
{
    return 0;
}

/* The target is told where it landed, so a Long of no bytes has a place too. */
static int long_validate(struct engine *e, const struct session *s, const struct submit_record *r,
                         const struct remote *remote)
{
    if (r->length == 0 && remote->has_key && r->offset > remote->length)
        return -ERANGE;
    return put_validate(e, s, r, remote);
}

const struct op_kind op_short = {plain_validate, put_start, put_record, put_on_fabric};
const struct op_kind op_medium = {plain_validate, put_start, put_record, put_on_fabric};
const struct op_kind op_long = {long_validate, put_start, put_record, put_on_fabric};
