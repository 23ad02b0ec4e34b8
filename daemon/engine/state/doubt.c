/* The record whose words may have changed (doubt.h). Thread: the progress thread. */
#include "daemon/engine/state/doubt.h"

#include <stdatomic.h>

/* One store: inflow + 1 in the high half, sequence in the low one; 0: no doubt. */
static uint64_t doubt_of(uint32_t inflow, uint32_t sequence)
{
    return (uint64_t)(inflow + 1) << 32 | sequence;
}

void doubt_begin(struct engine *e, uint32_t inflow, uint32_t sequence)
{
    *(volatile uint64_t *)e->doubt = doubt_of(inflow, sequence);
    atomic_signal_fence(memory_order_seq_cst);
    set64(e, e->doubt, 0); /* putting the transaction back brings the doubt back */
    atomic_signal_fence(memory_order_seq_cst);
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
    if (inflow < e->config.flows_max && e->inflows[inflow].state != INFLOW_FREE) {
        set32(e, &e->inflows[inflow].in_doubt, 1);
        set32(e, &e->inflows[inflow].doubt, (uint32_t)doubt);
    }
    set64(e, e->doubt, 0);
    commit(e);
}
