/* Gets that are observed (observe.h). Thread: the progress thread. */
#include "daemon/engine/offload/observe.h"

#include "daemon/engine/offload/find.h"
#include "daemon/engine/offload/handle.h"
#include "daemon/engine/peer/region.h"
#include "daemon/engine/state/doubt.h"

/* The offload that observes this get, or NONE. The record is checked, because the peer may name a
 * get that it could not make. */
static uint32_t observer_of(const struct work *m)
{
    const struct wire_put *w = &m->a->w.put;
    const struct engine *e = m->e;
    const struct offload *o;
    uint64_t length;
    uint8_t *base;
    uint32_t offload;

    if (region_memory(e, m->session, w->slot, w->generation, ENGINE_REMOTE_READ, &base, &length) <
            0 ||
        w->offset > length || w->op.length > length - w->offset)
        return NONE;
    offload = e->regions[w->slot].packet > 0 ? e->regions[w->slot].offload : NONE;
    if (offload == NONE)
        return NONE;
    o = &e->offloads.table[offload];
    return o->session == m->session && o->flags & ENGINE_OFFLOAD_OBSERVE &&
                   offload_stage(e, o, HANDLER_HEADER) == HANDLER_HEADER
               ? offload
               : NONE;
}

bool observe_begin(struct work *m)
{
    const struct wire_put *w = &m->a->w.put;

    m->last = true;
    m->event += WORK_EVENT_SIZE; /* room for the get's own event, and for a fault's */
    m->bytes = (struct packet_bytes){
        .at = m->a->id, .header = w->op.rid_len, .data_at = abi_pad8(w->op.rid_len)};
    if (offload_holds(m->in, w->op.sequence)) {
        work_resume(m);
        return true;
    }
    m->offload = observer_of(m);
    if (m->offload == NONE) {
        (void)doubt_resolve(m->e, m->in, w->op.sequence);
        return false;
    }
    m->o = &m->e->offloads.table[m->offload];
    m->h = (struct handled){.open = 1,
                            .sequence = w->op.sequence,
                            .offload = offload_handle_of(m->o, m->offload),
                            .stage = HANDLER_HEADER,
                            .kind = HANDLER_OBSERVED,
                            .total = w->op.length,
                            .id = w->op.rid_len == 0 ? w->op.rid : 0,
                            .place = w->offset};
    return true;
}

int observe_end(struct work *m)
{
    struct event_room where;
    int r;

    if (!(m->h.flags & (HANDLED_FAULT | HANDLED_CUT)) || m->h.flags & HANDLED_PROCEED || !m->o)
        return OFFLOAD_DEFAULT;
    r = session_reserve(m->e, m->inflow, WORK_EVENT_SIZE, 1, &where);
    if (r < 0) {
        arena_rollback(&m->e->arena);
        if (!(m->o->flags & ENGINE_OFFLOAD_QUIET))
            return r;
    } else {
        work_post_event(m, &where);
    }
    m->h.flags |= HANDLED_PROCEED;
    work_note(m);
    commit(m->e);
    return OFFLOAD_DEFAULT;
}
