/* Resolving peers and keys. Thread: the progress thread. */
#include "daemon/engine/peer/bind.h"

#include <string.h>
#include "daemon/engine/session/direct.h"
#include "shm_ring/fault.h"
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ledger/notes.h"
#include "daemon/engine/offload/puts/region_put.h"
#include "daemon/engine/ops/owner.h"
#include "daemon/engine/peer/marks.h"
#include "daemon/engine/session/quota.h"
#include "daemon/engine/peer/region.h"
#include "daemon/engine/session/session.h"
#include "daemon/engine/peer/remote.h"
#include "daemon/engine/state/held.h"
#include "daemon/engine/state/lists.h"
#include "daemon/engine/state/table.h"

/* Within a transaction: reports the bind's end to its owner. */
static void bind_ended(struct engine *e, uint32_t remote, int32_t status)
{
    uint64_t owner = e->remotes[remote].owner;

    if (owner != OWNER_GONE && owner_row(e, owner)->bound)
        owner_row(e, owner)->bound(e, remote, status);
}

/* Within a transaction: sends BIND to the target. */
static int bind_ask(struct engine *e, uint32_t remote)
{
    struct remote *r = &e->remotes[remote];
    const struct flow *f = &e->flows[r->flow];
    struct wire_bind w = {
        .head.kind = WIRE_BIND,
        .remote = remote,
        .flow = f->inflow,
        .origin_flow = r->flow,
        .target = r->endpoint,
        .has_key = r->has_key,
        .slot = r->key.slot,
        .generation = r->key.generation,
    };
    uint32_t client = NONE;

    if (f->owner != OWNER_GONE) {
        struct owner_identity whose;

        client = owner_client(e, f->owner);
        owner_row(e, f->owner)->identify(e, owner_handle(f->owner), &whose);
        w.uid = whose.uid;
        w.origin = whose.origin;
        memcpy(w.job, whose.job, strnlen(whose.job, sizeof(w.job) - 1));
    }
    memcpy(w.secret, r->key.secret, sizeof(w.secret));
    set32(e, &r->asked, r->asked + 1);
    return notes_push(e, r->peer, client, &w, sizeof(w));
}

#define REMOTES_LOOKED_AT 256u /* remotes that a bind without room looks at */

/* Whether the session may have one more remote, and there is one free. 0, -EDQUOT, -ENOSPC. */
static int remote_room(struct engine *e, uint32_t session, uint32_t peer, uint64_t endpoint)
{
    bool flow = flow_find(e, owner_of(OWNER_SESSION, session), peer, endpoint) < 0;
    int r = quota_bind(e, session, flow);

    if (r < 0 || table_full(e, TABLE_REMOTES)) {
        table_sweep(e, TABLE_REMOTES, REMOTES_LOOKED_AT, remote_leaves);
        r = quota_bind(e, session, flow);
    }
    return r < 0 ? r : table_full(e, TABLE_REMOTES) ? -ENOSPC : 0;
}

int engine_bind(struct engine *e, uint32_t session, uint32_t peer, uint64_t endpoint,
                const struct engine_key *key, uint64_t cookie)
{
    int r;

    if (session >= e->config.sessions_max || e->sessions[session].state != SESSION_OPEN)
        return -EINVAL;
    if (peer >= e->config.peers)
        return -EHOSTUNREACH;
    if (key && key->node != peer)
        return -EKEYREJECTED;
    r = remote_room(e, session, peer, endpoint);
    if (r == 0)
        r = bind_begin(e, owner_of(OWNER_SESSION, session), peer, endpoint, key, cookie);
    return r < 0 ? r : 0;
}

int bind_begin(struct engine *e, uint64_t owner, uint32_t peer, uint64_t endpoint,
               const struct engine_key *key, uint64_t cookie)
{
    struct remote *r;
    uint32_t i;
    int flow;

    if (table_full(e, TABLE_REMOTES))
        return -ENOSPC;
    peer_know(e, peer);
    flow = flow_open(e, owner, peer, endpoint);
    if (flow < 0)
        return flow;
    i = table_take(e, TABLE_REMOTES);
    r = &e->remotes[i];
    *r = (struct remote){.owner = owner,
                         .flow = (uint32_t)flow,
                         .peer = peer,
                         .endpoint = endpoint,
                         .cookie = cookie,
                         .has_key = key != NULL};
    if (key)
        r->key = *key;
    set32(e, &r->state, REMOTE_BINDING);
    direct_show_ended(e, i, false);
    if (bind_ask(e, i) < 0) {
        arena_rollback(&e->arena);
        flow_retire(e, (uint32_t)flow); /* in case the flow was made for this bind */
        return -ENOBUFS;
    }
    held_remotes(e, (uint32_t)flow, 1);
    commit(e);
    remote_joins(e, i);
    return (int)i;
}

int engine_unbind(struct engine *e, uint32_t session, uint32_t remote)
{
    struct remote *r;

    if (remote >= e->config.remotes_max)
        return -EINVAL;
    r = &e->remotes[remote];
    if (r->state == REMOTE_FREE || r->owner != owner_of(OWNER_SESSION, session) || r->unbound)
        return -EINVAL;
    /* A wake-up by this remote may still stand in the ring, and would have no effect after this. */
    direct_wake(e, &e->flows[r->flow]);
    set64(e, &r->free_after, e->flows[r->flow].ops.tail);
    set32(e, &r->unbound, 1);
    commit(e);
    if (remote_over(e, remote)) {
        remote_free(e, remote);
        commit(e);
        flow_retire(e, r->flow);
    } else {
        e->flow_live[r->flow].let_go = true;
        table_keep_leaving(e, TABLE_REMOTES, remote);
    }
    return 0;
}

/* The open session of this job's rank and context, or NONE. */
static uint32_t session_find(const struct engine *e, uint32_t uid, const char *job,
                             uint64_t endpoint)
{
    const struct chain *sessions = &e->sessions_of_endpoint;

    for (uint32_t i = chain_first(
             sessions, chain_home(sessions, (uint32_t)(endpoint >> 32), (uint32_t)endpoint));
         i != NONE; i = chain_next(sessions, i)) {
        const struct session *s = &e->sessions[i];
        const struct client *c = &e->clients[s->client];

        if (s->state == SESSION_OPEN && c->state == CLIENT_LIVE && c->uid == uid &&
            c->rank == (uint32_t)endpoint && s->context == endpoint >> 32 &&
            strcmp(c->job, job) == 0)
            return i;
    }
    return NONE;
}

/* Whether our client has bound the inflow's origin, or a context with its number on any node. */
static bool origin_is_bound(const struct engine *e, const struct inflow *in)
{
    return flow_find_open(e, owner_of(OWNER_SESSION, in->session), in->origin) >= 0;
}

/* Within a transaction, for a new inflow: if the end of its origin was reported, reports that the
 * origin is back. */
static void report_origin_back(struct engine *e, uint32_t inflow)
{
    struct inflow *in = &e->inflows[inflow];

    if (!session_knows_end(e, in->session, in->origin))
        return;
    if (e->sessions[in->session].ends_due > 0 ||
        session_report_back(e, in->session, in->origin) < 0)
        session_owe_inflow(e, inflow, DUE_BACK);
    else
        e->peer_live[in->peer].back = in->session;
}

/* Within a transaction: finds our end of the flow, or makes a new one. */
static int inflow_take(struct engine *e, uint32_t peer, uint32_t session, const struct wire_bind *w,
                       bool *is_new)
{
    const struct chain *known = &e->inflows_of_flow;
    struct session *s = &e->sessions[session];
    struct inflow *in;
    uint32_t free;

    if (w->flow != WIRE_NONE) {
        in = w->flow < e->config.flows_max ? &e->inflows[w->flow] : NULL;
        if (!in || in->peer != peer || in->session != session ||
            in->origin_flow != w->origin_flow || in->state == INFLOW_FREE ||
            in->state == INFLOW_PARTING)
            return -EHOSTUNREACH;
        return (int)w->flow;
    }
    /* Two binds of one new flow may be under way at once. */
    for (uint32_t i = chain_first(known, inflow_home(e, session, peer, w->origin_flow)); i != NONE;
         i = chain_next(known, i))
        if (e->inflows[i].session == session && e->inflows[i].peer == peer &&
            e->inflows[i].origin_flow == w->origin_flow && e->inflows[i].state != INFLOW_FREE &&
            e->inflows[i].state != INFLOW_PARTING)
            return (int)i;
    if (quota_inflow(e, session) < 0)
        return -EDQUOT;
    free = table_take(e, TABLE_INFLOWS);
    if (free == NONE)
        return -ENOSPC;
    in = &e->inflows[free];
    *in = (struct inflow){.session = session,
                          .peer = peer,
                          .origin_flow = w->origin_flow,
                          .origin = w->origin,
                          .reply_flow = {NONE, NONE}};
    inflow_enters(e, free);
    set32(e, &in->state, INFLOW_OPEN);
    list_inflow(e, &s->first_inflow, free);
    held_inflows(e, session, 1);
    *is_new = true;
    return (int)free;
}

static int bind_resolve(struct engine *e, uint32_t peer, uint32_t session,
                        const struct wire_bind *w, struct wire_bound *answer, bool *is_new)
{
    int r, inflow;

    if (session == NONE)
        return -EHOSTUNREACH;
    if (w->has_key) {
        const struct region *region;
        const struct segment_live *segment;

        r = region_resolve(e, e->sessions[session].client, w->slot, w->generation, w->secret);
        if (r < 0)
            return r;
        region = &e->regions[r];
        if (region->packet > 0 &&
            (region->offload == NONE || e->offloads.table[region->offload].session != session))
            return -EKEYREJECTED;
        segment = &e->segment_live[region->segment];
        if (!segment->registered)
            return segment->status < 0 ? segment->status : -EAGAIN;
        answer->rights = (uint16_t)region->rights;
        answer->length = region->length;
        answer->packet = (uint16_t)(region->packet / WIRE_PACKET_UNIT);
        if (region->ways & PUTS_STORED)
            answer->rights |= WIRE_BOUND_STORES;
        if (region->ways & GETS_OBSERVED)
            answer->rights |= WIRE_BOUND_OBSERVES;
        if (region->packet == 0 || region->ways & PUTS_STORED ||
            region->rights & ENGINE_REMOTE_READ) {
            answer->address = segment->memory.address + region->offset;
            answer->key = segment->memory.key;
        }
    }
    inflow = inflow_take(e, peer, session, w, is_new);
    if (inflow < 0)
        return inflow;
    answer->flow = (uint32_t)inflow;
    return w->has_key ? region_grant(e, w->slot, peer) : 0;
}

int bind_asked(struct engine *e, uint32_t peer, const struct ledger_record *record)
{
    struct wire_bind w;
    struct wire_bound answer = {.head.kind = WIRE_BOUND, .flow = WIRE_NONE};
    uint32_t session, client;
    bool is_new = false;
    int r;

    memcpy(&w, record->at, sizeof(w));
    w.job[sizeof(w.job) - 1] = '\0';
    answer.remote = w.remote;
    session = session_find(e, w.uid, w.job, w.target);
    client = session != NONE ? e->sessions[session].client : NONE;
    answer.status = bind_resolve(e, peer, session, &w, &answer, &is_new);
    FAULT(BIND_RESOLVED);
    r = notes_answer(e, peer, client, &answer, sizeof(answer));
    if (r == 0 && is_new)
        report_origin_back(e, answer.flow);
    return r;
}

int bind_asked_after(struct engine *e, uint32_t peer)
{
    uint32_t session = e->peer_live[peer].back;

    e->peer_live[peer].back = NONE;
    if (session != NONE)
        session_show(e, session);
    return 0;
}

static uint32_t ways_of(const struct wire_bound *w)
{
    if (w->packet == 0)
        return 0;
    return (w->rights & WIRE_BOUND_STORES ? PUTS_STORED : 0) |
           (w->rights & WIRE_BOUND_OBSERVES ? GETS_OBSERVED : 0);
}

/* Within a transaction: the target has opened its end of the flow. */
static void flow_opened(struct engine *e, uint32_t flow)
{
    const struct owner_kind *row = owner_row(e, e->flows[flow].owner);

    set32(e, &e->flows[flow].state, FLOW_OPEN);
    if (row->peer_answered)
        row->peer_answered(e, flow);
}

int bind_answered(struct engine *e, uint32_t peer, const struct ledger_record *record)
{
    struct wire_bound w;
    struct remote *r;
    struct flow *f;
    bool binding;

    memcpy(&w, record->at, sizeof(w));
    if (w.remote >= e->config.remotes_max)
        return -EPROTO;
    r = &e->remotes[w.remote];
    if (r->asked == 0 || r->peer != peer)
        return 0;
    set32(e, &r->asked, r->asked - 1);
    f = &e->flows[r->flow];
    /* An answer that is not final sets the number, too: the inflow that the target has opened must
     * be closed later. */
    if (w.flow != WIRE_NONE && f->inflow == NONE)
        set32(e, &f->inflow, w.flow);
    if (r->state != REMOTE_BINDING && r->state != REMOTE_STALE) {
        e->sweep = true;
        return 0;
    }
    if (w.status == -EAGAIN)
        return bind_ask(e, w.remote) < 0 ? -EAGAIN : 0;
    if (w.flow != WIRE_NONE && f->state == FLOW_BINDING)
        flow_opened(e, r->flow);
    binding = r->state == REMOTE_BINDING;
    if (w.status < 0) {
        if (binding) {
            remote_free(e, w.remote);
            bind_ended(e, w.remote, w.status);
        } else {
            set32(e, &r->state, REMOTE_REVOKED);
            direct_show_ended(e, w.remote, true);
        }
    } else {
        set64(e, &r->length, w.length);
        set64(e, &r->address, w.address);
        set64(e, &r->fabric_key, w.key);
        set32(e, &r->rights, w.rights & ~(WIRE_BOUND_STORES | WIRE_BOUND_OBSERVES));
        set32(e, &r->packet, w.packet * WIRE_PACKET_UNIT);
        set32(e, &r->ways, ways_of(&w));
        set32(e, &r->state, REMOTE_READY);
        if (binding)
            bind_ended(e, w.remote, 0);
    }
    e->sweep = true;
    flows_ready_towards(e, r);
    return 0;
}

/* Whether our client reaches the inflow's origin, or a later context with its number, by another
 * way: by an open flow to it, or by another inflow. The end of an open flow is reported on its own,
 * in front of a CLOSE; the end of a flow whose bind is under way is not. An inflow that is to be
 * cut reports the end later. */
static bool origin_is_back(struct engine *e, uint32_t inflow)
{
    const struct inflow *in = &e->inflows[inflow];
    const struct chain *others = &e->inflows_of_origin;

    if (origin_is_bound(e, in))
        return true;
    for (uint32_t i = chain_first(others, chain_home(others, in->session, in->origin)); i != NONE;
         i = chain_next(others, i))
        if (i != inflow && e->inflows[i].session == in->session &&
            e->inflows[i].origin == in->origin && e->inflows[i].state != INFLOW_FREE &&
            (e->inflows[i].state != INFLOW_PARTING || offload_cut_waits(&e->inflows[i])))
            return true;
    return false;
}

/* Within a transaction: posts the end of the inflow's origin, or leaves it due. */
static void report_origin_end(struct engine *e, uint32_t inflow, int32_t end)
{
    struct inflow *in = &e->inflows[inflow];

    if (session_report_end(e, in->session, in->origin, end) < 0)
        session_owe_inflow(e, inflow, end);
}

/* Within a transaction: the inflow closes, or parts. */
static void inflow_closes(struct engine *e, uint32_t inflow, int32_t end)
{
    struct inflow *in = &e->inflows[inflow];

    offload_cut(e, inflow); /* first, so that a put's event comes before the end of its origin */
    if (in->session != NONE && in->due == DUE_BACK)
        session_drop_due(e, in->session, &in->due);
    if (in->session != NONE && end != 0 && !origin_is_back(e, inflow))
        report_origin_end(e, inflow, end == WIRE_ENDED ? WIRE_ENDED : -EHOSTDOWN);
    if (in->session == NONE || (in->owed == 0 && in->due == 0)) {
        inflow_free(e, inflow);
        return;
    }
    /* Our client holds the inflow's number as a token, so the inflow stays until all replies are
     * sent; or the end is still to be reported. */
    set32(e, &in->state, INFLOW_PARTING);
    for (int who = 0; who < REPLIERS; who++)
        if (in->reply_flow[who] != NONE)
            table_leaves(e, TABLE_FLOWS, in->reply_flow[who]);
}

int bind_inflow_closed(struct engine *e, uint32_t peer, uint32_t inflow, int32_t end)
{
    const struct inflow *in;

    if (inflow >= e->config.flows_max || e->inflows[inflow].peer != peer)
        return -EPROTO;
    in = &e->inflows[inflow];
    if (in->state != INFLOW_FREE && in->state != INFLOW_PARTING)
        inflow_closes(e, inflow, end);
    return 0;
}

/* Within a transaction: leaves the inflow to a later step, which cuts the put that it holds, and
 * closes it. Until then no report is due for the inflow, so nothing else frees it. */
static void inflow_waits_for_cut(struct engine *e, struct inflow *in)
{
    if (in->due == DUE_BACK)
        session_drop_due(e, in->session, &in->due);
    set32(e, &in->state, INFLOW_PARTING);
}

void bind_origin_gone(struct engine *e, uint32_t inflow)
{
    inflow_closes(e, inflow, -EHOSTDOWN);
}

static void remote_refresh(struct engine *e, uint32_t remote)
{
    struct remote *r = &e->remotes[remote];

    if (r->state != REMOTE_READY || !r->has_key)
        return;
    /* The state changes in the transaction of the new BIND, or a restart between the two would
     * lose the BIND. */
    set32(e, &r->state, REMOTE_STALE);
    if (bind_ask(e, remote) < 0) {
        arena_rollback(&e->arena);
        set32(e, &r->state, REMOTE_REVOKED);
        direct_show_ended(e, remote, true);
    }
    commit(e);
}

static void remote_forget(struct engine *e, uint32_t remote)
{
    struct remote *r = &e->remotes[remote];
    bool binding = r->state == REMOTE_BINDING;

    set32(e, &r->revoke_due, 0);
    set32(e, &r->asked, 0);
    if (binding) {
        remote_free(e, remote);
        bind_ended(e, remote, -EHOSTDOWN);
    } else {
        set32(e, &r->state, REMOTE_REVOKED);
    }
    commit(e);
    direct_show_ended(e, remote, true);
}

/* Calls `act` for each remote towards the peer; `act` may free it. */
static void remotes_towards(struct engine *e, uint32_t peer,
                            void (*act)(struct engine *e, uint32_t remote))
{
    for (uint32_t f = chain_first(&e->flows_of_peer, peer); f != NONE;
         f = chain_next(&e->flows_of_peer, f))
        for (uint32_t i = e->flow_live[f].first_remote, next; i != NONE; i = next) {
            next = e->remote_next[i];
            act(e, i);
        }
}

void bind_refresh_node(struct engine *e, uint32_t peer)
{
    remotes_towards(e, peer, remote_refresh);
}

void bind_forget_node(struct engine *e, uint32_t peer)
{
    remotes_towards(e, peer, remote_forget);
    /* The newest first, as they stand in their sessions' lists. */
    for (uint32_t i = chain_first(&e->inflows_of_peer, peer), next; i != NONE; i = next) {
        next = chain_next(&e->inflows_of_peer, i);
        if (e->inflows[i].state == INFLOW_FREE)
            continue;
        if (offload_cut_later(e, i))
            inflow_waits_for_cut(e, &e->inflows[i]);
        else
            bind_inflow_closed(e, peer, i, -EHOSTDOWN);
        commit(e);
    }
}

void bind_show_ended(struct engine *e, uint32_t session)
{
    for (uint32_t f = e->sessions[session].first_flow; f != NONE; f = e->flows[f].next)
        for (uint32_t i = e->flow_live[f].first_remote; i != NONE; i = e->remote_next[i])
            direct_show_ended(
                e, i, e->remotes[i].state == REMOTE_REVOKED || e->flows[f].state == FLOW_DEAD);
}

bool bind_forget_flow(struct engine *e, uint32_t flow, uint32_t *left)
{
    struct flow_live *live = &e->flow_live[flow];
    uint32_t i = live->forget_next != NONE ? live->forget_next : live->first_remote;

    for (; i != NONE && *left > 0; i = e->remote_next[i], --*left) {
        if (e->remotes[i].state == REMOTE_BINDING)
            bind_ended(e, i, -ESHUTDOWN); /* no later answer finds the owner */
        set64(e, &e->remotes[i].owner, OWNER_GONE);
        commit(e);
    }
    live->forget_next = i;
    return i == NONE;
}

void bind_forget_owner(struct engine *e, uint64_t owner)
{
    for (uint32_t f = *owner_flows(e, owner), left = UINT32_MAX; f != NONE; f = e->flows[f].next)
        if (e->flows[f].owner == owner)
            bind_forget_flow(e, f, &left);
}
