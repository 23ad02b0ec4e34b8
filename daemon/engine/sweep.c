/* The way out of clients, sessions, flows, regions and segments (sweep.h). Thread: the progress
 * thread. */
#include "daemon/engine/sweep.h"

#include "daemon/engine/ledger/notes.h"
#include "daemon/engine/offload/program.h"
#include "daemon/engine/offload/table.h"
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ops/reply_credit.h"
#include "daemon/engine/ops/turn.h"
#include "daemon/engine/peer/bind.h"
#include "daemon/engine/peer/region.h"
#include "daemon/engine/peer/remote.h"
#include "daemon/engine/peer/rings.h"
#include "daemon/engine/session/client.h"
#include "daemon/engine/session/session.h"
#include "daemon/engine/state/notice.h"
#include "shm_ring/doorbell.h"
#include "shm_ring/fault.h"
#include "daemon/engine/state/held.h"
#include "daemon/engine/state/lists.h"
#include "daemon/engine/state/table.h"
#include "daemon/engine/team/progress.h"
#include "daemon/engine/team/team.h"

/* Bounds of one visit to an entry; the next visit continues. */
#define SESSION_FLOWS 256u
#define FLOW_REMOTES  512u
/* REVOKEs that leave in one step. */
#define STEP_ASKS 1024u
/* Operations of dead flows that end in one step. */
#define STEP_ENDS 1024u
/* Targets of offloads that end in one step; the offload that reaches this number ends, too. */
#define STEP_TARGETS 1024u

/* In the first sweep: closes what the caller has not attached, because it never knew of the entry
 * or has lost the mapping. */
static void orphans_close(struct engine *e)
{
    e->orphans = false;
    teams_resume(e);
    for (uint32_t i = 0; i < e->config.sessions_max; i++)
        if (!e->session_live[i].attached)
            session_begin_close(e, i);
    for (uint32_t i = 0; i < e->config.segments_max; i++) {
        struct segment *seg = &e->segments[i];

        if (seg->state == SEGMENT_OPEN && !e->segment_live[i].base && seg->regions == 0)
            engine_segment_close(e, seg->client, i);
    }
    /* Operations that waited only for a fabric operation of the old process can finish now. */
    for (uint32_t i = 0; i < table_bound(e, TABLE_FLOWS); i++)
        if (e->flows[i].state != FLOW_FREE)
            flow_finish(e, i);
}

/* ---- flows ----------------------------------------------------------------------------------- */

static bool flow_binds_pending(const struct engine *e, uint32_t flow)
{
    for (uint32_t i = e->flow_live[flow].first_remote; i != NONE; i = e->remote_next[i])
        if (e->remotes[i].asked > 0)
            return true;
    return false;
}

/* Frees the flow's remotes, a bounded number in one visit. Returns whether none is left. */
static bool flow_remotes_free(struct engine *e, uint32_t flow)
{
    const struct flow_live *live = &e->flow_live[flow];

    for (uint32_t n = 0; live->first_remote != NONE; n++) {
        uint32_t remote = live->first_remote;

        if (e->remotes[remote].revoke_due || e->remote_busy[remote] > 0)
            return false;
        if (n == FLOW_REMOTES) {
            e->sweep = true;
            return false;
        }
        remote_free(e, remote);
        commit(e);
    }
    return true;
}

/* Drains the flow and sends CLOSE; called until the flow is free. */
static void flow_sweep(struct engine *e, uint32_t flow)
{
    struct flow *f = &e->flows[flow];

    if (e->flow_live[flow].outstanding > 0)
        return;
    turn_unready(e, flow);
    flow_empty(e, flow);
    if (e->flow_live[flow].remotes > 0 && flow_binds_pending(e, flow))
        return;
    if (!flow_remotes_free(e, flow))
        return;
    if (f->inflow == NONE) {
        flow_free(e, flow);
    } else {
        uint32_t number = f->traffic == FLOW_REPLIES ? WIRE_NONE : f->inflow;

        if (notes_push_flow(e, f->peer, turn_client(e, flow), WIRE_CLOSE, number, flow, f->ending) <
            0) {
            arena_rollback(&e->arena);
            e->sweep = true;
            return;
        }
        set32(e, &f->state, FLOW_CLOSED);
    }
    commit(e);
}

/* Ends operations of a flow whose target is gone, once all before them have been reported: until
 * then none can be, and all would be at once. flow_finish lists the flow again. */
static void flow_dead_sweep(struct engine *e, uint32_t flow)
{
    const struct flow *f = &e->flows[flow];

    if (f->staged == f->ops.tail || f->reported < f->staged)
        return;
    e->ends_left = flow_end_rest(e, flow, e->ends_left);
    e->sweep |= f->staged < f->ops.tail;
}

/* Lets a flow of replies leave once its inflow is on its way out and its replies have ended. */
static void reply_flow_retire(struct engine *e, uint32_t flow)
{
    struct flow *f = &e->flows[flow];

    if (f->owner == OWNER_GONE || (f->state != FLOW_OPEN && f->state != FLOW_DEAD) ||
        reply_way_open(e, f))
        return;
    if (f->state != FLOW_DEAD)
        flow_gone(e, flow);
    if (f->serves != NONE || queue_count(&f->ops) > 0 || e->flow_live[flow].outstanding > 0)
        return;
    flow_detach(e, flow);
}

static bool flow_leaves(struct engine *e, uint32_t flow)
{
    const struct flow *f = &e->flows[flow];

    if (f->state == FLOW_DEAD)
        flow_dead_sweep(e, flow);
    if (f->state == FLOW_CLOSING)
        flow_sweep(e, flow);
    else if (f->traffic == FLOW_REPLIES)
        reply_flow_retire(e, flow);
    else
        flow_retire(e, flow);
    if (f->state == FLOW_FREE)
        return false;
    return f->owner == OWNER_GONE || (f->state == FLOW_DEAD && f->staged < f->ops.tail) ||
           (f->traffic == FLOW_REPLIES ? !reply_way_open(e, f) : e->flow_live[flow].remotes == 0);
}

static bool answer_and_leave(struct engine *e, uint32_t remote)
{
    const struct remote *r = &e->remotes[remote];

    if (r->state == REMOTE_REVOKED && r->revoke_due && e->remote_busy[remote] == 0)
        region_answer_revoke(e, remote);
    return remote_leaves(e, remote);
}

/* ---- regions and segments -------------------------------------------------------------------- */

static void region_ask(struct engine *e, uint32_t slot)
{
    struct region *region = &e->regions[slot];

    for (uint32_t i = region->first_grant; i != NONE; i = e->grants[i].next) {
        struct grant *g = &e->grants[i];
        struct wire_region record = {
            .head.kind = WIRE_REVOKE, .slot = slot, .generation = region->generation};

        if (g->asked)
            continue;
        if (e->asks_left == 0) {
            e->sweep = true;
            return;
        }
        e->asks_left--;
        if (notes_push(e, g->peer, region->client, &record, sizeof(record)) < 0) {
            arena_rollback(&e->arena);
            e->sweep = true;
            return;
        }
        set32(e, &g->asked, 1);
        commit(e);
    }
}

/* Asks the peers that hold grants of the region, and frees it when none is left. */
static bool region_leaves(struct engine *e, uint32_t slot)
{
    struct region *region = &e->regions[slot];
    struct segment *seg = &e->segments[region->segment];

    if (region->state != REGION_REVOKING)
        return false;
    FAULT(REVOKE_BEGUN);
    region_ask(e, slot);
    if (region->first_grant != NONE)
        return true;
    set32(e, &region->state, REGION_FREE);
    table_give(e, TABLE_REGIONS, slot);
    set32(e, &seg->regions, seg->regions - 1);
    commit(e);
    FAULT(REGION_FREED);
    e->sweep = true;
    if (e->clients[region->client].state == CLIENT_LIVE)
        notice_push(e, &(struct engine_notice){
                           .kind = ENGINE_REGION_CLOSED, .handle = slot, .cookie = region->cookie});
    return false;
}

static void segment_sweep(struct engine *e, uint32_t segment)
{
    struct segment *seg = &e->segments[segment];
    struct segment_live *live = &e->segment_live[segment];

    if (live->busy > 0 || live->adding || live->dropping || seg->regions > 0 ||
        (live->refused && e->drop_at > 0))
        return;
    if (!live->registered) {
        segment_dropped(e, segment, 0);
        return;
    }
    live->registered = false;
    live->dropping = true;
    if (fabric_mem_drop(e->fabric, live->memory.index, cookie_of(COOKIE_SEGMENT, segment)) < 0)
        segment_dropped(e, segment, 0); /* the segment was not registered */
}

static bool segment_leaves(struct engine *e, uint32_t segment)
{
    if (e->segments[segment].state == SEGMENT_CLOSING)
        segment_sweep(e, segment);
    return e->segments[segment].state == SEGMENT_CLOSING;
}

/* ---- sessions and clients -------------------------------------------------------------------- */

/* The end of a closing session, as its peers are to see it. */
static int32_t end_of(const struct session *s)
{
    return s->in_order ? WIRE_ENDED : -EHOSTDOWN;
}

/* Closes the inflows of a session: notes report the end to their origins, and records that still
 * arrive fail. False: there are more, or no room for notes. */
static bool inflows_close(struct engine *e, uint32_t session)
{
    struct session *s = &e->sessions[session];

    for (uint32_t n = 0; s->first_inflow != NONE; n++) {
        struct inflow *in = &e->inflows[s->first_inflow];

        if (n == SESSION_FLOWS) {
            e->sweep = true;
            return false;
        }
        if (in->state == INFLOW_PARTING) {
            inflow_free(e, s->first_inflow);
            commit(e);
            continue;
        }
        if (notes_push_flow(e, in->peer, s->client, WIRE_GONE, in->origin_flow, 0, end_of(s)) < 0) {
            arena_rollback(&e->arena);
            e->sweep = true;
            return false;
        }
        held_inflows(e, session, -1);
        set32(e, &s->replies_owed, s->replies_owed - in->owed);
        unlist_inflow(e, &s->first_inflow, s->first_inflow);
        set32(e, &in->session, NONE);
        set32(e, &in->state, INFLOW_CLOSED);
        commit(e);
    }
    return true;
}

/* Called before and after a context's counts move to the totals: a reader that adds both up sees a
 * change, and reads again. */
static void departure(struct engine *e)
{
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&e->departures, e->departures + 1, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

/* Detaches the session's flows, closes its inflows, and frees the session. Returns 1 once it is
 * free. */
static int session_sweep(struct engine *e, uint32_t session)
{
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    uint32_t remotes = FLOW_REMOTES;

    teams_forget_session(e, session);
    for (uint32_t n = 0; s->first_flow != NONE; n++) {
        if (n == SESSION_FLOWS || !bind_forget_flow(e, s->first_flow, &remotes)) {
            e->sweep = true;
            return 0;
        }
        set32(e, (uint32_t *)&e->flows[s->first_flow].ending, (uint32_t)end_of(s));
        flow_detach(e, s->first_flow);
    }
    if (!inflows_close(e, session))
        return 0;
    if (s->spill_bytes > 0)
        e->spilling--;
    set64(e, &s->spill_bytes, 0);
    commit(e);
    queue_clear(&e->pool, &s->spill);
    departure(e);
    if (live->attached)
        session_add_totals(s, live, &e->departed);
    set32(e, &s->state, SESSION_FREE);
    table_give(e, TABLE_SESSIONS, session);
    commit(e);
    departure(e);
    if (live->attached) {
        uint32_t state = SESSION_LIVE, mode;

        atomic_compare_exchange_strong(&live->shared->state, &state, SESSION_CLOSED);
        mode = doorbell_ring(&live->shared->event_bell);
        if (mode != DOORBELL_AWAKE)
            e->host->wake(e->host->context, session, mode);
    }
    live->attached = false;
    live->shared = NULL; /* the session may be unmapped: views look no more */
    return 1;
}

static void session_leave(struct engine *e, uint32_t session)
{
    if (!offloads_leave(e, session))
        return;
    if (!session_sweep(e, session))
        return;
    chain_remove(&e->sessions_of_endpoint, session);
    for (uint32_t i = 0; i < e->open_count; i++) {
        if (e->open_sessions[i] != session)
            continue;
        e->open_sessions[i] = e->open_sessions[--e->open_count];
        break;
    }
    FAULT(SESSION_LEFT);
    notice_push(e, &(struct engine_notice){.kind = ENGINE_SESSION_CLOSED, .handle = session});
}

static bool session_leaves(struct engine *e, uint32_t session)
{
    const struct session *s = &e->sessions[session];

    if (s->state == SESSION_CLOSING)
        session_leave(e, session);
    else if (s->state == SESSION_OPEN && s->spill_bytes == 0)
        session_release_spill(e, session);
    else if (s->state == SESSION_OPEN)
        session_release_handlers(e, session);
    return s->state == SESSION_CLOSING;
}

/* Closes all that the client has, each segment after its regions, and frees the client when nothing
 * is left. */
static bool client_leaves(struct engine *e, uint32_t client)
{
    bool left = false;

    if (e->clients[client].state != CLIENT_CLOSING)
        return false;

    for (uint32_t i = 0; i < e->config.sessions_max; i++) {
        struct session *s = &e->sessions[i];

        if (s->state == SESSION_FREE || s->client != client)
            continue;
        session_begin_close(e, i);
        left = true;
    }
    if (!e->withdrawn[client])
        region_withdraw_client(e, client);
    e->withdrawn[client] = true;
    for (uint32_t i = 0; i < e->config.segments_max; i++) {
        struct segment *seg = &e->segments[i];

        if (seg->state == SEGMENT_FREE || seg->client != client)
            continue;
        if (seg->regions == 0)
            engine_segment_close(e, client, i);
        left = true;
    }
    if (left || !programs_leave(e, client))
        return true;
    set32(e, &e->clients[client].state, CLIENT_FREE);
    table_give(e, TABLE_CLIENTS, client);
    commit(e);
    FAULT(CLIENT_LEFT);
    notice_push(e, &(struct engine_notice){.kind = ENGINE_CLIENT_CLOSED, .handle = client});
    return false;
}

/* The tables that a step looks at, in this order, and how many entries of each at most. */
static const struct visit {
    enum table table;
    uint32_t most;
    bool (*leaves)(struct engine *e, uint32_t entry);
} visits[TABLES] = {
    {TABLE_REMOTES, 1024, answer_and_leave}, {TABLE_SESSIONS, 8, session_leaves},
    {TABLE_FLOWS, 256, flow_leaves},         {TABLE_REGIONS, 512, region_leaves},
    {TABLE_SEGMENTS, 64, segment_leaves},    {TABLE_CLIENTS, 8, client_leaves},
    {TABLE_TEAMS, 16, team_leaves},          {TABLE_OFFLOADS, 64, offload_leaves},
};

void sweep(struct engine *e)
{
    if (e->orphans)
        orphans_close(e);
    if (!e->sweeping) { /* a new sweep looks at all entries that are on a list now */
        e->sweep = false;
        rings_drop_again(e);
        for (uint32_t t = 0; t < TABLES; t++)
            e->leaving[t].due = e->leaving[t].count;
    }
    e->sweeping = false;
    e->asks_left = STEP_ASKS;
    e->ends_left = STEP_ENDS;
    e->offloads.targets_left = STEP_TARGETS;
    /* A table comes after the tables whose entries its own entries wait for. */
    for (const struct visit *v = visits; v < visits + TABLES && v->leaves && !e->sweeping; v++) {
        const struct leaving *leaving = &e->leaving[v->table];

        table_sweep(e, v->table, leaving->due < v->most ? leaving->due : v->most, v->leaves);
        e->sweeping = leaving->due > 0;
    }
}
