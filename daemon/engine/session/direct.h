/*
 * Neighbours: the engine's part for contexts of this node that reach each other without the engine.
 * The engine answers where a bind leads, shows the origin when the way ends, and wakes a target
 * that sleeps. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_DIRECT_H
#define PWC_ENGINE_DIRECT_H

#include "daemon/engine/state/state.h"

/* Where a bind leads, for its ENGINE_BOUND notice. */
void direct_way(const struct engine *e, uint32_t remote, struct engine_way *out);
/* Shows the session whether this remote has ended: operations over an ended remote go through the
 * engine, which knows the reason. */
void direct_show_ended(struct engine *e, uint32_t remote, bool ended);
/* Shows that all remotes of a flow have ended. */
void direct_end_flow(struct engine *e, uint32_t flow);
/* Wakes the context at the other end of the flow, if it is on this node and sleeps. */
void direct_wake(struct engine *e, const struct flow *f);
/* Wakes the context `endpoint`, if it is on this node and has a flow to the session. */
void direct_wake_origin(struct engine *e, uint32_t session, uint64_t endpoint);
/* Shows the session whether spilled events wait behind the events in its ring. */
void direct_show_spill(struct session_live *live, bool spilled);

#endif
