/* Operations from a peer: each is parsed, admitted, has room reserved, acts and is reported.
 * Thread: the progress thread. */
#include "daemon/engine/ledger/records.h"

#include <string.h>
#include "daemon/engine/session/quarantine.h"
#include "daemon/engine/ledger/notes.h"
#include "daemon/engine/offload/find.h"
#include "daemon/engine/offload/handle.h"
#include "daemon/engine/offload/puts/put_batch.h"
#include "daemon/engine/offload/puts/region_put.h"
#include "daemon/engine/ops/message.h"
#include "daemon/engine/peer/region.h"
#include "daemon/engine/peer/remote.h"
#include "daemon/engine/ops/reply.h"
#include "daemon/engine/ops/reply_credit.h"
#include "daemon/engine/session/session.h"
#include "daemon/engine/state/doubt.h"
#include "daemon/engine/watch/steps.h"
#include "shm_ring/word.h"

/* The inflow, if it is one from this peer; or NULL. */
static struct inflow *inflow_of(struct engine *e, uint32_t peer, uint32_t flow)
{
    if (flow >= e->config.flows_max || e->inflows[flow].state == INFLOW_FREE ||
        e->inflows[flow].state == INFLOW_PARTING || e->inflows[flow].peer != peer)
        return NULL;
    return &e->inflows[flow];
}

/* The client that a refusal is charged to; NONE: its context has ended. */
static uint32_t client_of(const struct engine *e, uint32_t session)
{
    return session != NONE ? e->sessions[session].client : NONE;
}

/* Whether there is still a client to take the operation. */
static bool inflow_open(const struct engine *e, const struct inflow *in)
{
    const struct session *s;

    if (in->state == INFLOW_CLOSED)
        return false;
    s = &e->sessions[in->session];
    return s->state == SESSION_OPEN && e->clients[s->client].state == CLIENT_LIVE &&
           e->clients[s->client].quarantine == QUARANTINE_NONE;
}

/* Whether events of the inflow's context, which must be open, wait in its spill for room in the
 * ring. */
static bool inflow_spills(const struct engine *e, const struct inflow *in)
{
    return e->sessions[in->session].spill_bytes > 0;
}

/* Whether a payload that travels on its own has arrived: 1, or 0: not all of it. -EPROTO. */
static int payload_met(struct engine *e, uint32_t peer, uint8_t flags, uint16_t nonce,
                       uint32_t pieces)
{
    struct ledger_in *in = &e->peer_live[peer].in;

    if (!(flags & WIRE_NONCE))
        return 1;
    if (nonce >= NONCE_WINDOW || pieces == 0 || pieces > WIRE_PIECES_MAX ||
        in->payloads[nonce] > pieces)
        return -EPROTO;
    if (in->payloads[nonce] < pieces) {
        in->blocked = true;
        return 0;
    }
    in->payloads[nonce] = 0;
    return 1;
}

int record_take_void(struct engine *e, uint32_t peer, const struct ledger_record *record)
{
    struct wire_void w;
    int r;

    if (!(record->head.flags & WIRE_NONCE))
        return -EPROTO;
    memcpy(&w, record->at, sizeof(w));
    r = payload_met(e, peer, record->head.flags, w.nonce, w.pieces);
    return r == 0 ? -EAGAIN : r < 0 ? r : 0;
}

/* ---- a packed put's payload ------------------------------------------------------------------ */

static int64_t put_parse(struct engine *e, struct arrival *a, uint64_t left)
{
    return ((int64_t)a->w.op.length + 7) / 8 * 8;
}

static int put_admit(struct engine *e, uint32_t session, struct arrival *a)
{
    const struct wire_put *w = &a->w.put;
    uint64_t length;
    int status = region_to_write(e, session, w->slot, w->generation, &a->base, &length);

    if (status < 0)
        return status;
    return w->offset <= length && w->op.length <= length - w->offset ? 0 : -ERANGE;
}

static int put_act(struct engine *e, struct arrival *a)
{
    word_place(a->base + a->w.put.offset, a->id + abi_pad8(a->w.op.rid_len), a->w.op.length);
    return 0;
}

const struct arrival_kind arrival_put = {
    .op = SUBMIT_PUT,
    .parse = put_parse,
    .admit = put_admit,
    .act = put_act,
    .changed = put_changed,
};

/* ---- a put's payload that travels on its own ------------------------------------------------- */

const struct arrival_kind arrival_placed = {
    .op = SUBMIT_PUT, .parse = pieces_parse, .changed = put_changed};

/* ---- without a payload ----------------------------------------------------------------------- */

/* A put without bytes counts if it brings an event. A put that has failed at its origin brings
 * none. */
static uint32_t note_changed(const struct arrival *a)
{
    return !(a->w.op.head.flags & WIRE_NO_EVENT);
}

const struct arrival_kind arrival_got = {.op = SUBMIT_GET};
const struct arrival_kind arrival_note = {.op = SUBMIT_PUT, .changed = note_changed};

/* ---- parse ----------------------------------------------------------------------------------- */

/* Copies the fixed part of the record, and parses the rest. Returns 0 or -EPROTO. */
static int arrival_parse(struct engine *e, struct arrival *a, const struct record_kind *kind,
                         const struct ledger_record *record)
{
    uint32_t id_max = record->head.flags & WIRE_MESSAGE ? UINT16_MAX : SESSION_ID_MAX;
    uint64_t left = record->size - kind->size;
    int64_t behind = 0;

    a->kind = kind->arrival;
    a->deferred = false;
    a->in_batch = false;
    memcpy(&a->w, record->at, kind->size);
    a->w.op.head = record->head; /* the head that was checked: the record in the ring may change */
    a->id = record->at + kind->size;
    if (a->w.op.rid_len > id_max)
        return -EPROTO;
    if (a->kind->parse)
        behind = a->kind->parse(e, a, left);
    return behind < 0 || abi_pad8(a->w.op.rid_len) + (uint64_t)behind != left ? -EPROTO : 0;
}

/* Parses an active message: its block, and the flags beside it. 0 or -EPROTO. */
static int message_parse(struct arrival *a)
{
    uint8_t flags = a->w.op.head.flags;
    bool reply = flags & WIRE_REPLY;

    if (!(flags & WIRE_MESSAGE))
        return flags & (WIRE_REPLY | WIRE_NO_REPLY) ? -EPROTO : 0;
    if (a->w.op.head.kind == WIRE_GOT || a->w.op.rid_len < sizeof(a->message) ||
        (reply && flags & WIRE_NO_REPLY))
        return -EPROTO;
    memcpy(&a->message, a->id, sizeof(a->message));
    if (!message_valid(&a->message, a->w.op.rid_len) ||
        (a->message.kind != SUBMIT_LONG && a->w.op.head.kind != WIRE_NOTE))
        return -EPROTO;
    return 0;
}

/* Checks a notification: the event of an operation other than a message, with an id by value.
 * Returns 0 or -EPROTO. */
static int notify_parse(const struct arrival *a)
{
    if (!(a->w.op.head.flags & WIRE_NOTIFY))
        return 0;
    return a->w.op.rid_len > 0 || a->w.op.head.flags & (WIRE_MESSAGE | WIRE_NO_EVENT) ? -EPROTO : 0;
}

/* Checks a record that others of its vector follow: only the last one brings the event, and has an
 * ACK that is due soon without asking. Returns 0 or -EPROTO. */
static int part_parse(const struct arrival *a)
{
    uint8_t flags = a->w.op.head.flags;

    if (a->w.op.head.kind == WIRE_PACKET) /* there the bits are WIRE_CUT and WIRE_STORED */
        return 0;
    if (!(flags & WIRE_PART))
        return flags & WIRE_SOON ? -EPROTO : 0;
    return flags & WIRE_NO_EVENT && !(flags & WIRE_MESSAGE) ? 0 : -EPROTO;
}

/* Parses the flags that few records have. Returns 0 or -EPROTO. */
static int flags_parse(struct arrival *a)
{
    if (!(a->w.op.head.flags &
          (WIRE_MESSAGE | WIRE_REPLY | WIRE_NO_REPLY | WIRE_NOTIFY | WIRE_PART | WIRE_SOON)))
        return 0;
    if (message_parse(a) < 0 || part_parse(a) < 0)
        return -EPROTO;
    return notify_parse(a);
}

/* ---- admit ----------------------------------------------------------------------------------- */

/* Admits a request, which is an active message. Returns 0 or the status that its origin gets. */
static int request_admit(struct engine *e, uint32_t session, const struct arrival *a)
{
    if (event_bytes(a->w.op.rid_len) > e->sessions[session].sizes.remote / 4)
        return -EMSGSIZE;
    if (!session_handles(e, session, a->message.index))
        return -ENOSYS;
    return a->w.op.head.flags & WIRE_NO_REPLY ? 0
                                              : reply_flow_open(e, a->w.op.flow, REPLIER_CLIENT);
}

/* Admits a reply, which needs no room: its request has reserved the event space. */
static int reply_admit(const struct engine *e, uint32_t session, const struct arrival *a)
{
    if (a->w.op.head.flags & WIRE_NO_EVENT)
        return 0;
    if (a->w.op.rid_len > e->message_max)
        return -EMSGSIZE;
    return session_handles(e, session, a->message.index) ? 0 : -ENOSYS;
}

static int arrival_admit(struct engine *e, uint32_t session, struct arrival *a)
{
    return a->kind->admit ? a->kind->admit(e, session, a) : 0;
}

/* ---- reserve, act, report -------------------------------------------------------------------- */

/* Rolls back what was reserved; words that have changed stay changed. */
static void arrival_undo(struct engine *e)
{
    arena_rollback(&e->arena);
    doubt_end(e);
}

/* Carries the operation out, within a transaction that holds only reservations and is rolled back
 * if the client's memory faults. Returns 0, or the status that the origin gets; -EBUSY: a part is
 * done. */
static int arrival_act(struct engine *e, uint32_t session, struct arrival *a)
{
    uint32_t client = e->sessions[session].client;
    int status;

    if (!a->kind->act)
        return 0;
    status = a->kind->act(e, a);
    if (!e->host->faulted || !e->host->faulted(e->host->context, client))
        return status;
    arrival_undo(e);
    client_quarantine(e, client, QUARANTINE_MEMORY);
    return -EHOSTDOWN;
}

/* Drafts the event of a record that `endpoint` at `peer` has sent. */
static void draft_event(const struct arrival *a, uint32_t peer, uint64_t endpoint,
                        struct event_draft *d)
{
    const struct wire_op *w = &a->w.op;

    d->head = (struct event_record){
        .size = event_bytes(w->rid_len),
        .kind = EVENT_REMOTE,
        .op = a->kind->op,
        .id_len = w->rid_len,
        .origin = peer,
        .peer = endpoint,
        .bytes = w->head.kind == WIRE_PACKET ? a->w.packet.total : w->length,
        .sequence = w->sequence,
        .id = w->rid,
    };
    d->rest = a->id;
    d->rest_len = w->rid_len;
    d->front = sizeof(d->head);
    if (!(w->head.flags & (WIRE_MESSAGE | WIRE_NOTIFY)))
        return;
    if (w->head.flags & WIRE_NOTIFY) { /* no message, by notify_parse */
        d->head.kind = EVENT_NOTIFY;
        return;
    }
    d->head.kind = w->head.flags & WIRE_REPLY ? EVENT_REPLY : EVENT_REQUEST;
    d->head.op = a->message.kind;
    if (a->message.kind == SUBMIT_MEDIUM)
        d->head.bytes = a->message.payload_len;
    d->message = a->message;
    d->message.deferred = a->deferred;
    d->message.token = w->head.flags & (WIRE_REPLY | WIRE_NO_REPLY) ? WIRE_NONE : w->flow;
    d->rest += sizeof(d->message);
    d->rest_len -= (uint32_t)sizeof(d->message);
    d->front += (uint32_t)sizeof(d->message);
}

/* Within a transaction: refuses the record, which comes again. Returns 0 or -ENOBUFS. */
static int refuse(struct engine *e, uint32_t peer, const struct wire_op *w)
{
    struct inflow *in = &e->inflows[w->flow];
    const struct session *s = &e->sessions[in->session];
    bool awaits = offload_awaits(in, w->sequence);
    struct wire_flow verdict = {
        .head.kind = WIRE_REFUSE,
        .flow = in->origin_flow,
        .sequence = w->sequence,
        .status = awaits ? -EBUSY : 0,
        .done = w->head.kind == WIRE_PACKET ? offload_bytes_done(in, w->sequence) : 0};

    /* If nothing is spilled and no handler waits, nothing would send GO later: send it at once. */
    if (notes_push(e, peer, s->client, &verdict, sizeof(verdict)) < 0 ||
        (s->spill_bytes == 0 && !awaits &&
         notes_push_flow(e, peer, s->client, WIRE_GO, in->origin_flow, 0, 0) < 0))
        return -ENOBUFS;
    if (awaits)
        offload_refused(e, w->flow);
    set32(e, &in->refused, w->sequence);
    inflow_hold(e, w->flow, INFLOW_REFUSED);
    return 0;
}

/* Within a transaction that has reserved the room: delivers the events of what has been done. */
static void arrival_report(struct engine *e, const struct arrival *a, const struct event_room *room,
                           uint32_t count)
{
    const struct wire_op *w = &a->w.op;
    struct inflow *in = &e->inflows[w->flow];
    struct event_draft draft;

    draft_event(a, in->peer, in->origin, &draft);
    if (a->kind->several)
        session_deliver_batch(e, w->flow, room, &draft.head, a->block);
    else
        session_deliver(e, e->inflows[w->flow].session, room, &draft);
    step_event(e, TRACE_REMOTE, in->session, in->peer, in->origin_flow, &draft.head, count);
    if (w->head.flags & WIRE_MESSAGE && !(w->head.flags & WIRE_NO_REPLY))
        reply_owe(e, w->flow);
}

/* The number of events that the operation brings: none if it has failed at its origin. */
static uint32_t arrival_events(const struct arrival *a)
{
    if (a->w.op.head.flags & WIRE_NO_EVENT || a->kind->silent)
        return 0;
    return a->kind->several ? (uint32_t)a->w.op.count : 1;
}

/* Within the transaction that consumes the record: counts the operations that have changed memory,
 * if their origin sees them succeed. Messages do not count, because their handlers see them. */
static void count_arrival(struct engine *e, uint32_t session, const struct arrival *a)
{
    if (a->kind->changed && !(a->w.op.head.flags & WIRE_MESSAGE))
        session_arrived(e, session, a->kind->changed(a));
}

/* As arrival_act, for an operation that changes words, and may stop at a word that is busy. Returns
 * how many of its events are due, or -ENOBUFS. */
static int act_on_words(struct engine *e, struct arrival *a, struct event_room *room,
                        uint32_t events, int *status)
{
    const struct wire_op *w = &a->w.op;
    uint32_t session = e->inflows[w->flow].session;
    int r = a->kind->ready(e, a);

    if (r < 0)
        return r;
    *status = arrival_act(e, session, a);
    if (*status == -EBUSY) {
        /* The elements that were done have their events, the others have none. */
        if (events > 0)
            events = a->kind->several ? a->done : 0;
        arrival_undo(e);
        if (events > 0 && session_reserve(e, w->flow, event_bytes(w->rid_len), events, room) < 0)
            events = 0;
    }
    if (*status == 0 || (*status == -EBUSY && a->kind->several))
        count_arrival(e, session, a);
    if (a->kind->answer && (*status == 0 || *status == -EBUSY)) {
        a->kind->answer(e, a, *status);
        *status = 0;
    }
    session_dirty(e, session); /* looks at its bell */
    return (int)events;
}

/* Within a transaction: takes an operation for an open inflow that no handler is to see. *status
 * becomes the status that its origin gets. Returns 0; -ENOSPC: the record is to be refused;
 * -ENOBUFS. */
static int take_directly(struct engine *e, struct arrival *a, int *status)
{
    const struct wire_op *w = &a->w.op;
    struct inflow *in = &e->inflows[w->flow];
    uint32_t session = in->session;
    int events = (int)arrival_events(a);
    struct event_room room;
    int r = 0;

    handlers_note_other(e, e->sessions[session].client);
    *status = w->head.flags & WIRE_MESSAGE && events > 0 ? request_admit(e, session, a) : 0;
    if (*status == 0 && doubt_resolve(e, in, w->sequence))
        *status = -ECONNABORTED;
    if (*status == 0)
        *status = arrival_admit(e, session, a);
    if (*status == 0 && events > 0)
        r = session_reserve(e, w->flow, event_bytes(w->rid_len), (uint32_t)events, &room);
    if (*status < 0 || r < 0)
        return r;
    if (a->kind->changes)
        events = act_on_words(e, a, &room, (uint32_t)events, status);
    else
        *status = arrival_act(e, session, a);
    if (events < 0)
        return events;
    if (*status == 0 && !a->kind->changes)
        count_arrival(e, session, a);
    if (*status == 0 && events > 0)
        arrival_report(e, a, &room, (uint32_t)events);
    return 0;
}

/* As take_directly, for a packet, or for an active message or a get that may be for handlers. */
static int take_by_handlers(struct engine *e, struct arrival *a, int *status)
{
    uint32_t session = e->inflows[a->w.op.flow].session;
    uint32_t size = event_bytes(a->w.op.rid_len);
    bool none = arrival_events(a) == 0 || !arrival_ends(a);
    int r = offload_handle(e, a, none || size > e->sessions[session].sizes.remote / 4 ? 0 : size);

    *status = 0;
    if (r == OFFLOAD_DONE || r < 0)
        return r < 0 ? r : 0;
    if (r == OFFLOAD_DEFAULT && a->kind == &arrival_put)
        a->kind = &arrival_placed; /* a Long: a handler may have changed its bytes in place */
    r = take_directly(e, a, status);
    if (r == 0)
        offload_ended(e, a);
    return r;
}

/* Takes a batch of puts to an offload's region, put by put, and commits the end of each, but not
 * the verdict. Returns 0; -ENOSPC: the batch is to be refused; -ENOBUFS: the rest can't be taken
 * now; -EPROTO. */
static int take_put_batch(struct engine *e, struct arrival *a)
{
    struct inflow *in = &e->inflows[a->w.op.flow];
    uint64_t spent = e->offloads.spent;
    struct put_batch place;
    struct arrival one;
    int status = 0, r = put_batch_begin(e, a, &place);

    while (r == 0 && put_batch_next(e, a, &place, &one)) {
        if (!offload_may_go_on(e, spent))
            return -ENOBUFS;
        if (inflow_open(e, in))
            r = take_by_handlers(e, &one, &status);
        else
            status = -EHOSTDOWN;
        if (r == 0)
            put_batch_ended(e, a, status < 0 ? status : one.outcome);
    }
    return r < 0 ? r : put_batch_verdict(e, a);
}

static int take_request(struct engine *e, struct arrival *a, int *status)
{
    put_batch_left(e, &e->inflows[a->w.op.flow]);
    if (a->w.op.head.kind == WIRE_PACKET || a->w.op.head.kind == WIRE_OBSERVED ||
        (a->w.op.head.flags & WIRE_MESSAGE && offload_concerns(e, a)))
        return take_by_handlers(e, a, status);
    return take_directly(e, a, status);
}

/* Takes the record of an operation that has arrived by an inflow. */
static int take_by_inflow(struct engine *e, uint32_t peer, struct arrival *a)
{
    const struct wire_op *w = &a->w.op;
    struct inflow *in = inflow_of(e, peer, w->flow);
    int r, status = 0;

    if (!in)
        return -EPROTO;
    r = payload_met(e, peer, w->head.flags, w->nonce, a->pieces);
    if (r <= 0)
        return r < 0 ? r : -EAGAIN;
    if (in->state == INFLOW_REFUSED && (w->sequence != in->refused || offload_is_early(in, a))) {
        if (w->sequence != in->refused)
            offload_drops(e, in);
        return 0; /* the record comes again after the refused one */
    }
    r = 0;
    if (offload_is_left(in, w))
        offload_cut(e, w->flow);
    if (put_batch_is(e, a))
        r = take_put_batch(e, a);
    else if (!inflow_open(e, in))
        status = -EHOSTDOWN;
    else
        r = take_request(e, a, &status);
    if (r == -ENOSPC)
        r = refuse(e, peer, w);
    else if (r == 0 && in->state == INFLOW_REFUSED && inflow_spills(e, in))
        /* A STOP from before the refusal may still hold the origin, because a verdict passes other
         * notes. So as long as there is a spill, a GO must follow. */
        inflow_hold(e, w->flow, INFLOW_STOPPED);
    else if (r == 0 && in->state == INFLOW_REFUSED)
        set32(e, &in->state, INFLOW_OPEN);
    if (r == 0 && status < 0 && arrival_ends(a) && !offload_has_replied(in, w->sequence))
        r = notes_push_flow(e, peer, client_of(e, in->session), WIRE_FAIL, in->origin_flow,
                            w->sequence, status);
    return r;
}

/* Takes a reply, which names the flow of its request, and its own flow for a verdict about it. */
static int take_reply(struct engine *e, uint32_t peer, struct arrival *a)
{
    const struct wire_op *w = &a->w.op;
    uint32_t flow = a->message.token;
    int status = reply_requester(e, flow, peer);
    uint32_t session = status == 0 ? owner_handle(e->flows[flow].owner) : NONE;
    struct event_draft draft;
    int r;

    if (status == -EPROTO)
        return status;
    r = payload_met(e, peer, w->head.flags, w->nonce, a->pieces);
    if (r <= 0)
        return r < 0 ? r : -EAGAIN;
    if (session != NONE)
        handlers_note_other(e, e->sessions[session].client);
    if (status == 0)
        status = reply_admit(e, session, a);
    if (status == 0)
        status = arrival_admit(e, session, a);
    if (status == 0)
        status = arrival_act(e, session, a);
    if (status == 0 && !(w->head.flags & WIRE_NO_EVENT)) {
        reply_came(e, flow);
        draft_event(a, peer, e->flows[flow].endpoint, &draft);
        session_report_reply(e, session, &draft);
        step_event(e, TRACE_REPLY, session, peer, w->flow, &draft.head, 1);
        return 0;
    }
    reply_give_back(e, flow, 1);
    if (status == 0)
        return 0;
    return notes_push_flow(e, peer, client_of(e, session), WIRE_FAIL, w->flow, w->sequence, status);
}

int record_take_op(struct engine *e, uint32_t peer, const struct record_kind *kind,
                   const struct ledger_record *record)
{
    struct arrival a;
    const struct wire_op *w = &a.w.op;
    int r;

    if (arrival_parse(e, &a, kind, record) < 0 || flags_parse(&a) < 0)
        return -EPROTO;
    r = w->head.flags & WIRE_REPLY ? take_reply(e, peer, &a) : take_by_inflow(e, peer, &a);
    if (r != -ENOBUFS)
        return r;
    if (w->head.flags & WIRE_NONCE)
        e->peer_live[peer].in.payloads[w->nonce] = (uint16_t)a.pieces;
    return -EAGAIN;
}
