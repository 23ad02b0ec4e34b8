/*
 * The table of offloads: how they come and go (engine.h has the calls), and the owners of what
 * their handlers send, one for each context (ops/owner.h). Targets are remotes of that owner, bound
 * anew, so that the client's own operations and those of handlers have flows of their own. Thread:
 * the progress thread.
 */
#ifndef PWC_ENGINE_OFFLOAD_TABLE_H
#define PWC_ENGINE_OFFLOAD_TABLE_H

#include "daemon/engine/ops/owner.h"

extern const struct owner_kind owner_offloads;

/* The sweep's visit: opens an offload whose targets are bound; cuts puts; removes an offload that
 * an earlier process was to destroy. False: the offload need not be visited again. */
bool offload_leaves(struct engine *e, uint32_t offload);
/* Removes the offloads of a context that is on its way out. False: some are left to the next
 * sweep. */
bool offloads_leave(struct engine *e, uint32_t session);
/* After a restart: finds offloads by their index again, and removes each offload whose targets were
 * still being bound, because its caller asks again. */
void offloads_inherit(struct engine *e);

#endif
