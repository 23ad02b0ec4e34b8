/*
 * The entries that clients and users hold in the tables that all share: flows, remotes that name
 * them, inflows and grants, counted as they come and go. The counts of clients stand in the arena
 * and change with what they count; a flow on its way out, which has lost its context, counts for
 * its user alone.
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_HELD_H
#define PWC_ENGINE_HELD_H

#include "daemon/engine/state/state.h"

struct held {
    uint32_t flows, remotes, inflows, grants;
};

/* Called within a transaction, except for flows that have no owner any more. Flows of owners that
 * are no context count for nobody. */
void held_flow_comes(struct engine *e, uint32_t flow);
/* Its owner is about to leave it. */
void held_flow_parts(struct engine *e, uint32_t flow);
void held_flow_goes(struct engine *e, uint32_t flow);
void held_remotes(struct engine *e, uint32_t flow, int by);
void held_inflows(struct engine *e, uint32_t session, int by);
/* After a restart: the flows without an owner. The flows' remotes are counted already. */
void held_inherit(struct engine *e);

/* All that this client's user holds; linear in the clients. */
struct held held_of_user(const struct engine *e, uint32_t client);

#endif
