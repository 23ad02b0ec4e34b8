/*
 * Gets of peers that an offload observes (PWC_OFFLOAD_OBSERVE), at their target. The origin has
 * read the data when its record, OBSERVED, arrives. The header handler runs on the record; then the
 * default action follows, the get's remote event, however the handler has ended:
 *
 *     OBSERVED --> room for both events --> header handler --> stage over | commit
 *                                               |
 *                                               +-- AGAIN: refused, runs again
 *
 *     stage over --> event of a fault, or of a handler in doubt | commit
 *                --> the get's own event, with the record's consumption
 *
 * A record that comes again continues where it was, as that of a message does (handle.h).
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_OFFLOAD_OBSERVE_H
#define PWC_ENGINE_OFFLOAD_OBSERVE_H

#include "daemon/engine/offload/work.h"

/* Begins the get, or resumes it as the inflow has noted it. False: the record is for no handler,
 * and the get is not in doubt any more. */
bool observe_begin(struct work *m);
/* Within a transaction, which it may commit: ends a get on which no handler runs any more. Returns
 * OFFLOAD_DEFAULT; or -ENOSPC, -ENOBUFS: an event finds no room, and the record comes again. */
int observe_end(struct work *m);

#endif
