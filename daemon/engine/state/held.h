/*
 * Counts of the entries that each client and each user has in the shared tables: flows, remotes
 * that name these flows, inflows and grants. A client's counts are in the arena, and change in the
 * same transaction as the entries. A flow that is on its way out and has lost its context counts
 * for its user only.
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_HELD_H
#define PWC_ENGINE_HELD_H

#include "daemon/engine/state/state.h"

struct held {
    uint32_t flows, remotes, inflows, grants;
};

/* Called within a transaction, except for flows that have no owner any more. Flows whose owner is
 * no context are not counted. */
void held_flow_comes(struct engine *e, uint32_t flow);
/* The flow's owner is about to leave it. */
void held_flow_parts(struct engine *e, uint32_t flow);
void held_flow_goes(struct engine *e, uint32_t flow);
void held_remotes(struct engine *e, uint32_t flow, int by);
void held_inflows(struct engine *e, uint32_t session, int by);
/* After a restart: counts the flows without an owner. Their remotes must have been counted
 * already. */
void held_inherit(struct engine *e);

/* All that this client's user has; walks all clients. */
struct held held_of_user(const struct engine *e, uint32_t client);

#endif
