/* Remotes and inflows on their way out (remote.h). Thread: the progress thread. */
#include "daemon/engine/peer/remote.h"
#include "daemon/engine/session/direct.h"
#include "daemon/engine/state/held.h"
#include "daemon/engine/state/lists.h"
#include "daemon/engine/state/table.h"

void remote_joins(struct engine *e, uint32_t remote)
{
    const struct remote *r = &e->remotes[remote];
    struct flow_live *live = &e->flow_live[r->flow];

    e->remote_before[remote] = NONE;
    e->remote_next[remote] = live->first_remote;
    if (live->first_remote != NONE)
        e->remote_before[live->first_remote] = remote;
    live->first_remote = remote;
    live->remotes++;
    if (r->has_key)
        chain_add_key(&e->remotes_of_key, chain_hash(r->peer, r->key.slot), remote);
}

/* Takes a remote off its flow's list. */
static void remote_parts(struct engine *e, uint32_t remote)
{
    struct flow_live *live = &e->flow_live[e->remotes[remote].flow];
    uint32_t before = e->remote_before[remote], next = e->remote_next[remote];

    *(before == NONE ? &live->first_remote : &e->remote_next[before]) = next;
    if (next != NONE)
        e->remote_before[next] = before;
    if (live->forget_next == remote)
        live->forget_next = next;
    live->remotes--;
}

void remote_free(struct engine *e, uint32_t remote)
{
    struct remote *r = &e->remotes[remote];

    remote_parts(e, remote);
    chain_remove(&e->remotes_of_key, remote);
    held_remotes(e, r->flow, -1);
    if (e->flow_live[r->flow].remotes == 0)
        table_leaves(e, TABLE_FLOWS, r->flow); /* leaves if nothing else names it */
    set32(e, &r->state, REMOTE_FREE);
    direct_show_ended(e, remote, false); /* others may share its bit */
    table_give(e, TABLE_REMOTES, remote);
}

bool remote_over(const struct engine *e, uint32_t remote)
{
    const struct remote *r = &e->remotes[remote];

    return r->state != REMOTE_FREE && r->unbound && r->asked == 0 && !r->revoke_due &&
           e->remote_busy[remote] == 0 && r->replies == 0 &&
           e->flows[r->flow].ops.head >= r->free_after;
}

bool remote_leaves(struct engine *e, uint32_t remote)
{
    const struct remote *r = &e->remotes[remote];

    if (remote_over(e, remote)) {
        remote_free(e, remote);
        commit(e);
    }
    return r->state != REMOTE_FREE && (r->unbound || r->revoke_due);
}

void inflow_enters(struct engine *e, uint32_t inflow)
{
    const struct inflow *in = &e->inflows[inflow];

    chain_add(&e->inflows_of_peer, in->peer, inflow);
    chain_add_key(&e->inflows_of_origin, chain_hash(in->session, in->origin), inflow);
    chain_add_key(&e->inflows_of_flow, inflow_hash(in->session, in->peer, in->origin_flow), inflow);
    if (inflow_is_held(in)) /* after a restart */
        chain_add(&e->inflows_held, in->session, inflow);
    if (in->due != 0 && in->session != NONE)
        chain_add(&e->inflows_due, due_home(in->session, in->due), inflow);
}

/* Within a transaction: takes the inflow off its session's list, and out of its counts. */
static void inflow_parts(struct engine *e, uint32_t inflow)
{
    uint32_t session = e->inflows[inflow].session;

    held_inflows(e, session, -1);
    set32(e, &e->sessions[session].replies_owed,
          e->sessions[session].replies_owed - e->inflows[inflow].owed);
    unlist_inflow(e, &e->sessions[session].first_inflow, inflow);
}

void inflow_free(struct engine *e, uint32_t inflow)
{
    struct inflow *in = &e->inflows[inflow];

    chain_remove(&e->inflows_of_peer, inflow);
    chain_remove(&e->inflows_of_origin, inflow);
    chain_remove(&e->inflows_of_flow, inflow);
    chain_remove(&e->inflows_held, inflow);
    if (in->session != NONE)
        inflow_parts(e, inflow);
    for (int who = 0; who < REPLIERS; who++) {
        if (in->reply_flow[who] == NONE)
            continue;
        set32(e, &e->flows[in->reply_flow[who]].serves, NONE);
        table_leaves(e, TABLE_FLOWS, in->reply_flow[who]);
    }
    set32(e, &in->state, INFLOW_FREE);
    table_give(e, TABLE_INFLOWS, inflow);
}

void flow_free(struct engine *e, uint32_t flow)
{
    chain_remove(&e->flows_of_peer, flow);
    chain_remove(&e->flows_of_way, flow);
    held_flow_goes(e, flow);
    set32(e, &e->flows[flow].state, FLOW_FREE);
    table_give(e, TABLE_FLOWS, flow);
}
