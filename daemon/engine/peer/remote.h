/*
 * What a bind makes: remote and flow at the origin, inflow at the target; when they are free again.
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_REMOTE_H
#define PWC_ENGINE_REMOTE_H

#include "daemon/engine/state/state.h"

/* Within a transaction: nothing names the remote any more. */
void remote_free(struct engine *e, uint32_t remote);
/* Its client has let go of it, and its operations are over. */
bool remote_over(const struct engine *e, uint32_t remote);
/* Frees the remote if so. Whether it still leaves (table_sweep). */
bool remote_leaves(struct engine *e, uint32_t remote);
/* Within a transaction: nothing names the inflow any more. */
void inflow_free(struct engine *e, uint32_t inflow);
/* Within a transaction: the target knows nothing of the flow, or no longer. */
void flow_free(struct engine *e, uint32_t flow);

#endif
