/*
 * Whatever leaves goes one step further when something it waits for may have ended. A step looks at
 * a bounded number of entries, and the next one goes on (e->sweeping): one client's end never holds
 * up the others' data. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_SWEEP_H
#define PWC_ENGINE_SWEEP_H

#include "daemon/engine/state/state.h"

void sweep(struct engine *e);

#endif
