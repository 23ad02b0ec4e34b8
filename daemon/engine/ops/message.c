/* The block of an active message: whether it makes sense, and the daemon's words in it.
 * Thread: the progress thread. */
#include "daemon/engine/ops/message.h"

#include <string.h>

bool message_valid(const struct message *m, uint64_t len)
{
    if (m->index >= SESSION_HANDLERS || m->arguments > SESSION_ARGUMENTS_MAX)
        return false;
    if (!submit_is_message(m->kind))
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

void message_fill(const struct engine *e, uint32_t flow, const struct op *op, bool head_alone,
                  struct message *m)
{
    const struct flow *f = &e->flows[flow];

    m->slot = m->generation = m->deferred = 0;
    m->offset = 0;
    m->token = WIRE_NONE;
    if (op->kind == SUBMIT_LONG && op->status == 0 && e->remotes[op->remote].has_key) {
        m->slot = e->remotes[op->remote].key.slot;
        m->generation = e->remotes[op->remote].key.generation;
        m->offset = op->offset;
    }
    if (f->traffic == FLOW_REPLIES)
        m->token = f->inflow;
    if (head_alone) {
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
