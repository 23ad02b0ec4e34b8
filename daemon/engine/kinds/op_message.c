/*
 * Active messages. A Short or a Medium is one record, with the block as its id. A Long is a put of
 * its payload with the block as its id, or one record that ends a series of puts (session_abi.h).
 * Thread: the progress thread.
 */
#include "daemon/engine/ops/op.h"

#include <string.h>
#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/ops/reply_credit.h"

static int plain_validate(struct engine *e, uint32_t client, const struct submit_record *r,
                          const struct remote *remote)
{
    return 0;
}

/* The event names the place where a Long landed, so a Long of no bytes needs a valid place too. */
static int long_validate(struct engine *e, uint32_t client, const struct submit_record *r,
                         const struct remote *remote)
{
    struct submit_record whole = *r;

    if (r->length == 0 && remote->has_key && r->offset > remote->length)
        return -ERANGE;
    if (r->length > 0 || r->placed == 0)
        return put_validate(e, client, r, remote);
    whole.length = r->placed;
    return op_check_remote(e, &whole, remote, ENGINE_REMOTE_WRITE);
}

/* Stages the record of a Long that ends a series, with the length that the series has placed. */
static int long_record(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    struct flow *f = &e->flows[flow];
    struct ledger_mark mark = {.flow = flow, .epoch = f->epoch, .slot = slot, .nonce = NONE};
    struct wire_op *w;

    if (op->length > 0 || op->placed == 0 || op->status < 0)
        return put_record(e, flow, slot, op);
    w = ledger_stage(e, f->peer, WIRE_NOTE, sizeof(*w) + abi_pad8(op_id_len(op)), LEDGER_OPERATION,
                     &mark);
    if (!w)
        return -ENOSPC;
    op_fill_wire(e, flow, slot, op, w, w + 1);
    w->length = (uint32_t)op->placed;
    return 1;
}

/* A Medium's payload stands in its block. */
static uint64_t message_bytes(const struct submit_record *r)
{
    struct message m;

    memcpy(&m, (const uint8_t *)(r + 1) + abi_pad8(r->lid_len), sizeof(m));
    return r->length + m.payload_len;
}

static void message_taken(struct engine *e, uint32_t flow, const struct submit_record *r)
{
    const struct flow *f = &e->flows[flow];

    if (f->traffic == FLOW_REPLIES)
        reply_answered(e, (uint32_t)r->token);
    else if (reply_awaited(f, r->kind, r->flags))
        reply_hold(e, flow);
}

static void long_taken(struct engine *e, uint32_t flow, const struct submit_record *r)
{
    struct remote *remote = &e->remotes[r->remote];

    message_taken(e, flow, r);
    if (e->flows[flow].traffic == FLOW_REPLIES)
        set32(e, &remote->replies, remote->replies + 1);
}

static void message_leave(struct engine *e, uint32_t flow, const struct op *op)
{
    const struct flow *f = &e->flows[flow];

    if (op->status < 0 && reply_awaited(f, op->kind, op->flags))
        reply_give_back(e, flow, 1);
}

static void long_leave(struct engine *e, uint32_t flow, const struct op *op)
{
    struct remote *remote = &e->remotes[op->remote];

    message_leave(e, flow, op);
    if (e->flows[flow].traffic == FLOW_REPLIES)
        set32(e, &remote->replies, remote->replies - 1);
}

const struct op_kind op_short = {
    .message = true,
    .copied = true,
    .counter = OP_COUNT_MESSAGE,
    .validate = plain_validate,
    .taken = message_taken,
    .bytes = message_bytes,
    .start = put_start,
    .record = put_record,
    .leave = message_leave,
};
const struct op_kind op_medium = {
    .message = true,
    .copied = true,
    .counter = OP_COUNT_MESSAGE,
    .validate = plain_validate,
    .taken = message_taken,
    .bytes = message_bytes,
    .start = put_start,
    .record = put_record,
    .leave = message_leave,
};
const struct op_kind op_long = {
    .message = true,
    .over_remote = true,
    .counter = OP_COUNT_MESSAGE,
    .validate = long_validate,
    .taken = long_taken,
    .bytes = message_bytes,
    .start = put_start,
    .record = long_record,
    .on_fabric = put_on_fabric,
    .abandon = put_abandon,
    .leave = long_leave,
};
