/* Neighbours, as far as they need the engine (direct.h). Thread: the progress thread. */
#include "daemon/engine/session/direct.h"

#include "daemon/engine/session/session.h"
#include "daemon/engine/state/table.h"

/* The session that this inflow from the peer `origin` leads to, or NONE. */
static uint32_t inflow_session(const struct engine *e, uint32_t origin, uint32_t inflow)
{
    const struct inflow *in;

    if (inflow >= e->config.flows_max)
        return NONE;
    in = &e->inflows[inflow];
    return in->state != INFLOW_FREE && in->peer == origin ? in->session : NONE;
}

void direct_way(const struct engine *e, uint32_t remote, struct engine_way *out)
{
    const struct remote *r = &e->remotes[remote];
    const struct flow *f = &e->flows[r->flow];

    *out = (struct engine_way){.inflow = NONE};
    if (r->state != REMOTE_READY || r->unbound || f->state != FLOW_OPEN)
        return;
    *out = (struct engine_way){.inflow = f->inflow,
                               .has_key = r->has_key,
                               .slot = r->key.slot,
                               .generation = r->key.generation};
}

int engine_neighbour(const struct engine *e, uint32_t origin, const struct engine_way *way,
                     struct engine_neighbour *out)
{
    uint32_t session = inflow_session(e, origin, way->inflow);
    const struct region *region;

    *out = (struct engine_neighbour){.session = NONE, .segment = NONE};
    if (session == NONE || e->clients[e->sessions[session].client].offloads > 0)
        return -ENOENT; /* handlers run in the engine */
    if (way->has_key) {
        if (way->slot >= e->config.regions_max)
            return -ENOENT;
        region = &e->regions[way->slot];
        if (region->state != REGION_OPEN || region->generation != way->generation)
            return -ENOENT;
        out->segment = region->segment;
        out->offset = region->offset;
    }
    out->session = session;
    return 0;
}

/* Whether another ended remote of the same context has the same bit as this remote. */
static bool bit_is_needed(const struct engine *e, uint32_t remote)
{
    for (uint32_t i = remote % SESSION_REMOTES; i < table_bound(e, TABLE_REMOTES);
         i += SESSION_REMOTES) {
        const struct remote *r = &e->remotes[i];

        if (i != remote && r->owner == e->remotes[remote].owner &&
            (r->state == REMOTE_REVOKED ||
             (r->state != REMOTE_FREE && e->flows[r->flow].state == FLOW_DEAD)))
            return true;
    }
    return false;
}

void direct_show_ended(struct engine *e, uint32_t remote, bool ended)
{
    uint32_t session = owner_as_session(e->remotes[remote].owner);
    uint64_t bit = UINT64_C(1) << remote % 64;
    _Atomic uint64_t *word;

    if (session == NONE || !e->session_live[session].attached ||
        (!ended && bit_is_needed(e, remote)))
        return;
    word = &e->session_live[session].shared->ended_remotes[remote % SESSION_REMOTES / 64];
    if (ended)
        atomic_fetch_or_explicit(word, bit, memory_order_release);
    else
        atomic_fetch_and_explicit(word, ~bit, memory_order_release);
}

void direct_end_flow(struct engine *e, uint32_t flow)
{
    for (uint32_t i = e->flow_live[flow].first_remote; i != NONE; i = e->remote_next[i])
        direct_show_ended(e, i, true);
}

void direct_wake(struct engine *e, const struct flow *f)
{
    uint32_t session;

    if (f->state != FLOW_OPEN)
        return;
    if (f->peer == e->config.self) {
        session = inflow_session(e, f->peer, f->inflow);
        if (session != NONE)
            session_dirty(e, session);
    } else if (e->peer_live[f->peer].sibling && e->host->wake_sibling) {
        e->host->wake_sibling(e->host->context, f->peer, f->inflow, ENGINE_FLOW_TARGET);
    }
}

static void wake_target(struct engine *e, const struct inflow *in)
{
    if (in->state != INFLOW_FREE && in->session != NONE && e->peer_live[in->peer].sibling)
        session_dirty(e, in->session);
}

static void wake_origin(struct engine *e, const struct flow *f)
{
    uint32_t session = owner_as_session(f->owner);

    if (f->state == FLOW_OPEN && session != NONE && e->peer_live[f->peer].sibling)
        session_dirty(e, session);
}

void engine_wake(struct engine *e, uint32_t flow, enum engine_flow_end end)
{
    if (flow >= e->config.flows_max)
        return;
    if (end == ENGINE_FLOW_ORIGIN)
        wake_origin(e, &e->flows[flow]);
    else
        wake_target(e, &e->inflows[flow]);
}

/* Whether the inflow leads from `endpoint` to the session, and its origin is on this node and so
 * may be a neighbour. */
static bool leads_back(const struct engine *e, const struct inflow *in, uint32_t session,
                       uint64_t endpoint)
{
    return in->state != INFLOW_FREE && in->session == session && in->origin == endpoint &&
           (in->peer == e->config.self || e->peer_live[in->peer].sibling);
}

void direct_wake_origin(struct engine *e, uint32_t session, uint64_t endpoint)
{
    const struct chain *inflows = &e->inflows_of_origin;
    uint32_t i = chain_first(inflows, chain_home(inflows, session, endpoint));
    const struct inflow *in;
    const struct flow *f;

    while (i != NONE && !leads_back(e, &e->inflows[i], session, endpoint))
        i = chain_next(inflows, i);
    if (i == NONE)
        return;
    in = &e->inflows[i];
    if (in->peer != e->config.self) {
        if (e->host->wake_sibling)
            e->host->wake_sibling(e->host->context, in->peer, in->origin_flow, ENGINE_FLOW_ORIGIN);
        return;
    }
    if (in->origin_flow >= e->config.flows_max)
        return;
    f = &e->flows[in->origin_flow];
    if (f->state == FLOW_OPEN && f->peer == e->config.self && f->inflow == i &&
        owner_as_session(f->owner) != NONE)
        session_dirty(e, owner_handle(f->owner));
}

void direct_show_spill(struct session_live *live, bool spilled)
{
    atomic_store_explicit(&live->shared->spilled, spilled, memory_order_release);
}
