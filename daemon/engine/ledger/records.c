/* The table of records that peers send, and the small handlers. Thread: the progress thread. */
#include "daemon/engine/ledger/records.h"

#include <string.h>
#include "daemon/engine/peer/bind.h"
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ops/op.h"
#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/peer/region.h"
#include "daemon/engine/peer/marks.h"
#include "daemon/engine/peer/rings.h"
#include "daemon/engine/ledger/notes.h"
#include "daemon/engine/team/arrivals.h"
#include "daemon/engine/team/progress.h"

/*
 * Finds the flow that a record is about. Returns 1 with a copy of the record; 0: the flow has gone
 * meanwhile; -EPROTO. STOP, GO and GONE may come late, for the flow that had this number before,
 * because an ACK of its CLOSE can pass them. A record about a flow of requests comes after the
 * answer to its BIND; a flow of replies gets nothing but FAIL.
 */
static int flow_meant(struct engine *e, uint32_t peer, const struct ledger_record *record,
                      struct wire_flow *w)
{
    const struct flow *f;

    memcpy(w, record->at, sizeof(*w));
    if (w->flow >= e->config.flows_max)
        return -EPROTO;
    f = &e->flows[w->flow];
    if (f->peer != peer || f->state == FLOW_FREE)
        return 0;
    return record->head.kind == WIRE_FAIL || (f->traffic == FLOW_REQUESTS && f->inflow != NONE);
}

static int take_fail(struct engine *e, uint32_t peer, const struct ledger_record *record)
{
    uint8_t outcomes[WIRE_BATCH_PUTS];
    uint32_t bytes = record->size - (uint32_t)sizeof(struct wire_flow);
    struct wire_flow w;
    int r = flow_meant(e, peer, record, &w);

    if (bytes > 0 &&
        (bytes > sizeof(outcomes) || w.done == 0 || abi_pad8(w.done) != bytes || w.status >= 0))
        return -EPROTO; /* an error even where the flow is gone */
    if (r <= 0)
        return r;
    if (bytes == 0) {
        flow_failed(e, w.flow, w.sequence, w.status, w.done);
        return 0;
    }
    memcpy(outcomes, record->at + sizeof(w), bytes);
    return flow_failed_apart(e, w.flow, w.sequence, w.status,
                             &(struct op_outcomes){outcomes, w.done});
}

static int take_result(struct engine *e, uint32_t peer, const struct ledger_record *record)
{
    uint8_t values[8 * WIRE_RESULT_VALUES];
    struct op_result result = {.values = values,
                               .bytes = record->size - (uint32_t)sizeof(struct wire_flow)};
    struct wire_flow w;
    int r = flow_meant(e, peer, record, &w);

    if (r <= 0)
        return r;
    if (result.bytes > sizeof(values))
        return -EPROTO;
    memcpy(values, record->at + sizeof(w), result.bytes);
    result.status = w.status;
    result.done = w.done;
    return flow_result(e, w.flow, w.sequence, &result);
}

static int take_refuse(struct engine *e, uint32_t peer, const struct ledger_record *record)
{
    struct wire_flow w;
    int r = flow_meant(e, peer, record, &w);

    if (r > 0)
        flow_refused(e, w.flow, w.sequence, w.status, w.done);
    return r < 0 ? r : 0;
}

/* STOP and GO. */
static int take_hold(struct engine *e, uint32_t peer, const struct ledger_record *record)
{
    struct wire_flow w;
    int r = flow_meant(e, peer, record, &w);

    if (r > 0)
        flow_hold(e, w.flow, record->head.kind == WIRE_STOP);
    return r < 0 ? r : 0;
}

/* GONE stands after every reply that its context has sent. */
static int take_gone(struct engine *e, uint32_t peer, const struct ledger_record *record)
{
    struct wire_flow w;
    int r = flow_meant(e, peer, record, &w);

    if (r <= 0)
        return r;
    flow_gone_known(e, w.flow, w.status == WIRE_ENDED ? WIRE_ENDED : -EHOSTDOWN);
    e->peer_live[peer].gone = w.flow;
    return 0;
}

static int gone_after(struct engine *e, uint32_t peer)
{
    uint32_t flow = e->peer_live[peer].gone;

    e->peer_live[peer].gone = NONE;
    if (flow != NONE)
        flow_gone(e, flow);
    return 0;
}

/* WIRE_NONE ends a flow of replies, which has no number here. */
static int take_close(struct engine *e, uint32_t peer, const struct ledger_record *record)
{
    struct wire_flow w;

    memcpy(&w, record->at, sizeof(w));
    return w.flow == WIRE_NONE ? 0 : bind_inflow_closed(e, peer, w.flow, w.status);
}

static int take_ack(struct engine *e, uint32_t peer, const struct ledger_record *record)
{
    struct wire_ack w;

    memcpy(&w, record->at, sizeof(w));
    e->peer_live[peer].in.their_ack = w.consumed;
    return 0;
}

/* Ends the operations and notes whose records the peer has consumed. */
static int ack_after(struct engine *e, uint32_t peer)
{
    uint64_t consumed = e->peer_live[peer].in.their_ack;
    struct sent done;
    int count;

    while ((count = ledger_acknowledge(e, peer, consumed, &done)) > 0) {
        if (done.flow == NONE && done.epoch == SENT_NONCE)
            commit(e); /* the record was only there to free its nonce */
        else if (done.flow == NONE && done.epoch == SENT_LETTER)
            team_acknowledged(e, done.slot); /* commits */
        else if (done.flow == NONE)
            notes_acknowledged(e, peer, done.epoch, done.slot); /* commits */
        else if (done.part > 0) {
            commit(e);
            flow_part_acknowledged(e, done.flow, done.epoch);
        } else {
            flow_acknowledged(e, done.flow, done.slot, (uint32_t)count, done.epoch); /* commits */
        }
        ledger_free_nonce(e, peer, done.nonce);
    }
    return count;
}

static int take_want(struct engine *e, uint32_t peer, const struct ledger_record *record)
{
    struct ledger_in *in = &e->peer_live[peer].in;

    in->ack_due = true;
    in->ack_at = 0;
    ring_grow(e, peer);
    return 0;
}

static int take_offer(struct engine *e, uint32_t peer, const struct ledger_record *record)
{
    struct ledger_out *out = &e->peer_live[peer].out;
    struct wire_offer w;

    memcpy(&w, record->at, sizeof(w));
    if (out->next.bytes != 0 || w.bytes <= out->size || (w.bytes & (w.bytes - 1)) != 0)
        return -EPROTO;
    out->next = w;
    peer_activate(e, peer);
    return 0;
}

/* SWITCH and DECLINE answer an offer. */
static int take_offered(struct engine *e, uint32_t peer, const struct ledger_record *record)
{
    const struct ledger_in *in = &e->peer_live[peer].in;

    return in->next_offered ? 0 : -EPROTO;
}

static int switch_after(struct engine *e, uint32_t peer)
{
    ring_switched(e, peer);
    return 0;
}

static int decline_after(struct engine *e, uint32_t peer)
{
    ring_declined(e, peer);
    return 0;
}

#define HEAD    (uint16_t)sizeof(struct wire_record)
#define FLOW    (uint16_t)sizeof(struct wire_flow)
#define OP      (uint16_t)sizeof(struct wire_op)
#define EVENT   (WIRE_NO_EVENT | WIRE_NOTIFY)
#define PARTS   (WIRE_PART | WIRE_SOON)
#define MESSAGE (EVENT | WIRE_MESSAGE | WIRE_REPLY | WIRE_NO_REPLY)

/* A new kind adds its row here, and its number to wire_abi.h. */
const struct record_kind record_kinds[WIRE_KINDS] = {
    /* size, longer, flags, wait */
    [WIRE_PAD] = {HEAD, true, 0, LEDGER_WAIT_NONE, .take = NULL},
    [WIRE_ACK] = {sizeof(struct wire_ack), false, 0, LEDGER_WAIT_NONE, .take = take_ack,
                  .after = ack_after},
    [WIRE_WANT] = {HEAD, false, 0, LEDGER_WAIT_NONE, .take = take_want},
    [WIRE_PUT] = {sizeof(struct wire_put), true, MESSAGE | WIRE_PART, LEDGER_WAIT_OPERATION,
                  .arrival = &arrival_put},
    [WIRE_PLACED] = {OP, true, MESSAGE | WIRE_PART | WIRE_NONCE, LEDGER_WAIT_OPERATION,
                     .arrival = &arrival_placed},
    [WIRE_GOT] = {OP, true, EVENT, LEDGER_WAIT_OPERATION, .arrival = &arrival_got},
    [WIRE_NOTE] = {OP, true, MESSAGE, LEDGER_WAIT_OPERATION, .arrival = &arrival_note},
    [WIRE_FAIL] = {FLOW, true, 0, LEDGER_WAIT_NOTE, .take = take_fail},
    [WIRE_REFUSE] = {FLOW, false, 0, LEDGER_WAIT_NOTE, .take = take_refuse},
    [WIRE_STOP] = {FLOW, false, 0, LEDGER_WAIT_NOTE, .take = take_hold},
    [WIRE_GO] = {FLOW, false, 0, LEDGER_WAIT_NOTE, .take = take_hold},
    [WIRE_GONE] = {FLOW, false, 0, LEDGER_WAIT_NOTE, .take = take_gone, .after = gone_after},
    [WIRE_CLOSE] = {FLOW, false, 0, LEDGER_WAIT_NOTE, .take = take_close},
    [WIRE_BIND] = {sizeof(struct wire_bind), false, 0, LEDGER_WAIT_NOTE, .take = bind_asked,
                   .after = bind_asked_after},
    [WIRE_BOUND] = {sizeof(struct wire_bound), false, 0, LEDGER_WAIT_NOTE, .take = bind_answered},
    [WIRE_REVOKE] = {sizeof(struct wire_region), false, 0, LEDGER_WAIT_NOTE,
                     .take = region_revoke_asked},
    [WIRE_REVOKED] = {sizeof(struct wire_region), false, 0, LEDGER_WAIT_NOTE,
                      .take = region_revoke_answered},
    [WIRE_OFFER] = {sizeof(struct wire_offer), false, 0, LEDGER_WAIT_NOTE, .take = take_offer},
    [WIRE_SWITCH] = {HEAD, false, 0, LEDGER_WAIT_NOTE, .take = take_offered, .after = switch_after},
    [WIRE_BATCH] = {sizeof(struct wire_batch), true, EVENT, LEDGER_WAIT_OPERATION,
                    .arrival = &arrival_batch},
    [WIRE_VOID] = {sizeof(struct wire_void), false, WIRE_NONCE, LEDGER_WAIT_NOTE,
                   .take = record_take_void},
    [WIRE_DECLINE] = {HEAD, false, 0, LEDGER_WAIT_NOTE, .take = take_offered,
                      .after = decline_after},
    [WIRE_SIGNAL] = {sizeof(struct wire_put), true, 0, LEDGER_WAIT_OPERATION,
                     .arrival = &arrival_signal},
    [WIRE_SIGNAL_PLACED] = {OP, true, WIRE_NONCE, LEDGER_WAIT_OPERATION,
                            .arrival = &arrival_signal_placed},
    [WIRE_ATOMIC] = {sizeof(struct wire_put), true, EVENT, LEDGER_WAIT_OPERATION,
                     .arrival = &arrival_atomic},
    [WIRE_RESULT] = {FLOW, true, 0, LEDGER_WAIT_NOTE, .take = take_result},
    [WIRE_ATOMICS] = {sizeof(struct wire_batch), true, EVENT, LEDGER_WAIT_OPERATION,
                      .arrival = &arrival_atomics},
    [WIRE_VECTOR] = {sizeof(struct wire_vector), true, EVENT | PARTS, LEDGER_WAIT_OPERATION,
                     .part = LEDGER_WAIT_PART, .arrival = &arrival_vector},
    [WIRE_STRIDED] = {sizeof(struct wire_strided), true, EVENT | PARTS, LEDGER_WAIT_OPERATION,
                      .part = LEDGER_WAIT_PART, .arrival = &arrival_strided},
    [WIRE_PACKET] = {sizeof(struct wire_packet), true, EVENT | WIRE_CUT | WIRE_STORED | WIRE_NONCE,
                     LEDGER_WAIT_OPERATION, .arrival = &arrival_packet},
    [WIRE_OBSERVED] = {sizeof(struct wire_put), true, EVENT, LEDGER_WAIT_OPERATION,
                       .arrival = &arrival_got},
    [WIRE_COLL] = {sizeof(struct wire_coll), true, 0, LEDGER_WAIT_LETTER, .take = take_coll,
                   .after = letter_after},
    [WIRE_FLOOR] = {sizeof(struct wire_floor), false, 0, LEDGER_WAIT_OPERATION, .take = take_floor,
                    .after = letter_after},
    [WIRE_BREAK] = {sizeof(struct wire_break), false, 0, LEDGER_WAIT_NOTE, .take = take_break,
                    .after = letter_after},
};

int record_take(struct engine *e, uint32_t peer, const struct ledger_record *record)
{
    const struct record_kind *kind = &record_kinds[record->head.kind];

    /* A number without a row has size 0 and is not `longer`: no record fits it. */
    if (record->size < kind->size || (record->size > kind->size && !kind->longer) ||
        record->head.flags & ~kind->flags)
        return -EPROTO;
    if (kind->arrival)
        return record_take_op(e, peer, kind, record);
    return kind->take ? kind->take(e, peer, record) : 0;
}
