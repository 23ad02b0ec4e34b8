/* Stages notes and operations towards a peer, in their clients' turns (turn.h). Thread: the
 * progress thread. */
#ifndef PWC_ENGINE_STAGE_H
#define PWC_ENGINE_STAGE_H

#include "daemon/engine/state/state.h"

/* Stages up to `budget` records. Returns 0; -ENOSPC: the ledger is full; -EAGAIN: the fabric takes
 * no more now, or some flows found no nonce. */
int turns_step(struct engine *e, uint32_t peer, int budget, int *work);

#endif
