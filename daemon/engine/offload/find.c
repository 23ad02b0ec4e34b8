/* Finds offloads, and lets their messages wait for room (find.h). Thread: the progress thread. */
#include "daemon/engine/offload/find.h"

#include "daemon/engine/state/table.h"

/* The first pause, and how often it doubles at most. */
#define AGAIN_NS     UINT64_C(1000000)
#define AGAIN_PAUSES 7u

uint32_t offload_of_handle(const struct engine *e, uint32_t session, uint32_t handle)
{
    uint32_t offload = handle & (OFFLOADS_MAX - 1);
    const struct offload *o = &e->offloads.table[offload];

    return o->state != OFFLOAD_FREE && o->generation == handle >> OFFLOADS_SHIFT &&
                   o->session == session
               ? offload
               : NONE;
}

uint32_t offload_of_index(const struct engine *e, uint32_t session, uint32_t index)
{
    const struct chain *chain = &e->offloads.by_index;

    for (uint32_t i = chain_first(chain, chain_home(chain, session, index)); i != NONE;
         i = chain_next(chain, i)) {
        const struct offload *o = &e->offloads.table[i];

        if (o->state != OFFLOAD_FREE && o->session == session && o->index == index)
            return i;
    }
    return NONE;
}

static void pause_begins(struct engine *e)
{
    if (e->offloads.again_at == 0)
        e->offloads.again_at = e->now + (AGAIN_NS << e->offloads.pauses);
}

void offload_refused(struct engine *e, uint32_t inflow)
{
    struct inflow *in = &e->inflows[inflow];

    set32(e, &in->handled.flags, in->handled.flags & ~(uint32_t)HANDLED_RETURNING);
    if (in->handled.flags & HANDLED_WAITING) {
        handlers_charge(e, e->sessions[in->session].client, HANDLERS_DROP_UNITS);
        handlers_wait(e, e->sessions[in->session].client);
        return;
    }
    e->session_live[in->session].sends_awaited = true;
    pause_begins(e);
}

void offload_gets_wait(struct engine *e, uint32_t session)
{
    e->session_live[session].gets_wait = true;
    pause_begins(e);
}

bool offload_returns(struct engine *e, struct inflow *in)
{
    if (in->handled.flags & HANDLED_RETURNING)
        return false;
    set32(e, &in->handled.flags, in->handled.flags | HANDLED_RETURNING);
    return true;
}

/* Room is free, so waiting messages and gets may continue: the sweep posts GO for messages, and the
 * next step runs handlers of gets. */
static void release(struct engine *e, uint32_t session)
{
    struct session_live *live = &e->session_live[session];

    if (!live->sends_awaited && !live->gets_wait)
        return;
    live->sends_awaited = live->gets_wait = false;
    table_leaves(e, TABLE_SESSIONS, session);
}

void offload_room(struct engine *e, uint32_t session)
{
    e->offloads.pauses = 0;
    if (e->offloads.again_at > e->now + AGAIN_NS) /* a long pause has lost its reason */
        e->offloads.again_at = e->now + AGAIN_NS;
    release(e, session);
}

void offload_pause_ends(struct engine *e, uint64_t *deadline)
{
    if (e->now < e->offloads.again_at) {
        if (e->offloads.again_at < *deadline)
            *deadline = e->offloads.again_at;
        return;
    }
    e->offloads.again_at = 0;
    e->offloads.pauses += e->offloads.pauses < AGAIN_PAUSES;
    for (uint32_t i = 0; i < e->open_count; i++)
        release(e, e->open_sessions[i]);
}
