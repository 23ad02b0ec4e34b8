/* Puts that are cut, over several steps (cuts.h). Thread: the progress thread. */
#include "daemon/engine/offload/cuts.h"

#include "daemon/engine/offload/region_put.h"
#include "daemon/engine/peer/bind.h"

/* The inflow to go on with. One that has left its context meanwhile leads back to the first. */
static uint32_t next_of(const struct engine *e, uint32_t offload)
{
    uint32_t session = e->offloads.table[offload].session;
    uint32_t next = e->offloads.live[offload].cut_to - 1;

    return next != NONE && e->inflows[next].state != INFLOW_FREE &&
                   e->inflows[next].session == session
               ? next
               : e->sessions[session].first_inflow;
}

/* Cuts what the inflow holds of this offload's, if that is due. The inflow may be free then. */
static void cut(struct engine *e, uint32_t offload, uint32_t inflow)
{
    const struct offload *o = &e->offloads.table[offload];
    const struct inflow *in = &e->inflows[inflow];
    uint32_t handle = offload_handle_of(o, offload);

    if (offload_cut_waits(in) && in->handled.offload == handle)
        bind_origin_gone(e, inflow);
    else if (o->ending != OFFLOAD_STAYS)
        offload_cut_begun(e, inflow, handle);
    commit(e);
}

bool cuts_step(struct engine *e, uint32_t offload)
{
    struct offload_live *live = &e->offloads.live[offload];
    uint32_t i = live->cut ? NONE : next_of(e, offload);

    while (i != NONE && e->offloads.spent_on_cuts < OFFLOAD_CUT_UNITS) {
        uint32_t next = e->inflows[i].next;

        cut(e, offload, i);
        e->offloads.spent_on_cuts += OFFLOAD_LOOK_UNITS;
        i = next;
    }
    live->cut_to = i + 1;
    live->cut = i == NONE;
    return live->cut;
}
