/*
 * The engine's side of a team area: takes inputs from the area, writes results into it, wakes the
 * members that sleep, and shows them that the team is broken.
 *
 * The area is hostile memory: lengths come from the instance, never from the area. Thread: the
 * progress thread.
 */
#ifndef PWC_ENGINE_EXCHANGE_H
#define PWC_ENGINE_EXCHANGE_H

#include "daemon/engine/state/state.h"

/* Whether our members give something in this call. */
bool exchange_gives(const struct engine *e, uint32_t team, const struct instance *instance);
/* Copies what our members give into the blocks of the instance, which nothing else uses yet. */
void exchange_take(struct engine *e, uint32_t team, const struct instance *instance);
/* Writes the result and ends the instance for our members. May be called again for the
 * same instance. */
void exchange_give(struct engine *e, uint32_t team, const struct instance *instance);
/* Wakes members that sleep. */
void exchange_wake(struct engine *e, uint32_t team);
/* Shows why the team is broken, and wakes all. */
void exchange_break(struct engine *e, uint32_t team);

#endif
