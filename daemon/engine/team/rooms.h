/*
 * How much memory a team sets aside for instances: their data, and letters that may come early or
 * wait to leave. Owns nothing. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_ROOMS_H
#define PWC_ENGINE_ROOMS_H

#include "daemon/engine/state/state.h"

/* Fills in t->lines and t->data, by the schedules that calls of this team may come to, and by how
 * its members are spread over `list`. -EDQUOT: letters would be too long, or rounds too many. */
int rooms_measure(struct team *t, const struct participant *list);

#endif
