/* Whatever leaves goes one step further when something it waits for may have ended. Thread: the
 * progress thread. */
#ifndef PWC_ENGINE_SWEEP_H
#define PWC_ENGINE_SWEEP_H

#include "daemon/engine/state/state.h"

void sweep(struct engine *e);

#endif
