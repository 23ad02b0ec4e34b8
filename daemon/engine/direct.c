/* Neighbours, as far as they need the engine (direct.h). Thread: the progress thread. */
#include "direct.h"

#include "session.h"

/* Its session, where that is ours; or NONE. */
static uint32_t peer_session(const struct engine *e, const struct flow *f)
{
    const struct inflow *in;

    if (f->node != e->config.node || f->inflow >= e->config.flows_max || f->state != FLOW_OPEN)
        return NONE;
    in = &e->inflows[f->inflow];
    return in->state != INFLOW_FREE && in->node == f->node ? in->session : NONE;
}

int engine_neighbour(const struct engine *e, uint32_t session, uint32_t remote,
                     struct engine_neighbour *out)
{
    const struct remote *r;
    const struct region *region;

    if (remote >= e->config.remotes_max || remote >= SESSION_REMOTES)
        return -ENOENT;
    r = &e->remotes[remote];
    if (r->session != session || r->state != REMOTE_READY || r->unbound)
        return -ENOENT;
    *out = (struct engine_neighbour){
        .session = peer_session(e, &e->flows[r->flow]),
        .segment = NONE,
    };
    if (out->session == NONE)
        return -ENOENT;
    if (!r->has_key)
        return 0;
    region = &e->regions[r->key.slot];
    if (region->state != REGION_OPEN || region->generation != r->key.generation)
        return -ENOENT;
    out->segment = region->segment;
    out->offset = region->offset;
    return 0;
}

void direct_show_ended(struct engine *e, uint32_t remote, bool ended)
{
    uint32_t session = e->remotes[remote].session;
    uint64_t bit = UINT64_C(1) << remote % 64;
    _Atomic uint64_t *word;

    if (remote >= SESSION_REMOTES || session == NONE || !e->session_live[session].attached)
        return;
    word = &e->session_live[session].shared->ended_remotes[remote / 64];
    if (ended)
        atomic_fetch_or_explicit(word, bit, memory_order_release);
    else
        atomic_fetch_and_explicit(word, ~bit, memory_order_release);
}

void direct_end_flow(struct engine *e, uint32_t flow)
{
    for (uint32_t i = 0; i < e->config.remotes_max; i++)
        if (e->remotes[i].state != REMOTE_FREE && e->remotes[i].flow == flow)
            direct_show_ended(e, i, true);
}

void direct_wake(struct engine *e, const struct flow *f)
{
    uint32_t session = peer_session(e, f);

    if (session != NONE)
        session_dirty(e, session);
}

void direct_wake_origin(struct engine *e, uint32_t session, uint64_t peer)
{
    uint32_t i = e->sessions[session].first_inflow;
    const struct inflow *in;
    const struct flow *f;

    while (i != NONE && (e->inflows[i].origin != peer || e->inflows[i].node != e->config.node))
        i = e->inflows[i].next;
    if (i == NONE)
        return;
    in = &e->inflows[i];
    if (in->origin_flow >= e->config.flows_max)
        return;
    f = &e->flows[in->origin_flow];
    if (f->state == FLOW_OPEN && f->node == e->config.node && f->inflow == i && f->session != NONE)
        session_dirty(e, f->session);
}

void direct_show_spill(struct session_live *live, bool spilled)
{
    atomic_store_explicit(&live->shared->spilled, spilled, memory_order_release);
}
