/* Notes which record may have changed words before the engine died (doubt.h). Thread: the progress
 * thread. */
#include "daemon/engine/state/doubt.h"

#include <stdatomic.h>

/* The word e->doubt holds inflow + 1 in its high half and the sequence in its low half; or
 * DOUBT_GET and the number of a get; 0: there is no doubt. */
#define DOUBT_GET (UINT64_C(1) << 63)
static_assert(ENGINE_PAIRS_MAX < 1u << 31, "no inflow has that bit");

static void begin(struct engine *e, uint64_t doubt)
{
    *(volatile uint64_t *)e->doubt = doubt;
    atomic_signal_fence(memory_order_seq_cst);
    set64(e, e->doubt, 0); /* putting the transaction back brings the doubt back */
    atomic_signal_fence(memory_order_seq_cst);
}

void doubt_begin(struct engine *e, uint32_t inflow, uint32_t sequence)
{
    begin(e, (uint64_t)(inflow + 1) << 32 | sequence);
}

void doubt_begin_get(struct engine *e, uint32_t get)
{
    begin(e, DOUBT_GET | get);
}

void doubt_end(struct engine *e)
{
    if (*e->doubt != 0)
        set64(e, e->doubt, 0);
}

void doubt_inherit(struct engine *e)
{
    uint64_t doubt = *e->doubt;
    uint32_t inflow = (uint32_t)(doubt >> 32) - 1;

    if (doubt == 0)
        return;
    if (doubt & DOUBT_GET)
        set32(e, &e->offloads.gets.table[(uint32_t)doubt].in_doubt, 1);
    else if (inflow < e->config.flows_max && e->inflows[inflow].state != INFLOW_FREE) {
        set32(e, &e->inflows[inflow].in_doubt, 1);
        set32(e, &e->inflows[inflow].doubt, (uint32_t)doubt);
    }
    set64(e, e->doubt, 0);
    commit(e);
}
