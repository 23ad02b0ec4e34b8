/*
 * Neighbours: what the engine does for contexts of this node that reach each other without it. It
 * tells where a bind leads, tells the origin when the way ends, and wakes a target that sleeps.
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_DIRECT_H
#define PWC_ENGINE_DIRECT_H

#include "daemon/engine/state/state.h"

/* Where a bind leads, for its ENGINE_BOUND notice. */
void direct_way(const struct engine *e, uint32_t remote, struct engine_way *out);
/* Tells its session whether this remote has ended: from now on the engine alone can say why. */
void direct_show_ended(struct engine *e, uint32_t remote, bool ended);
/* The same of all remotes of a flow. */
void direct_end_flow(struct engine *e, uint32_t flow);
/* The peer at the other end of the flow is woken if it sleeps, where it is on this node. */
void direct_wake(struct engine *e, const struct flow *f);
/* The same of the peer, of this node, that has bound a context of the session. */
void direct_wake_origin(struct engine *e, uint32_t session, uint64_t peer);
/* Events of the session wait behind those in its ring, or not any more. */
void direct_show_spill(struct session_live *live, bool spilled);

#endif
