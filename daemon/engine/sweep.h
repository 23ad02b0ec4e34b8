/*
 * The sweep: takes entries that are on their way out one step further when something that they wait
 * for may have ended. It looks at a bounded number of entries in a step, and the next step
 * continues (e->sweeping), so one client's end never holds up the others' data. Thread: the
 * progress thread.
 */
#ifndef PWC_ENGINE_SWEEP_H
#define PWC_ENGINE_SWEEP_H

#include "daemon/engine/state/state.h"

void sweep(struct engine *e);

#endif
