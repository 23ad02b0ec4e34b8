/*
 * Puts to an offload that are cut, over as many steps as it takes: the offload ends, or many
 * origins have gone at once. The sweep visits the offload, and looks at the inflows of its context
 * one after the other until the step's units for that are spent (OFFLOAD_CUT_UNITS).
 *
 *     context's inflows    | cut, or not to be | cut_to | to be looked at in later steps |
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_OFFLOAD_CUTS_H
#define PWC_ENGINE_OFFLOAD_CUTS_H

#include "daemon/engine/state/state.h"

/* Cuts puts to an offload that ends, or whose origins have gone. False: the step's bound is
 * reached, and there may be more. */
bool cuts_step(struct engine *e, uint32_t offload);

#endif
