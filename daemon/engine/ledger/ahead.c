/* A look ahead in a ledger (ahead.h). Thread: the progress thread. */
#include "daemon/engine/ledger/ahead.h"

#include <string.h>
#include "daemon/engine/ledger/records.h"
#include "daemon/engine/offload/turns.h"

#define LOOK_MOST 256 /* records in one call */

/* The peer may change what it has written: the copy is checked, and decides nothing but notes. */
static struct wire_op copy_at(const struct ledger_in *in, uint64_t at)
{
    uint32_t offset = (uint32_t)(at - in->base) & (in->size - 1);
    uint32_t bytes = in->size - offset;
    struct wire_op op = {0};

    memcpy(&op, in->ring + offset, bytes < sizeof(op) ? bytes : sizeof(op));
    return op;
}

/* Starts on the run at `ahead.at`. False: it has not arrived, or makes no sense. */
static bool next_run(struct ledger_in *in)
{
    uint32_t offset = (uint32_t)(in->ahead.at - in->base) & (in->size - 1);
    uint32_t run;

    if ((uint16_t)(in->ahead.run - in->run) >= RUN_WINDOW ||
        !(in->arrived & UINT64_C(1) << (in->ahead.run % RUN_WINDOW)))
        return false;
    run = copy_at(in, in->ahead.at).head.run;
    if (run < sizeof(struct wire_record) || run > in->size - offset)
        return false;
    in->ahead.run_end = in->ahead.at + run;
    in->ahead.run++;
    return true;
}

static void note(struct engine *e, uint32_t peer, const struct wire_op *op)
{
    const struct inflow *in;
    uint32_t client;

    if (!record_kinds[op->head.kind].arrival || op->head.flags & WIRE_REPLY ||
        op->flow >= e->config.flows_max)
        return;
    in = &e->inflows[op->flow];
    if (in->state == INFLOW_FREE || in->peer != peer || in->session == NONE)
        return;
    client = e->sessions[in->session].client;
    if (op->head.kind == WIRE_PACKET ||
        (op->head.flags & WIRE_MESSAGE && e->session_live[in->session].offloads > 0))
        handlers_note(e, client);
    else
        handlers_note_other(e, client);
}

/* Goes on with the look, to the end of what has arrived if it is not too far. */
static void look(struct engine *e, uint32_t peer, struct ledger_in *in)
{
    for (int i = 0; i < LOOK_MOST; i++) {
        struct wire_op op;
        uint32_t size;

        if (in->ahead.at == in->ahead.run_end && !next_run(in))
            return;
        op = copy_at(in, in->ahead.at);
        size = op.head.words * 8u;
        if (size < sizeof(op.head) || size > in->ahead.run_end - in->ahead.at ||
            op.head.kind >= WIRE_KINDS || op.head.kind == WIRE_SWITCH)
            return;
        if (size >= sizeof(op))
            note(e, peer, &op);
        in->ahead.at += size;
    }
}

void ledger_look_ahead(struct engine *e, uint32_t peer, uint64_t bytes, uint64_t units)
{
    struct ledger_in *in = &e->peer_live[peer].in;
    uint64_t consumed = e->peers[peer].rx_consumed;

    if (!in->ring)
        return;
    if (in->ahead.at <= consumed) {
        in->ahead.at = consumed;
        in->ahead.run_end = in->run_end > 0 ? in->run_end : consumed;
        in->ahead.run = in->run;
    }
    look(e, peer, in);
    in->handlers_late =
        (in->ahead.at - consumed) * units * HANDLER_UNIT_NS > HANDLERS_AHEAD_NS * bytes;
}
