/* Flows: made, found and ready (flow.h). Thread: the progress thread. */
#include "daemon/engine/ops/flow.h"

#include <string.h>
#include "daemon/engine/ops/op.h"
#include "daemon/engine/ops/owner.h"
#include "daemon/engine/peer/marks.h"
#include "daemon/engine/peer/remote.h"
#include "daemon/engine/watch/steps.h"
#include "daemon/engine/ops/turn.h"
#include "daemon/engine/state/held.h"
#include "daemon/engine/state/lists.h"
#include "daemon/engine/state/table.h"

void flow_live_init(struct engine *e, uint32_t flow)
{
    e->flow_live[flow] =
        (struct flow_live){.used = true, .turn = NONE, .first_remote = NONE, .forget_next = NONE};
}

int flow_new(struct engine *e, uint64_t owner, uint32_t peer, uint64_t endpoint, uint32_t traffic)
{
    uint32_t *first = owner_flows(e, owner);
    uint32_t free = table_take(e, TABLE_FLOWS);
    struct owner_identity whose;

    if (free == NONE)
        return -ENOSPC;
    owner_row(e, owner)->identify(e, owner_handle(owner), &whose);
    e->flows[free] = (struct flow){.state = FLOW_FREE,
                                   .peer = peer,
                                   .inflow = NONE,
                                   .endpoint = endpoint,
                                   .owner = owner,
                                   .traffic = traffic,
                                   .serves = NONE,
                                   .uid = whose.uid};
    queue_init(&e->flows[free].ops, OP_SHIFT);
    if (!e->flow_live[free].used)
        flow_live_init(e, free);
    e->flow_live[free] =
        (struct flow_live){.used = true,
                           .turn = e->flow_live[free].turn, /* turn_join moves it */
                           .first_remote = NONE,
                           .forget_next = NONE};
    flow_enters(e, free);
    turn_join(e, free, owner_client(e, owner));
    set32(e, &e->flows[free].state, FLOW_BINDING);
    list_flow(e, first, free);
    held_flow_comes(e, free);
    return (int)free;
}

/* The hash of a list that has all flows of one owner and endpoint, and perhaps others. */
static uint32_t flow_hash(uint64_t owner, uint64_t endpoint)
{
    return chain_hash((uint32_t)(owner ^ owner >> 32), endpoint);
}

/* The first flow of that list. */
static uint32_t flow_first(const struct engine *e, uint64_t owner, uint64_t endpoint)
{
    return chain_first(&e->flows_of_way,
                       chain_home_of(&e->flows_of_way, flow_hash(owner, endpoint)));
}

void flow_enters(struct engine *e, uint32_t flow)
{
    const struct flow *f = &e->flows[flow];

    chain_add(&e->flows_of_peer, f->peer, flow);
    if (f->owner != OWNER_GONE)
        chain_add_key(&e->flows_of_way, flow_hash(f->owner, f->endpoint), flow);
    if (f->due != 0) /* after a restart */
        chain_add(&e->flows_due, due_home(owner_as_session(f->owner), f->due), flow);
}

int flow_find(const struct engine *e, uint64_t owner, uint32_t peer, uint64_t endpoint)
{
    const struct chain *flows = &e->flows_of_way;

    for (uint32_t i = flow_first(e, owner, endpoint); i != NONE; i = chain_next(flows, i))
        if (e->flows[i].owner == owner && e->flows[i].peer == peer &&
            e->flows[i].endpoint == endpoint && e->flows[i].state != FLOW_FREE &&
            e->flows[i].state != FLOW_DEAD && e->flows[i].traffic == FLOW_REQUESTS)
            return (int)i;
    return -ENOENT;
}

int flow_find_open(const struct engine *e, uint64_t owner, uint64_t endpoint)
{
    const struct chain *flows = &e->flows_of_way;

    for (uint32_t i = flow_first(e, owner, endpoint); i != NONE; i = chain_next(flows, i))
        if (e->flows[i].owner == owner && e->flows[i].endpoint == endpoint &&
            e->flows[i].state == FLOW_OPEN && e->flows[i].traffic == FLOW_REQUESTS)
            return (int)i;
    return -ENOENT;
}

int flow_open(struct engine *e, uint64_t owner, uint32_t peer, uint64_t endpoint)
{
    int r = flow_find(e, owner, peer, endpoint);

    if (r >= 0)
        return r;
    r = flow_new(e, owner, peer, endpoint, FLOW_REQUESTS);
    if (r >= 0)
        commit(e);
    return r;
}

void flow_ready(struct engine *e, uint32_t flow)
{
    struct flow *f = &e->flows[flow];

    if (e->flow_live[flow].ready || f->state != FLOW_OPEN || f->staged == f->ops.tail ||
        (f->held && f->started == f->staged))
        return;
    turn_ready(e, flow);
    peer_want(e, f->peer);
    peer_activate(e, f->peer);
}

void flows_ready_towards(struct engine *e, const struct remote *remote)
{
    const struct chain *flows = &e->flows_of_way;

    if (remote->owner == OWNER_GONE)
        return;
    for (uint32_t i = flow_first(e, remote->owner, remote->endpoint); i != NONE;
         i = chain_next(flows, i))
        if (e->flows[i].owner == remote->owner && e->flows[i].peer == remote->peer &&
            e->flows[i].endpoint == remote->endpoint && e->flows[i].state != FLOW_FREE)
            flow_ready(e, i);
}

void flow_end_op(struct engine *e, struct op *op, int32_t status)
{
    set32(e, (uint32_t *)&op->status, (uint32_t)status);
    set8(e, &op->phase, OP_PLACED);
}

void flow_void(struct engine *e, struct flow *f)
{
    uint32_t flow = (uint32_t)(f - e->flows);
    uint64_t slot = f->staged;

    if (e->peer_live[f->peer].link != LINK_UP)
        return; /* nonces belong to a link */
    while (slot < f->started) {
        struct op *op = flow_op(e, f, slot);

        op_abandon(e, flow, op, op->length);
        slot += op->span;
    }
    if (flow_half_posted(f, slot))
        op_abandon(e, flow, flow_op(e, f, slot), f->posted);
}
