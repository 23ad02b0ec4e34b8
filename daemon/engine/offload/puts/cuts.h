/*
 * Puts to an offload that are cut, over as many steps as it takes: the offload ends, or many
 * origins have gone at once. The sweep visits the offload, and looks at the inflows of its context
 * one after the other until the step's units for that are spent (OFFLOAD_CUT_UNITS).
 *
 *     context's inflows    | cut, or not to be | cut_to | to be looked at in later steps |
 *
 * Clients take turns: the first client that finds the units of a step spent by another one is next,
 * and continues before all others. Then at least one of its inflows is looked at, whatever records
 * of peers have spent in that step.
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_OFFLOAD_CUTS_H
#define PWC_ENGINE_OFFLOAD_CUTS_H

#include "daemon/engine/state/state.h"

/* Cuts puts to an offload that ends, or whose origins have gone. False: the step's bound is
 * reached, and there may be more. */
bool cuts_step(struct engine *e, uint32_t offload);
/* As cuts_step, but in turns: while another client is next, cuts nothing and returns false, unless
 * nothing was left to cut. */
bool cuts_take_turn(struct engine *e, uint32_t offload);
/* Called when the offload is freed, or has nothing to cut: if its client was next, the others no
 * longer wait for it. */
void cuts_give_up_turn(struct engine *e, uint32_t offload);

#endif
