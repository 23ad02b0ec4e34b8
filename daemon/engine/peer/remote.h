/*
 * The results of a bind: remote and flow at the origin, inflow at the target. Says when each is
 * free again. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_REMOTE_H
#define PWC_ENGINE_REMOTE_H

#include "daemon/engine/state/state.h"

/* The remote is on its flow's list from now on: its bind is committed. */
void remote_joins(struct engine *e, uint32_t remote);
/* Within a transaction: nothing names the remote any more. */
void remote_free(struct engine *e, uint32_t remote);
/* Whether the client has let go of the remote, and the remote's operations are over. */
bool remote_over(const struct engine *e, uint32_t remote);
/* Frees the remote if so. Whether it still leaves (table_sweep). */
bool remote_leaves(struct engine *e, uint32_t remote);
/* Within a transaction: nothing names the inflow any more. */
void inflow_free(struct engine *e, uint32_t inflow);
/* Within a transaction: frees a flow that has no inflow at the target, or no longer has one. */
void flow_free(struct engine *e, uint32_t flow);

#endif
