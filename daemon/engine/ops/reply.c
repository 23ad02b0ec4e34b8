/* Flows of replies (reply.h). Thread: the progress thread. */
#include "daemon/engine/ops/reply.h"

#include "daemon/engine/ops/flow.h"
#include "daemon/engine/session/quota.h"

int reply_flow_open(struct engine *e, uint32_t inflow, enum replier who)
{
    static const enum owner_kinds owners[REPLIERS] = {
        [REPLIER_CLIENT] = OWNER_SESSION, [REPLIER_OFFLOADS] = OWNER_OFFLOADS};
    struct inflow *in = &e->inflows[inflow];
    int flow;

    if (in->reply_flow[who] != NONE)
        return 0;
    flow = quota_replies(e, in->session);
    if (flow < 0)
        return flow;
    flow = flow_new(e, owner_of(owners[who], in->session), in->peer, in->origin, FLOW_REPLIES);
    if (flow < 0)
        return flow;
    set32(e, &e->flows[flow].serves, inflow);
    set32(e, &e->flows[flow].inflow, in->origin_flow);
    set32(e, &e->flows[flow].state, FLOW_OPEN);
    set32(e, &in->reply_flow[who], (uint32_t)flow);
    return 0;
}
