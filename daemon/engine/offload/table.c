/* The table of offloads (table.h, engine.h). Thread: the progress thread. */
#include "daemon/engine/offload/table.h"

#include <errno.h>
#include "daemon/engine/offload/account.h"
#include "daemon/engine/offload/puts/cuts.h"
#include "daemon/engine/offload/find.h"
#include "daemon/engine/offload/gets.h"
#include "daemon/engine/offload/puts/collect.h"
#include "daemon/engine/offload/program.h"
#include "daemon/engine/offload/run.h"
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ops/op.h"
#include "daemon/engine/peer/bind.h"
#include "daemon/engine/peer/remote.h"
#include "daemon/engine/session/quota.h"
#include "daemon/engine/state/notice.h"
#include "daemon/engine/state/table.h"
#include "shm_ring/fault.h"

/* Binds of one offload that are under way at once; further targets wait until some have ended. */
#define BINDS_AT_ONCE 16u

/* The cookie of a target's bind. */
static uint64_t bind_cookie(uint32_t handle, uint32_t target)
{
    return (uint64_t)handle << 32 | target;
}

/* ---- going ----------------------------------------------------------------------------------- */

static void unbind(struct engine *e, uint32_t remote)
{
    struct remote *r = &e->remotes[remote];

    set64(e, &r->free_after, e->flows[r->flow].ops.tail);
    set32(e, &r->unbound, 1);
    commit(e);
    e->flow_live[r->flow].let_go = true;
    table_leaves(e, TABLE_REMOTES, remote);
}

/* After a restart: unbinds all that an offload has bound, also a remote that its row does not name
 * yet. Walks all remotes of the context. */
static void unbind_all(struct engine *e, uint32_t session, uint32_t handle)
{
    for (uint32_t f = e->sessions[session].first_flow; f != NONE; f = e->flows[f].next) {
        if (e->flows[f].owner != owner_of(OWNER_OFFLOADS, session))
            continue;
        for (uint32_t i = e->flow_live[f].first_remote; i != NONE; i = e->remote_next[i]) {
            const struct remote *r = &e->remotes[i];

            if (r->cookie >> 32 == handle && !r->unbound)
                unbind(e, i);
        }
    }
}

/* Unbinds the targets that the offload's row names. A death may have cut an earlier call short:
 * then a remote may belong to another owner by now. */
static void unbind_targets(struct engine *e, uint32_t offload)
{
    const struct offload *o = &e->offloads.table[offload];
    const struct offload_target *targets = offload_targets(&e->offloads, offload);
    uint32_t handle = offload_handle_of(o, offload);

    for (uint32_t i = 0; i < o->targets; i++) {
        const struct remote *r;

        if (targets[i].remote == NONE)
            continue;
        r = &e->remotes[targets[i].remote];
        if (r->owner == owner_of(OWNER_OFFLOADS, o->session) && !r->unbound &&
            r->cookie == bind_cookie(handle, i))
            unbind(e, targets[i].remote);
    }
}

/* Within a transaction: a window begins, or ends, to hold its region. A client that ends may have
 * lost the region before. */
static void hold_region(struct engine *e, const struct engine_range *range, int change)
{
    struct region *region = &e->regions[range->slot];

    if (range->length > 0 && region->generation == range->generation)
        set32(e, &region->offloads, region->offloads + (uint32_t)change);
}

static void hold_regions(struct engine *e, const struct offload *o, int change)
{
    hold_region(e, &o->state_memory, change);
    hold_region(e, &o->host, change);
    hold_region(e, &o->scratch, change);
}

/* Within a transaction: the region has no offload any more. Peers that have bound it still send
 * packets. */
static void leave_region(struct engine *e, const struct offload *o)
{
    struct region *region = &e->regions[o->host.slot];

    if (region->generation != o->host.generation)
        return;
    set32(e, &region->offload, NONE);
    if (region->first_grant == NONE)
        set32(e, &region->packet, 0);
}

/* Whether one more offload may end in this step, by the targets of those that have ended; if not,
 * the next sweep continues. */
static bool may_end(struct engine *e)
{
    e->sweep |= e->offloads.targets_left == 0;
    return e->offloads.targets_left > 0;
}

static void remove_offload(struct engine *e, uint32_t offload)
{
    struct offload *o = &e->offloads.table[offload];
    uint32_t client = e->sessions[o->session].client, *left = &e->offloads.targets_left;

    *left -= o->targets < *left ? o->targets : *left;
    cuts_give_up_turn(e, offload);
    e->session_live[o->session].offloads--;
    if (o->takes == OFFLOAD_PUTS)
        leave_region(e, o);
    else
        chain_remove(&e->offloads.by_index, offload);
    unbind_targets(e, offload);
    program_release(e, o->program);
    hold_regions(e, o, -1);
    set32(e, &e->clients[client].offloads, e->clients[client].offloads - 1);
    set32(e, &o->state, OFFLOAD_FREE);
    table_give(e, TABLE_OFFLOADS, offload);
    commit(e);
    FAULT(OFFLOAD_GONE);
    e->sweep = true;
}

/* Lets an offload for messages be found by its index. */
static void find_by_index(struct engine *e, uint32_t offload)
{
    const struct offload *o = &e->offloads.table[offload];
    struct chain *chain = &e->offloads.by_index;

    if (o->takes == OFFLOAD_MESSAGES)
        chain_add_key(chain, chain_hash(o->session, o->index), offload);
}

/* ---- coming ---------------------------------------------------------------------------------- */

/* A target is bound, or can't be. */
static void bound(struct engine *e, uint32_t remote, int32_t status)
{
    const struct remote *r = &e->remotes[remote];
    uint32_t session = owner_handle(r->owner);
    uint32_t offload = offload_of_handle(e, session, (uint32_t)(r->cookie >> 32));
    uint32_t target = (uint32_t)r->cookie;
    struct offload *o;

    if (offload == NONE)
        return;
    o = &e->offloads.table[offload];
    if (status < 0)
        set32(e, &offload_targets(&e->offloads, offload)[target].remote, NONE);
    if (status < 0 && o->bind_status == 0)
        set32(e, (uint32_t *)&o->bind_status, (uint32_t)status);
    set32(e, &o->unbound, o->unbound - 1);
    table_leaves(e, TABLE_OFFLOADS, offload); /* the sweep continues with the offload */
}

static void ready(struct engine *e, uint32_t offload, int32_t status)
{
    const struct offload *o = &e->offloads.table[offload];

    notice_push(e, &(struct engine_notice){.kind = ENGINE_OFFLOAD_READY,
                                           .status = status,
                                           .handle = offload_handle_of(o, offload),
                                           .cookie = o->answer});
}

/* Ends an offload whose context is closed, and answers the call that waits for its targets to be
 * bound. */
static void end_offload(struct engine *e, uint32_t offload)
{
    if (e->offloads.table[offload].state == OFFLOAD_BINDING)
        ready(e, offload, -ESHUTDOWN);
    remove_offload(e, offload);
}

/* Sets the state that the offload's client has asked for. */
static void set_state(struct engine *e, uint32_t offload, enum offload_state state)
{
    struct offload *o = &e->offloads.table[offload];

    set32(e, &o->ending, OFFLOAD_STAYS);
    set32(e, &o->state, state);
    commit(e);
    e->offloads.live[offload].disabled = state == OFFLOAD_DISABLED;
}

/* Carries out what the client has asked for, once no put and no Long to the offload is under way.
 * An offload that is to end waits for its gets, too; the end of the last one leads here. */
static void all_is_cut(struct engine *e, uint32_t offload)
{
    const struct offload *o = &e->offloads.table[offload];

    if (o->gets > 0)
        return;
    if (o->ending == OFFLOAD_TO_DISABLE)
        set_state(e, offload, OFFLOAD_DISABLED);
    if (o->ending != OFFLOAD_TO_DESTROY || !e->offloads.live[offload].unasked)
        return;
    notice_push(e, &(struct engine_notice){.kind = ENGINE_OFFLOAD_CLOSED, .handle = o->session});
    remove_offload(e, offload);
}

/* Binds a target anew, with the key of the client's remote, if that remote is still bound. */
static int bind_target(struct engine *e, uint32_t offload, uint32_t target)
{
    const struct offload *o = &e->offloads.table[offload];
    const struct offload_target *t = &offload_targets(&e->offloads, offload)[target];
    const struct remote *r = &e->remotes[t->given];
    uint64_t owner = owner_of(OWNER_OFFLOADS, o->session);
    int rc;

    if (!op_remote_given(e, o->session, t->given) || r->endpoint != t->endpoint)
        return -EHOSTUNREACH;
    rc = quota_bind(e, o->session, flow_find(e, owner, r->peer, r->endpoint) < 0);
    return rc < 0 ? rc
                  : bind_begin(e, owner, r->peer, r->endpoint, r->has_key ? &r->key : NULL,
                               bind_cookie(offload_handle_of(o, offload), target));
}

/* Begins binds, up to BINDS_AT_ONCE at a time. The row names each remote from now on, so that the
 * offload's end finds it. A bind that can't begin counts as ended, and no further one begins.
 * Returns whether some have not ended. */
static bool bind_targets(struct engine *e, uint32_t offload)
{
    struct offload *o = &e->offloads.table[offload];
    uint32_t *begun = &e->offloads.live[offload].begun;

    while (*begun < o->targets && o->bind_status == 0 &&
           *begun + o->unbound < o->targets + BINDS_AT_ONCE) {
        uint32_t target = (*begun)++;
        int rc = bind_target(e, offload, target);

        if (rc >= 0) {
            set32(e, &offload_targets(&e->offloads, offload)[target].remote, (uint32_t)rc);
        } else {
            set32(e, (uint32_t *)&o->bind_status, (uint32_t)rc);
            set32(e, &o->unbound, o->unbound - 1);
        }
        commit(e);
    }
    return *begun + o->unbound > o->targets;
}

bool offload_leaves(struct engine *e, uint32_t offload)
{
    struct offload *o = &e->offloads.table[offload];

    if (o->state == OFFLOAD_OPEN || o->state == OFFLOAD_DISABLED) {
        bool more = !cuts_take_turn(e, offload);

        e->sweep |= more;
        if (!more)
            all_is_cut(e, offload);
        return more;
    }
    cuts_give_up_turn(e, offload);
    if (o->state != OFFLOAD_BINDING || bind_targets(e, offload))
        return false;
    if (o->bind_status < 0 && !may_end(e))
        return true;
    ready(e, offload, o->bind_status);
    if (o->bind_status < 0) {
        remove_offload(e, offload);
        return false;
    }
    set32(e, &o->state, OFFLOAD_OPEN);
    commit(e);
    FAULT(OFFLOAD_OPENED);
    return false;
}

/* Checks a window. Returns 0; -ERANGE: it is not in a region of the client's; -EINVAL: it is not at
 * a multiple of 64. */
static int range_check(const struct engine *e, uint32_t session, const struct engine_range *range)
{
    uint64_t at;

    if (range->length == 0)
        return 0;
    if (!offload_memory(e, session, range) || e->regions[range->slot].state != REGION_OPEN)
        return -ERANGE;
    at = e->regions[range->slot].offset + range->offset;
    return at % 64 == 0 ? 0 : -EINVAL;
}

/* Whether a context of this node has bound the context already: then messages may pass the engine
 * by. A bind that follows the client's first offload gets no such way (engine_neighbour), but no
 * note says which binds these are. */
static bool neighbour_passes_by(const struct engine *e, uint32_t session)
{
    for (uint32_t i = e->sessions[session].first_inflow; i != NONE; i = e->inflows[i].next)
        if (e->inflows[i].peer == e->config.self || e->peer_live[e->inflows[i].peer].sibling)
            return true;
    return false;
}

static uint32_t ways_of(const struct engine_offload_info *info)
{
    return (info->flags & ENGINE_OFFLOAD_PLACED ? PUTS_STORED : 0) |
           (info->flags & ENGINE_OFFLOAD_OBSERVE ? GETS_OBSERVED : 0);
}

/* Whether puts to this region may go to handlers: each peer that has bound the region must know
 * that, and in which way. */
static int region_check(const struct engine *e, const struct engine_offload_info *info)
{
    const struct engine_range *host = &info->host;
    const struct region *region;
    bool knows;

    if (host->length == 0) /* then range_check has not looked at the slot */
        return -EINVAL;
    region = &e->regions[host->slot];
    knows = region->packet > 0 && region->ways == ways_of(info);
    if (host->offset != 0 || host->length != region->length ||
        !(region->rights & ENGINE_REMOTE_WRITE))
        return -EINVAL;
    if (region->offload != NONE)
        return -EADDRINUSE;
    return region->first_grant != NONE && !knows ? -EBUSY : 0;
}

static int info_check(const struct engine *e, uint32_t session,
                      const struct engine_offload_info *info)
{
    int r = range_check(e, session, &info->state);

    if (r == 0)
        r = range_check(e, session, &info->host);
    if (r == 0)
        r = range_check(e, session, &info->scratch);
    if (r < 0)
        return r;
    if (info->takes > OFFLOAD_PUTS || info->index >= SESSION_HANDLERS ||
        info->flags & ~(uint32_t)ENGINE_OFFLOAD_FLAGS ||
        info->target_count > ENGINE_OFFLOAD_TARGETS)
        return -EINVAL;
    if (info->state.length > ENGINE_OFFLOAD_STATE_MAX)
        return -ERANGE;
    for (uint32_t i = 0; i < info->target_count; i++)
        if (!op_remote_given(e, session, info->targets[i]))
            return -EINVAL;
    if (neighbour_passes_by(e, session))
        return -EBUSY;
    if (info->takes == OFFLOAD_PUTS)
        return region_check(e, info);
    if (ways_of(info) != 0)
        return -EINVAL;
    return offload_of_index(e, session, info->index) == NONE ? 0 : -EADDRINUSE;
}

int engine_offload_create(struct engine *e, uint32_t session,
                          const struct engine_offload_info *info, uint64_t cookie)
{
    const struct session *s = &e->sessions[session];
    uint32_t program, offload;
    struct client *c;
    struct offload *o;
    int r;

    if (session >= e->config.sessions_max || s->state != SESSION_OPEN ||
        e->clients[s->client].state != CLIENT_LIVE)
        return -EINVAL;
    program = program_of_handle(e, s->client, info->program);
    r = program == NONE ? -EINVAL : info_check(e, session, info);
    if (r < 0)
        return r;
    offload = table_take(e, TABLE_OFFLOADS);
    if (offload == NONE)
        return -ENOSPC;
    c = &e->clients[s->client];
    if (c->offloads == 0)
        offload_new_client(e, s->client);
    o = &e->offloads.table[offload];
    *o = (struct offload){.generation = (o->generation + 1) % OFFLOAD_GENERATIONS,
                          .session = session,
                          .program = program,
                          .takes = info->takes,
                          .index = info->index,
                          .flags = info->flags,
                          .cookie = info->cookie,
                          .answer = cookie,
                          .state_memory = info->state,
                          .host = info->host,
                          .scratch = info->scratch,
                          .targets = info->target_count,
                          .unbound = info->target_count};
    for (uint32_t i = 0; i < info->target_count; i++)
        offload_targets(&e->offloads, offload)[i] =
            (struct offload_target){.endpoint = e->remotes[info->targets[i]].endpoint,
                                    .remote = NONE,
                                    .given = info->targets[i]};
    account_begin(e, offload);
    program_hold(e, program);
    hold_regions(e, o, 1);
    set32(e, &c->offloads, c->offloads + 1);
    set32(e, &o->state, OFFLOAD_BINDING);
    if (info->takes == OFFLOAD_PUTS) {
        set32(e, &e->regions[info->host.slot].offload, offload);
        set32(e, &e->regions[info->host.slot].packet, packet_longest(&e->config));
        set32(e, &e->regions[info->host.slot].ways, ways_of(info));
    }
    commit(e);
    FAULT(OFFLOAD_MADE);
    find_by_index(e, offload);
    e->session_live[session].offloads++;
    (void)bind_targets(e, offload);
    table_leaves(e, TABLE_OFFLOADS, offload);
    return (int)offload_handle_of(o, offload);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The entry of an offload that may be changed, or NONE. While an offload binds its targets its
 * client can't change it: ENGINE_OFFLOAD_READY comes first. */
static uint32_t changeable(const struct engine *e, uint32_t session, uint32_t handle)
{
    uint32_t offload = offload_of_handle(e, session, handle);

    return offload == NONE || e->offloads.table[offload].state == OFFLOAD_BINDING ? NONE : offload;
}

/* Lets the sweep look at all inflows again, because there may be puts or Longs to cut. */
static void look_again(struct engine *e, uint32_t offload)
{
    e->offloads.live[offload].cut_to = 0;
    e->offloads.live[offload].cut = false;
}

/* Brings the offload towards its end. Returns 0: all puts and Longs to it are cut, and its gets
 * have ended; -EAGAIN: the sweep continues. */
static int wind_up(struct engine *e, uint32_t offload, enum offload_ending ending)
{
    struct offload *o = &e->offloads.table[offload];

    if (o->ending == OFFLOAD_STAYS)
        look_again(e, offload);
    if (ending == OFFLOAD_TO_DESTROY)
        e->offloads.live[offload].unasked = false;
    if (o->ending < ending) {
        set32(e, &o->ending, ending);
        commit(e);
    }
    e->session_live[o->session].gets_wait = false; /* gets that wait for room end without it */
    if (cuts_step(e, offload) && o->gets == 0)
        return 0;
    table_leaves(e, TABLE_OFFLOADS, offload);
    return -EAGAIN;
}

static int change_state(struct engine *e, uint32_t offload, enum offload_state state)
{
    if (e->offloads.table[offload].ending == OFFLOAD_TO_DESTROY)
        return -EINVAL;
    set_state(e, offload, state);
    return 0;
}

int engine_offload_destroy(struct engine *e, uint32_t session, uint32_t handle)
{
    uint32_t offload = changeable(e, session, handle);
    int r = offload == NONE ? -EINVAL : wind_up(e, offload, OFFLOAD_TO_DESTROY);

    if (r == 0)
        remove_offload(e, offload);
    return r;
}

int engine_offload_disable(struct engine *e, uint32_t session, uint32_t handle)
{
    uint32_t offload = changeable(e, session, handle);
    int r;

    if (offload == NONE)
        return -EINVAL;
    if (e->offloads.live[offload].disabled) /* the sweep was done before this call came */
        return 0;
    r = wind_up(e, offload, OFFLOAD_TO_DISABLE);
    return r < 0 ? r : change_state(e, offload, OFFLOAD_DISABLED);
}

int engine_offload_enable(struct engine *e, uint32_t session, uint32_t handle)
{
    uint32_t offload = changeable(e, session, handle);

    return offload == NONE ? -EINVAL : change_state(e, offload, OFFLOAD_OPEN);
}

bool offloads_leave(struct engine *e, uint32_t session)
{
    if (e->clients[e->sessions[session].client].offloads == 0)
        return true;
    for (uint32_t i = 0; i < OFFLOADS_MAX; i++) {
        if (e->offloads.table[i].state == OFFLOAD_FREE || e->offloads.table[i].session != session)
            continue;
        if (!may_end(e))
            return false;
        end_offload(e, i);
    }
    gets_forget(e, session);
    return true;
}

void offloads_inherit(struct engine *e)
{
    for (uint32_t i = 0; i < OFFLOADS_MAX; i++) {
        const struct offload *o = &e->offloads.table[i];

        if (o->state == OFFLOAD_FREE)
            continue;
        e->session_live[o->session].offloads++;
        if (o->state == OFFLOAD_BINDING) {
            unbind_all(e, o->session, offload_handle_of(o, i));
            remove_offload(e, i);
            continue;
        }
        e->offloads.live[i].unasked = o->ending == OFFLOAD_TO_DESTROY;
        find_by_index(e, i);
    }
    gets_inherit(e);
}

/* ---- the owner of what handlers send --------------------------------------------------------- */

static uint32_t *flows_of(struct engine *e, uint32_t session)
{
    return owner_session.flows(e, session);
}

static uint32_t client_of(const struct engine *e, uint32_t session)
{
    return owner_session.client(e, session);
}

static void identify(const struct engine *e, uint32_t session, struct owner_identity *out)
{
    owner_session.identify(e, session, out);
}

/* The operation's lid names its offload, the counter that counts its end, and the table entry of a
 * get (collect.h). */
static void ended(struct engine *e, uint32_t flow, uint64_t slot, const struct op *op)
{
    uint32_t session = owner_handle(e->flows[flow].owner);
    uint32_t offload = offload_of_handle(e, session, (uint32_t)(op->lid >> OFFLOAD_LID_HANDLE));
    uint32_t counter = op->lid & 0xff, get = (uint32_t)(op->lid >> OFFLOAD_LID_GET);
    struct offload *o;

    offload_room(e, session);
    if (offload == NONE)
        return;
    o = &e->offloads.table[offload];
    if (op->status < 0)
        account_send_failed(e, o);
    if (counter > 0)
        set64(e, &o->counters[counter - 1], o->counters[counter - 1] + 1);
    if (get > 0)
        gets_ended(e, get - 1, offload, op->status);
}

static void ended_silently(struct engine *e, uint32_t session, uint32_t count, uint64_t reserve)
{
    offload_room(e, session);
}

const struct owner_kind owner_offloads = {
    .flows = flows_of,
    .client = client_of,
    .identify = identify,
    .bound = bound,
    .ended = ended,
    .ended_silently = ended_silently,
    .pop = quota_pop_chunks,
    .inherit = quota_count,
};
