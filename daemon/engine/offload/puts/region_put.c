/* Puts to an offload's region (region_put.h). Thread: the progress thread. */
#include "daemon/engine/offload/puts/region_put.h"

#include <errno.h>
#include "daemon/engine/offload/find.h"
#include "daemon/engine/offload/puts/stored.h"
#include "daemon/engine/offload/work.h"
#include "daemon/engine/peer/region.h"
#include "daemon/engine/state/doubt.h"
#include "daemon/engine/state/table.h"

/* ---- one message that is cut ----------------------------------------------------------------- */

/* Whether the completion handler of a message that is cut may run. An earlier process may have run
 * that handler. */
static bool may_complete(struct work *m)
{
    struct engine *e = m->e;
    const struct session *s = &e->sessions[m->in->session];
    bool in_doubt = doubt_resolve(e, m->in, m->h.sequence);

    if (!m->o || m->o->state != OFFLOAD_OPEN || s->state != SESSION_OPEN ||
        e->clients[s->client].state != CLIENT_LIVE || !work_client_lives(m) ||
        m->h.stage == HANDLER_STAGES)
        return false;
    return !in_doubt || m->h.stage < HANDLER_COMPLETION || m->o->flags & ENGINE_OFFLOAD_REPEATABLE;
}

/* Runs the completion handler of the message that the inflow holds, and commits. */
static void cut_short(struct work *m, int32_t status)
{
    bool completes;

    m->last = true;
    work_resume(m);
    m->offset = m->h.total;
    completes = may_complete(m);
    m->h.status = m->h.status < 0 ? m->h.status : status;
    if (completes)
        work_cut(m);
    else
        m->h.stage = HANDLER_STAGES;
    work_note(m);
    commit(m->e);
    if (m->h.stage == HANDLER_COMPLETION)
        (void)work_run(m); /* AGAIN has no effect: no record comes again */
    m->h.stage = HANDLER_STAGES;
    work_note(m);
    commit(m->e);
    work_charge(m, m->e->sessions[m->in->session].client);
}

void offload_cut_begun(struct engine *e, uint32_t inflow, uint32_t handle)
{
    uint64_t spent = e->offloads.spent;
    struct work m = work_by_inflow(e, inflow, NULL);
    const struct handled *h = &m.in->handled;

    if (!offload_may_cut(m.in) || h->offload != handle || h->stage == HANDLER_STAGES)
        return;
    work_resume(&m);
    if (!work_is_untouched(&m))
        cut_short(&m, -ESHUTDOWN);
    e->offloads.spent_on_cuts += e->offloads.spent - spent;
}

/* ---- packets --------------------------------------------------------------------------------- */

void offload_cut_where_ending(struct engine *e, uint32_t inflow)
{
    uint32_t handle = e->inflows[inflow].handled.offload;
    uint32_t offload = offload_of_handle(e, e->inflows[inflow].session, handle);

    if (offload != NONE && e->offloads.table[offload].ending != OFFLOAD_STAYS)
        offload_cut_begun(e, inflow, handle);
}

/* Finds the offload whose region a put names; the put must lie in that region. Returns 0, or the
 * status that its origin gets. */
static int region_offload(struct work *m)
{
    const struct wire_packet *w = &m->a->w.packet;
    struct engine *e = m->e;
    const struct region *region;
    uint64_t length;
    uint8_t *base;
    int r = region_memory(e, m->in->session, w->put.slot, w->put.generation, 0, &base, &length);

    m->offload = NONE;
    if (r < 0)
        return r;
    region = &e->regions[w->put.slot];
    if (region->packet == 0 ||
        (w->put.op.head.flags & WIRE_STORED && !(region->ways & PUTS_STORED)))
        return -EOPNOTSUPP;
    if (region->offload == NONE)
        return -ESHUTDOWN;
    if (e->offloads.table[region->offload].session != m->in->session)
        return -EKEYREJECTED;
    m->offload = region->offload;
    m->o = &e->offloads.table[m->offload];
    return w->put.offset <= length && w->total <= length - w->put.offset ? 0 : -ERANGE;
}

/* Begins a put, with its first packet. */
static void begin_put(struct work *m)
{
    const struct wire_packet *w = &m->a->w.packet;
    int status = region_offload(m);

    m->h = (struct handled){.open = 1,
                            .sequence = w->put.op.sequence,
                            .offload = m->o ? offload_handle_of(m->o, m->offload) : NONE,
                            .stage = status < 0 ? HANDLER_STAGES
                                                : offload_stage(m->e, m->o, HANDLER_HEADER),
                            .flags = w->put.op.head.flags & WIRE_STORED ? HANDLED_STORED : 0,
                            .status = status,
                            .kind = HANDLER_PUT,
                            .total = w->total,
                            .id = w->put.op.rid_len == 0 ? w->put.op.rid : 0,
                            .place = w->put.offset,
                            .slot = w->put.slot,
                            .generation = w->put.generation};
}

/* Whether the record belongs to the put that the inflow holds. */
static bool fits(const struct work *m)
{
    const struct wire_packet *w = &m->a->w.packet;

    return w->put.slot == m->h.slot && w->put.generation == m->h.generation &&
           w->total == m->h.total && w->put.offset == m->h.place &&
           !(w->put.op.head.flags & WIRE_STORED) == !(m->h.flags & HANDLED_STORED);
}

/* Trims the packet to the part that handlers have not dealt with. Returns 1; 0: there is no such
 * part; -EPROTO: the packet does not fit those before it. A packet may be half done if its origin
 * now cuts the put at other places. */
static int trim(struct work *m)
{
    const struct wire_packet *w = &m->a->w.packet;
    uint32_t end = w->at + w->put.op.length, done = m->h.done;

    if (!fits(m) || w->at > done)
        return -EPROTO;
    if (end <= done)
        return m->last; /* the last packet: for the completion handler only */
    m->bytes.data_at += done - w->at;
    m->bytes.data -= done - w->at;
    m->offset = done;
    return 1;
}

/* ---- any packet ------------------------------------------------------------------------------ */

/* Begins or resumes a put that is stored, with its one record. */
static int begin_stored(struct work *m)
{
    m->header = m->a->w.op.rid_len;
    m->bytes = (struct packet_bytes){.at = m->a->id, .data_at = abi_pad8(m->header)};
    if (offload_holds(m->in, m->a->w.op.sequence)) {
        offload_cut_where_ending(m->e, m->inflow);
        work_resume(m);
        if (!fits(m))
            return -EPROTO;
    } else {
        begin_put(m);
    }
    stored_take(m, m->h.done);
    stored_next(m);
    return 1;
}

int region_put_begin(struct work *m)
{
    const struct wire_packet *w = &m->a->w.packet;
    bool cut = w->put.op.head.flags & WIRE_CUT;

    if (w->put.op.head.flags & WIRE_STORED)
        return begin_stored(m);
    m->last = cut || w->put.op.length == w->total - w->at;
    m->bytes = (struct packet_bytes){.at = m->a->id,
                                     .header = w->at == 0 ? w->put.op.rid_len : 0,
                                     .data_at = abi_pad8(w->put.op.rid_len),
                                     .data = w->put.op.length};
    m->offset = w->at;
    if (offload_holds(m->in, w->put.op.sequence)) {
        offload_cut_where_ending(m->e, m->inflow);
        work_resume(m);
        return cut ? 1 : trim(m);
    }
    if (cut)
        return 0;
    if (w->at > 0)
        return -EPROTO;
    begin_put(m);
    return 1;
}

/* ---- messages that are cut ------------------------------------------------------------------- */

/* Within a transaction: posts the event of a message that was cut, without the spill's bound where
 * that is reached, because an inflow holds one such message at most. The event is dropped where
 * there is no memory for it, or where a quiet offload finds no room: the offload's counts have the
 * error. */
static void post_cut(const struct work *m)
{
    struct engine *e = m->e;
    struct event_room where;
    int r = session_reserve(e, m->inflow, WORK_EVENT_SIZE, 1, &where);

    if (r < 0) {
        arena_rollback(&e->arena);
        if (!(m->o->flags & ENGINE_OFFLOAD_QUIET))
            r = session_reserve_once(e, m->session, WORK_EVENT_SIZE, &where);
    }
    if (r == 0)
        work_post_event(m, &where);
}

void offload_cut(struct engine *e, uint32_t inflow)
{
    struct work m = work_by_inflow(e, inflow, NULL);
    uint64_t spent = e->offloads.spent;

    if (!offload_may_cut(m.in) || m.in->session == NONE)
        return;
    work_resume(&m);
    if (m.o && work_is_untouched(&m)) { /* the message has waited for its turn */
        set32(e, &m.in->handled.open, 0);
        commit(e);
        return;
    }
    cut_short(&m, -ECONNABORTED);
    e->offloads.spent_on_cuts += e->offloads.spent - spent;
    if (work_event_due(&m))
        post_cut(&m);
    work_close(&m);
    commit(e);
}

bool offload_cut_later(struct engine *e, uint32_t inflow)
{
    const struct inflow *in = &e->inflows[inflow];
    const struct offload *o;
    uint32_t offload;

    if (e->offloads.spent_on_cuts < OFFLOAD_CUT_UNITS || !offload_may_cut(in) ||
        in->session == NONE)
        return false;
    offload = offload_of_handle(e, in->session, in->handled.offload);
    if (offload == NONE)
        return false;
    o = &e->offloads.table[offload];
    if (o->state != OFFLOAD_OPEN && o->state != OFFLOAD_DISABLED) /* no sweep would cut it */
        return false;
    e->offloads.live[offload].cut_to = 0;
    e->offloads.live[offload].cut = false;
    table_leaves(e, TABLE_OFFLOADS, offload);
    return true;
}
