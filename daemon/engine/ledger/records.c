/* Handlers of the records that peers send. Thread: the progress thread. */
#include "daemon/engine/ledger/records.h"

#include <string.h>
#include "daemon/engine/peer/bind.h"
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/peer/region.h"
#include "daemon/engine/peer/marks.h"
#include "daemon/engine/peer/rings.h"
#include "daemon/engine/ledger/notes.h"

/*
 * STOP, GO and GONE may come late, for the flow that had this number before: an ACK of its CLOSE
 * can pass them. What is said of a flow of requests comes behind the answer to its BIND; one of
 * replies is never told any of these.
 */
static bool flow_is_meant(const struct flow *f, uint8_t kind)
{
    if (kind == WIRE_FAIL)
        return true;
    return f->traffic == FLOW_REQUESTS && f->inflow != NONE;
}

static int take_flow(struct engine *e, uint32_t node, const struct wire_record *head,
                     const uint8_t *record, uint32_t size)
{
    struct wire_flow w;
    struct flow *f;

    if (size != sizeof(w))
        return -EPROTO;
    memcpy(&w, record, sizeof(w));
    w.head = *head;
    if (w.head.kind == WIRE_CLOSE) /* WIRE_NONE: of replies, which need no number here */
        return w.flow == WIRE_NONE ? 0 : bind_inflow_closed(e, node, w.flow);
    if (w.flow >= e->config.flows_max)
        return -EPROTO;
    f = &e->flows[w.flow];
    if (f->node != node || f->state == FLOW_FREE || !flow_is_meant(f, head->kind))
        return 0; /* a flow that has gone meanwhile */
    switch (w.head.kind) {
    case WIRE_FAIL:
        flow_failed(e, w.flow, w.sequence, w.status);
        return 0;
    case WIRE_REFUSE:
        flow_refused(e, w.flow, w.sequence);
        return 0;
    case WIRE_STOP:
        flow_hold(e, w.flow, true);
        return 0;
    case WIRE_GO:
        flow_hold(e, w.flow, false);
        return 0;
    default: /* GONE: behind every reply that its context has sent */
        flow_gone_known(e, w.flow);
        e->peer_live[node].gone = w.flow;
        return 0;
    }
}

static int take_offer(struct engine *e, uint32_t node, const uint8_t *record, uint32_t size)
{
    struct ledger_out *out = &e->peer_live[node].out;
    struct wire_offer w;

    if (size != sizeof(w))
        return -EPROTO;
    memcpy(&w, record, sizeof(w));
    if (out->next.bytes != 0 || w.bytes <= out->size || (w.bytes & (w.bytes - 1)) != 0)
        return -EPROTO;
    out->next = w;
    peer_activate(e, node);
    return 0;
}

int record_take(struct engine *e, uint32_t node, const struct wire_record *head,
                const uint8_t *record, uint32_t size)
{
    struct ledger_in *in = &e->peer_live[node].in;

    switch (head->kind) {
    case WIRE_PAD:
        return 0;
    case WIRE_ACK:
        if (size != sizeof(struct wire_ack))
            return -EPROTO;
        memcpy(&in->their_ack, record + sizeof(*head), sizeof(in->their_ack));
        return 0;
    case WIRE_WANT:
        in->ack_due = true;
        in->ack_at = 0;
        ring_grow(e, node);
        return 0;
    case WIRE_PUT:
    case WIRE_PLACED:
    case WIRE_GOT:
    case WIRE_NOTE:
    case WIRE_BATCH:
        return record_take_op(e, node, head, record, size);
    case WIRE_FAIL:
    case WIRE_REFUSE:
    case WIRE_STOP:
    case WIRE_GO:
    case WIRE_GONE:
    case WIRE_CLOSE:
        return take_flow(e, node, head, record, size);
    case WIRE_BIND:
        return bind_asked(e, node, record, size);
    case WIRE_BOUND:
        return bind_answered(e, node, record, size);
    case WIRE_REVOKE:
        return region_revoke_asked(e, node, record, size);
    case WIRE_REVOKED:
        return region_revoke_answered(e, node, record, size);
    case WIRE_OFFER:
        return take_offer(e, node, record, size);
    case WIRE_SWITCH:
    case WIRE_DECLINE:
        return in->next_offered ? 0 : -EPROTO;
    case WIRE_VOID:
        return record_take_void(e, node, head, record, size);
    default:
        return -EPROTO;
    }
}

/* What the peer has consumed ends. */
static int acknowledge(struct engine *e, uint32_t node, uint64_t consumed)
{
    struct sent done;
    int count;

    while ((count = ledger_acknowledge(e, node, consumed, &done)) > 0) {
        if (done.flow == NONE && done.epoch == NOTES_QUEUES)
            commit(e); /* it stood for its nonce alone */
        else if (done.flow == NONE)
            notes_acknowledged(e, node, done.epoch); /* commits */
        else
            flow_acknowledged(e, done.flow, done.slot, (uint32_t)count, done.epoch); /* commits */
        ledger_free_nonce(e, node, done.nonce);
    }
    return count;
}

int record_after(struct engine *e, uint32_t node, uint8_t kind)
{
    struct peer_live *live = &e->peer_live[node];

    if (kind == WIRE_ACK)
        return acknowledge(e, node, live->in.their_ack);
    if (kind == WIRE_SWITCH)
        ring_switched(e, node);
    if (kind == WIRE_DECLINE)
        ring_declined(e, node);
    if (kind == WIRE_GONE && live->gone != NONE) {
        uint32_t flow = live->gone;

        live->gone = NONE;
        flow_gone(e, flow);
    }
    return 0;
}
