/* A message's way through handlers (handle.h). Thread: the progress thread. */
#include "daemon/engine/offload/handle.h"

#include <errno.h>
#include "daemon/engine/ledger/notes.h"
#include "daemon/engine/offload/puts/collect.h"
#include "daemon/engine/offload/observe.h"
#include "daemon/engine/offload/puts/region_put.h"
#include "daemon/engine/offload/puts/stored.h"
#include "daemon/engine/offload/turns.h"
#include "daemon/engine/offload/work.h"
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ops/reply.h"
#include "daemon/engine/state/doubt.h"

/* ---- room ------------------------------------------------------------------------------------ */

/* Within a transaction, into which it reserves the room of one event: whether the message can end
 * after the next handler, however that is. 0, -ENOSPC, -ENOBUFS. */
static int room(const struct work *m)
{
    struct engine *e = m->e;
    uint32_t size = m->event > WORK_EVENT_SIZE ? m->event : WORK_EVENT_SIZE;
    struct event_room unused;
    int r = 0;

    if (!(m->o->flags & ENGINE_OFFLOAD_QUIET))
        r = session_reserve(e, m->inflow, size, 1, &unused);
    if (r == 0)
        r = notes_room(e, m->in->peer, sizeof(struct wire_flow));
    if (r == 0 && work_wants_reply(m))
        r = collect_reply_room(e, m->inflow);
    return r;
}

static void change_flags(struct work *m, uint32_t flags)
{
    if (flags == m->h.flags)
        return;
    m->h.flags = flags;
    work_note(m);
    commit(m->e);
}

/* Returns 0; or -ENOSPC: earlier replies of the inflow must leave first, so that a peer that sends
 * requests without end, and takes no replies, can't fill the memory. */
static int await_replies(struct work *m)
{
    bool allowed = !work_wants_reply(m) || m->h.flags & HANDLED_REPLIED ||
                   collect_reply_allowed(m->e, m->inflow);

    change_flags(m, allowed ? m->h.flags & ~(uint32_t)HANDLED_UNANSWERED
                            : m->h.flags | HANDLED_UNANSWERED);
    return allowed ? 0 : -ENOSPC;
}

/* Called before the first handler of a message that may be cut. The inflow then holds the message:
 * if the daemon dies in that handler, and the record never comes again, the message can be cut. */
static void hold(const struct work *m)
{
    if (!work_in_packets(m) || offload_holds(m->in, m->h.sequence))
        return;
    work_note(m);
    commit(m->e);
}

/* Runs the next handler. Returns 0; -ENOSPC: the record is to be refused; -ENOBUFS: not now. */
static int handler(struct work *m)
{
    int r = await_replies(m);

    hold(m);
    if (r == 0)
        r = room(m);
    return r < 0 ? r : work_run(m);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Reports the message's end to its origin, which needs no report if a handler has replied. */
static int answer(const struct work *m)
{
    struct engine *e = m->e;
    const struct wire_op *w = &m->a->w.op;
    struct wire_flow fail = {.head.kind = WIRE_FAIL,
                             .flow = m->in->origin_flow,
                             .sequence = w->sequence,
                             .status = m->h.status};

    if (m->h.flags & HANDLED_REPLIED || work_origin_failed(m))
        return 0;
    if (m->a->in_batch) {
        m->a->outcome = m->h.status;
        return 0;
    }
    if (m->h.status < 0) {
        if (notes_room(e, m->in->peer, sizeof(fail)) < 0)
            return -ENOBUFS;
        notes_append(e, m->in->peer, e->sessions[m->in->session].client, &fail, sizeof(fail));
    } else if (work_wants_reply(m)) {
        if (collect_reply_room(e, w->flow) < 0)
            return -ENOBUFS;
        collect_reply_empty(e, w->flow);
        flow_ready(e, m->in->reply_flow[REPLIER_OFFLOADS]);
    }
    return 0;
}

/* Leaves the end to the default action. A packet has no event unless it is the last one. */
static int end_by_default(const struct work *m)
{
    struct wire_op *w = &m->a->w.op;

    if (m->h.flags & HANDLED_REPLIED)
        w->head.flags |= WIRE_NO_REPLY;
    if (!m->last)
        w->head.flags |= WIRE_NO_EVENT;
    m->a->deferred = m->h.flags & HANDLED_DEFER;
    return OFFLOAD_DEFAULT;
}

/* Within a transaction, which is committed with the record's consumption: ends the message, or its
 * packet. */
static int end(struct work *m)
{
    struct engine *e = m->e;
    struct event_room where;
    bool posts = work_event_due(m);
    int r = 0;

    if (m->h.kind == HANDLER_OBSERVED)
        return observe_end(m);
    if (m->h.flags & (HANDLED_PROCEED | HANDLED_DEFER) && m->h.status == 0) {
        if (m->h.kind != HANDLER_PUT || !work_origin_failed(m))
            return end_by_default(m);
        work_close(m); /* a part of the put is placed in the region */
        return OFFLOAD_DONE;
    }
    if (!m->last) {
        m->h.done = m->offset + m->bytes.data;
        work_note(m);
        return OFFLOAD_DONE;
    }
    if (posts)
        r = session_reserve(e, m->inflow, WORK_EVENT_SIZE, 1, &where);
    if (r < 0 && m->o->flags & ENGINE_OFFLOAD_QUIET) {
        arena_rollback(&e->arena); /* a spill without its STOP */
        posts = false;             /* the offload's counts have the error */
        r = 0;
    }
    if (r == 0)
        r = answer(m);
    if (r < 0) {
        arena_rollback(&e->arena);
        return r;
    }
    /* This comes last: the event moves the ring's private tail, which no rollback moves back. */
    if (posts)
        work_post_event(m, &where);
    work_close(m);
    return OFFLOAD_DONE;
}

/* ---- between handlers ------------------------------------------------------------------------ */

/* Decides how the message continues if an earlier process may have run its handler of this stage.
 * The message may have been cut meanwhile. */
static void resolve(struct work *m, uint32_t stage)
{
    struct engine *e = m->e;

    m->h.open = 1;
    if (m->o && m->o->flags & ENGINE_OFFLOAD_REPEATABLE) {
        if (m->h.stage == stage)
            m->h.flags |= HANDLED_RERUN;
    } else {
        m->h.flags |= HANDLED_CUT;
        m->h.flags |= HANDLED_DROPS;
        m->h.status = -ECONNABORTED;
        if (work_in_record(m))
            m->h.dropped = m->h.total;
        m->h.stage = !m->o || stage >= HANDLER_COMPLETION || m->h.stage == HANDLER_STAGES ||
                             m->h.kind == HANDLER_OBSERVED
                         ? HANDLER_STAGES
                         : offload_stage(e, m->o, HANDLER_COMPLETION);
    }
    work_note(m);
    commit(e);
}

/* Resumes a message that handlers have begun. Returns 1, or -EPROTO: the record does not fit it. */
static int resume(struct work *m)
{
    int r;

    if (m->in->handled.flags & HANDLED_STORED)
        offload_cut_where_ending(m->e, m->inflow);
    work_resume(m);
    r = long_resume(m);
    return r < 0 ? r : 1;
}

/* Begins a message, or resumes it as the inflow has noted it. Returns 1; 0: the record is for no
 * handler; -EPROTO. */
static int begin(struct work *m)
{
    const struct wire_op *w = &m->a->w.op;
    struct engine *e = m->e;
    bool stored = long_has_bytes(m->a);

    m->last = true;
    m->header = 8u * m->a->message.arguments;
    m->bytes = (struct packet_bytes){.at = m->a->id + sizeof(struct message),
                                     .header = m->header,
                                     .data_at = m->header,
                                     .data = m->a->message.payload_len};
    if (offload_holds(m->in, w->sequence))
        return resume(m);
    m->offload = w->head.flags & WIRE_NO_EVENT
                     ? NONE
                     : offload_of_index(e, m->in->session, m->a->message.index);
    if (m->offload == NONE)
        return 0;
    m->o = &e->offloads.table[m->offload];
    m->h = (struct handled){.open = 1,
                            .sequence = w->sequence,
                            .offload = offload_handle_of(m->o, m->offload),
                            .stage = offload_stage(e, m->o, HANDLER_HEADER),
                            .kind = HANDLER_MESSAGE,
                            .total = stored ? w->length : m->a->message.payload_len,
                            .id = m->a->message.index};
    if (stored)
        long_begin(m);
    return 1;
}

/* Drops bytes that no handler gets any more. */
static void drop(struct work *m)
{
    if (!work_in_packets(m) || !(m->h.flags & HANDLED_DROPS) || m->offset < m->h.done)
        return;
    m->h.dropped += m->bytes.data;
    m->h.done = m->offset + m->bytes.data;
}

/* Ends the message early, if there is a reason for that: without another handler, or with the last
 * one only. */
static void end_early(struct work *m)
{
    if (m->h.stage == HANDLER_STAGES)
        return;
    if (!m->o || m->o->state != OFFLOAD_OPEN || m->o->ending != OFFLOAD_STAYS) {
        m->h.status = -ESHUTDOWN;
        m->h.stage = HANDLER_STAGES;
    } else if (work_in_record(m) && m->h.total > m->e->config.packed_max) {
        m->h.status = -EMSGSIZE;
        m->h.stage = HANDLER_STAGES;
    } else if (work_origin_failed(m) && work_is_untouched(m)) {
        m->h.flags |=
            HANDLED_PENDING; /* the origin gave the message up while that waited for its turn */
        m->h.stage = HANDLER_STAGES;
    } else if (work_origin_failed(m) && !(m->h.flags & HANDLED_CUT)) {
        work_cut(m);
    }
}

/* Moves the message to its next handler, or to its end. */
static void check(struct work *m)
{
    end_early(m);
    stored_next(m);
}

/* Whether the next handler is to run on this record. */
static bool handler_due(const struct work *m)
{
    switch (m->h.stage) {
    case HANDLER_HEADER:
        return true;
    case HANDLER_PAYLOAD:
        return m->offset >= m->h.done;
    case HANDLER_COMPLETION:
        return m->last;
    default:
        return false;
    }
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* Returns 0, or -ENOSPC: another client's handlers run before the next one of this message. */
static int await_turn(struct work *m, uint32_t client)
{
    struct ledger_in *ledger = &m->e->peer_live[m->in->peer].in;
    bool runs = !ledger->handlers_late && handlers_may_run(m->e, client);

    ledger->handlers_late = false;
    m->h.open = 1;
    change_flags(m, runs ? m->h.flags & ~(uint32_t)HANDLED_WAITING : m->h.flags | HANDLED_WAITING);
    return runs ? 0 : -ENOSPC;
}

/* Runs the message's handlers as far as they get. Returns 0, -ENOSPC or -ENOBUFS. */
static int run_handlers(struct work *m, uint32_t client)
{
    int r = 0;

    for (check(m); r == 0 && handler_due(m); check(m)) {
        r = stored_rests(m) ? -ENOBUFS : await_turn(m, client);
        if (r == 0)
            r = handler(m);
        if (m->h.flags & HANDLED_STORED) /* of any number of packets */
            work_charge(m, client);
        if (!work_client_lives(m) && m->h.status == 0) {
            m->h.status = -EHOSTDOWN;
            m->h.stage = HANDLER_STAGES;
        }
    }
    work_charge(m, client);
    return r;
}

/* ---- the whole way --------------------------------------------------------------------------- */

static uint32_t kind_of(const struct arrival *a)
{
    switch (a->w.op.head.kind) {
    case WIRE_PACKET:
        return HANDLER_PUT;
    case WIRE_OBSERVED:
        return HANDLER_OBSERVED;
    default:
        return HANDLER_MESSAGE;
    }
}

/* Whether the inflow holds a message with this record's sequence that is of another kind: a put and
 * not a message, for example. */
static bool is_other_kind(const struct inflow *in, const struct arrival *a)
{
    return offload_holds(in, a->w.op.sequence) && in->handled.kind != kind_of(a);
}

/* Begins or resumes the message. Results as those of region_put_begin; 0: the record is for no
 * handler. */
static int begin_any(struct work *m)
{
    switch (kind_of(m->a)) {
    case HANDLER_PUT:
        return region_put_begin(m);
    case HANDLER_OBSERVED:
        return observe_begin(m);
    default:
        return begin(m);
    }
}

int offload_handle(struct engine *e, struct arrival *a, uint32_t event)
{
    struct work m = work_by_inflow(e, a->w.op.flow, a);
    uint32_t client = e->sessions[m.in->session].client, stage;
    int r;

    m.event = event;
    if (is_other_kind(m.in, a))
        return -EPROTO;
    r = begin_any(&m);
    if (r <= 0)
        return r < 0 ? r : a->w.op.head.kind == WIRE_PACKET ? OFFLOAD_DONE : OFFLOAD_NOT_OURS;
    handlers_note(e, client);
    stage = m.h.stage;
    check(&m);
    if (m.h.status == 0 && work_wants_reply(&m)) {
        r = reply_flow_open(e, a->w.op.flow, REPLIER_OFFLOADS);
        if (r < 0) {
            arena_rollback(&e->arena);
            m.h.status = r;
            m.h.stage = HANDLER_STAGES;
        }
        commit(e);
    }
    if (m.in->in_doubt) {
        if (doubt_resolve(e, m.in, a->w.op.sequence))
            resolve(&m, stage);
        commit(e);
    }
    check(&m);
    drop(&m);
    long_place(&m);
    r = run_handlers(&m, client);
    return r < 0 ? r : end(&m);
}

void offload_ended(struct engine *e, struct arrival *a)
{
    struct work m = work_by_inflow(e, a->w.op.flow, a);

    if (a->w.op.head.kind != WIRE_PACKET && !m.in->handled.open)
        return;
    if (begin_any(&m) <= 0)
        return;
    if (m.last) {
        work_close(&m);
        return;
    }
    m.h.done = m.offset + m.bytes.data;
    work_note(&m);
}
