/* Puts that are cut, over several steps (cuts.h). Thread: the progress thread. */
#include "daemon/engine/offload/puts/cuts.h"

#include "daemon/engine/offload/puts/region_put.h"
#include "daemon/engine/peer/bind.h"

/* The inflow to continue with. If that has left its context meanwhile, the first one again. */
static uint32_t next_of(const struct engine *e, uint32_t offload)
{
    uint32_t session = e->offloads.table[offload].session;
    uint32_t next = e->offloads.live[offload].cut_to - 1;

    return next != NONE && e->inflows[next].state != INFLOW_FREE &&
                   e->inflows[next].session == session
               ? next
               : e->sessions[session].first_inflow;
}

/* If the inflow holds a put or a Long to this offload, and its origin was lost or the offload ends:
 * cuts that put or Long. The inflow may be free afterwards. */
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

/* Looks at inflows until `most` units are spent in this step. Returns whether no inflow is left to
 * be looked at. */
static bool cut_until(struct engine *e, uint32_t offload, uint64_t most)
{
    struct offload_live *live = &e->offloads.live[offload];
    uint32_t i = live->cut ? NONE : next_of(e, offload);

    while (i != NONE && e->offloads.spent_on_cuts < most) {
        uint32_t next = e->inflows[i].next;

        cut(e, offload, i);
        e->offloads.spent_on_cuts += OFFLOAD_LOOK_UNITS;
        i = next;
    }
    live->cut_to = i + 1;
    live->cut = i == NONE;
    return live->cut;
}

bool cuts_step(struct engine *e, uint32_t offload)
{
    return cut_until(e, offload, OFFLOAD_CUT_UNITS);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static uint32_t client_of(const struct engine *e, uint32_t offload)
{
    return e->sessions[e->offloads.table[offload].session].client;
}

void cuts_give_up_turn(struct engine *e, uint32_t offload)
{
    if (e->offloads.cut_turns.next == client_of(e, offload))
        e->offloads.cut_turns.next = NONE;
}

bool cuts_take_turn(struct engine *e, uint32_t offload)
{
    struct cut_turns *t = &e->offloads.cut_turns;
    uint32_t client = client_of(e, offload);
    uint64_t spent = e->offloads.spent_on_cuts;
    bool is_next = t->next == client, all;

    if (e->offloads.live[offload].cut) {
        cuts_give_up_turn(e, offload);
        return true;
    }
    if (t->next != NONE && !is_next)
        return false;
    all = cut_until(e, offload,
                    is_next && spent >= OFFLOAD_CUT_UNITS ? spent + 1 : OFFLOAD_CUT_UNITS);
    if (is_next)
        t->next = NONE;
    if (e->offloads.spent_on_cuts > spent) {
        t->last = client;
        t->last_step = e->steps;
    } else if (!all && (t->last != client || t->last_step != e->steps)) {
        t->next = client;
    }
    return all;
}
