/* Handlers of the records that peers send. Thread: the progress thread. */
#include "records.h"

#include <string.h>
#include "bind.h"
#include "client.h"
#include "flow.h"
#include "ledger.h"
#include "notes.h"
#include "peer.h"
#include "region.h"
#include "session.h"

/* An inflow of this node, or NULL. */
static struct inflow *inflow_of(struct engine *e, uint32_t node, uint32_t flow)
{
    if (flow >= e->config.flows_max || e->inflows[flow].state == INFLOW_FREE ||
        e->inflows[flow].node != node)
        return NULL;
    return &e->inflows[flow];
}

/* Whether there is still a client to take what comes. */
static bool inflow_open(const struct engine *e, const struct inflow *in)
{
    const struct session *s;

    if (in->state == INFLOW_CLOSED)
        return false;
    s = &e->sessions[in->session];
    return s->state == SESSION_OPEN && e->clients[s->client].state == CLIENT_LIVE &&
           e->clients[s->client].quarantine == QUARANTINE_NONE;
}

/* The payload that travels by itself: 1 it is here, 0 not yet. */
static int payload_met(struct engine *e, uint32_t node, const struct wire_op *w)
{
    struct ledger_in *in = &e->peer_live[node].in;
    uint64_t bit = UINT64_C(1) << (w->nonce % 64);

    if (!(w->head.flags & WIRE_NONCE))
        return 1;
    if (w->nonce >= NONCE_WINDOW)
        return -EPROTO;
    if (!(in->payloads[w->nonce / 64] & bit)) {
        in->blocked = true;
        return 0;
    }
    in->payloads[w->nonce / 64] &= ~bit;
    return 1;
}

/* Copies a packed payload to its place. 0 or the status that its origin gets. */
static int put_place(struct engine *e, const struct inflow *in, const struct wire_put *w,
                     const uint8_t *payload)
{
    const struct session *s = &e->sessions[in->session];
    const struct region *region;
    const struct segment_live *segment;

    if (w->slot >= e->config.regions_max)
        return -EKEYREJECTED;
    region = &e->regions[w->slot];
    if (region->state == REGION_FREE || region->generation != w->generation ||
        region->client != s->client || !(region->rights & ENGINE_REMOTE_WRITE))
        return -EKEYREJECTED;
    if (!(w->offset <= region->length && w->op.length <= region->length - w->offset))
        return -ERANGE;
    segment = &e->segment_live[region->segment];
    if (!segment->base)
        return -EHOSTDOWN;
    memcpy(segment->base + region->offset + w->offset, payload, w->op.length);
    if (e->host->faulted && e->host->faulted(e->host->context, s->client)) {
        client_quarantine(e, s->client, QUARANTINE_MEMORY);
        return -EHOSTDOWN;
    }
    return 0;
}

static int take_op(struct engine *e, uint32_t node, const struct wire_record *head,
                   const uint8_t *record, uint32_t size)
{
    struct wire_put w = {0};
    struct inflow *in;
    const uint8_t *rid;
    uint64_t expect;
    int r, status = 0;
    bool packed;

    if (size < sizeof(w.op))
        return -EPROTO;
    packed = head->kind == WIRE_PUT;
    if (packed) {
        if (size < sizeof(w))
            return -EPROTO;
    }
    memcpy(&w, record, packed ? sizeof(w) : sizeof(w.op));
    w.op.head = *head; /* the one that was checked: the record may change under us */
    rid = record + (packed ? sizeof(w) : sizeof(w.op));
    expect = (uint64_t)(rid - record) + abi_pad8(w.op.rid_len) +
             (packed ? ((uint64_t)w.op.length + 7) / 8 * 8 : 0);
    in = inflow_of(e, node, w.op.flow);
    if (!in || w.op.rid_len > SESSION_ID_MAX || expect != size)
        return -EPROTO;
    r = payload_met(e, node, &w.op);
    if (r <= 0)
        return r < 0 ? r : -EAGAIN;
    if (in->state == INFLOW_REFUSED && w.op.sequence != in->refused)
        return 0; /* comes again behind the refused one */
    if (!inflow_open(e, in))
        status = -EHOSTDOWN;
    else if (packed)
        status = put_place(e, in, &w, rid + abi_pad8(w.op.rid_len));
    r = 0;
    if (status == 0 && !(w.op.head.flags & WIRE_NO_EVENT))
        r = session_tell_remote(e, w.op.flow, &w.op, rid);
    if (r == -ENOSPC) {
        /* Without a spill there is nothing whose draining would send GO: let it try again at once.
         */
        if (notes_push_flow(e, node, WIRE_REFUSE, in->origin_flow, w.op.sequence, 0) < 0 ||
            (e->sessions[in->session].spill_bytes == 0 &&
             notes_push_flow(e, node, WIRE_GO, in->origin_flow, 0, 0) < 0))
            r = -ENOBUFS;
        set32(e, &in->refused, w.op.sequence);
        set32(e, &in->state, INFLOW_REFUSED);
    } else if (r == 0 && in->state == INFLOW_REFUSED) {
        set32(e, &in->state, INFLOW_OPEN);
    }
    if (status < 0 &&
        notes_push_flow(e, node, WIRE_FAIL, in->origin_flow, w.op.sequence, status) < 0)
        r = -ENOBUFS;
    if (r == -ENOBUFS) {
        if (w.op.head.flags & WIRE_NONCE)
            e->peer_live[node].in.payloads[w.op.nonce / 64] |= UINT64_C(1) << (w.op.nonce % 64);
        return -EAGAIN;
    }
    return 0;
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
    if (w.head.kind == WIRE_CLOSE)
        return bind_inflow_closed(e, node, w.flow);
    if (w.flow >= e->config.flows_max)
        return -EPROTO;
    f = &e->flows[w.flow];
    if (f->node != node || f->state == FLOW_FREE)
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
    default: /* GONE */
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
    if (out->next.bytes != 0 || out->switching ||
        w.bytes > (uint64_t)e->heap.units * e->heap.unit || w.bytes <= out->size ||
        (w.bytes & (w.bytes - 1)) != 0)
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
        peer_grow(e, node);
        return 0;
    case WIRE_PUT:
    case WIRE_PLACED:
    case WIRE_GOT:
    case WIRE_NOTE:
        return take_op(e, node, head, record, size);
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
        return in->next_offered ? 0 : -EPROTO;
    default:
        return -EPROTO;
    }
}

int record_after(struct engine *e, uint32_t node, uint8_t kind)
{
    struct peer_live *live = &e->peer_live[node];

    if (kind == WIRE_ACK)
        return ledger_acknowledge(e, node, live->in.their_ack);
    if (kind == WIRE_SWITCH)
        peer_switched(e, node);
    if (kind == WIRE_GONE && live->gone != NONE) {
        uint32_t flow = live->gone;

        live->gone = NONE;
        flow_gone(e, flow);
    }
    return 0;
}
