/* A look ahead in a ledger (ahead.h). Thread: the progress thread. */
#include "daemon/engine/ledger/ahead.h"

#include <string.h>
#include "daemon/engine/ledger/records.h"
#include "daemon/engine/offload/turns.h"

#define LOOK_MOST 256 /* records in one call */

/* The peer may still change what it has written: the copy is checked, and used for notes only. */
static struct wire_batch copy_at(const struct ledger_in *in, uint64_t at)
{
    uint32_t offset = (uint32_t)(at - in->base) & (in->size - 1);
    uint32_t bytes = in->size - offset;
    struct wire_batch w = {0};

    memcpy(&w, in->ring + offset, bytes < sizeof(w) ? bytes : sizeof(w));
    return w;
}

/* Starts on the run at `ahead.at`. False: it has not arrived, or makes no sense. */
static bool next_run(struct ledger_in *in)
{
    uint32_t offset = (uint32_t)(in->ahead.at - in->base) & (in->size - 1);
    uint32_t run;

    if ((uint16_t)(in->ahead.run - in->run) >= RUN_WINDOW ||
        !(in->arrived & UINT64_C(1) << (in->ahead.run % RUN_WINDOW)))
        return false;
    run = copy_at(in, in->ahead.at).op.head.run;
    if (run < sizeof(struct wire_record) || run > in->size - offset)
        return false;
    in->ahead.run_end = in->ahead.at + run;
    in->ahead.run++;
    return true;
}

/* Whether the record is a batch of puts to an offload's region. */
static bool is_put_batch(const struct engine *e, const struct wire_batch *w)
{
    return w->op.head.kind == WIRE_BATCH && w->slot < e->config.regions_max &&
           e->regions[w->slot].packet > 0;
}

/* Notes the client that the record is for, and returns this client; or NONE. */
static uint32_t note(struct engine *e, uint32_t peer, const struct wire_batch *w)
{
    const struct wire_op *op = &w->op;
    const struct inflow *in;
    uint32_t client;

    if (!record_kinds[op->head.kind].arrival || op->head.flags & WIRE_REPLY ||
        op->flow >= e->config.flows_max)
        return NONE;
    in = &e->inflows[op->flow];
    if (in->state == INFLOW_FREE || in->peer != peer || in->session == NONE)
        return NONE;
    client = e->sessions[in->session].client;
    if (op->head.kind == WIRE_PACKET || op->head.kind == WIRE_OBSERVED || is_put_batch(e, w) ||
        (op->head.flags & WIRE_MESSAGE && e->session_live[in->session].offloads > 0))
        handlers_note(e, client);
    else
        handlers_note_other(e, client);
    return client;
}

/* Whether a client waits for the record. */
static bool is_awaited(const struct engine *e, uint32_t peer, const struct wire_op *op)
{
    struct wire_ack ack;

    memcpy(&ack, op, sizeof(ack));
    return op->head.kind != WIRE_PAD &&
           (op->head.kind != WIRE_ACK || ledger_ack_awaited(e, peer, ack.consumed));
}

/* Continues the look over what has arrived, LOOK_MOST records at most. Returns whether there are
 * records for other clients than the first record's. */
static bool look(struct engine *e, uint32_t peer, struct ledger_in *in)
{
    uint32_t first = NONE;
    bool others = false;

    for (int i = 0; i < LOOK_MOST; i++) {
        uint32_t size, client = NONE;
        struct wire_batch w;

        if (in->ahead.at == in->ahead.run_end && !next_run(in))
            break;
        w = copy_at(in, in->ahead.at);
        size = w.op.head.words * 8u;
        if (size < sizeof(w.op.head) || size > in->ahead.run_end - in->ahead.at ||
            w.op.head.kind >= WIRE_KINDS || w.op.head.kind == WIRE_SWITCH)
            break;
        if (size >= sizeof(w.op))
            client = note(e, peer, &w);
        if (i == 0)
            first = client;
        others |= client != first && (client != NONE || is_awaited(e, peer, &w.op));
        in->ahead.at += size;
    }
    return others;
}

/* Starts the look over, at the next record. */
static void begin(const struct engine *e, uint32_t peer, struct ledger_in *in)
{
    uint64_t consumed = e->peers[peer].rx_consumed;

    in->ahead.at = consumed;
    in->ahead.run_end = in->run_end > 0 ? in->run_end : consumed;
    in->ahead.run = in->run;
}

void ledger_look_ahead(struct engine *e, uint32_t peer, uint64_t bytes, uint64_t units)
{
    struct ledger_in *in = &e->peer_live[peer].in;
    uint64_t consumed = e->peers[peer].rx_consumed;

    if (!in->ring)
        return;
    if (in->ahead.at <= consumed)
        begin(e, peer, in);
    (void)look(e, peer, in);
    in->handlers_late =
        (in->ahead.at - consumed) * units * HANDLER_UNIT_NS > HANDLERS_AHEAD_NS * bytes;
}

void ledger_look_behind(struct engine *e, uint32_t peer)
{
    struct ledger_in *in = &e->peer_live[peer].in;

    if (!in->ring)
        return;
    begin(e, peer, in);
    in->handlers_late = look(e, peer, in) ||
                        in->ahead.at - e->peers[peer].rx_consumed > in->size / 4 ||
                        (uint16_t)(in->ahead.run - in->run) > RUN_WINDOW / 4;
}
