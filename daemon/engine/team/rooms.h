/*
 * How much memory a team sets aside for instances: their data, and letters that may come early or
 * wait to leave. Owns nothing. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_ROOMS_H
#define PWC_ENGINE_ROOMS_H

#include "daemon/engine/state/state.h"

/* Most slots of a team: clearing them when the team opens takes some milliseconds of a step. The
 * table's schedules need less than half as many among 1,024 engines with the largest window. */
#define ROOMS_SLOTS_MAX (1u << 17)

/* Fills in t->lines and t->data, by the schedules that calls of this team may follow, and by how
 * its members are spread over `list`. -ENOMEM: letters would be too long, or rounds or slots too
 * many. */
int rooms_measure(struct team *t, const struct participant *list);

#endif
