/*
 * Gets of peers that an offload observes (PWC_OFFLOAD_OBSERVE), at their target. The origin has
 * read when its record, OBSERVED, comes. The header handler runs on it, and then the default action
 * is due, the get's remote event, whatever has become of the handler:
 *
 *     OBSERVED --> room for both events --> header handler --> stage over | commit
 *                                               |
 *                                               +-- AGAIN: refused, runs again
 *
 *     stage over --> event of a fault, or of a handler in doubt | commit
 *                --> the get's own event, with the record's consumption
 *
 * So a record that comes again goes on where it was, as that of a message does (handle.h).
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_OFFLOAD_OBSERVE_H
#define PWC_ENGINE_OFFLOAD_OBSERVE_H

#include "daemon/engine/offload/work.h"

/* The get as the inflow has noted it, or a new one. False: no handler has to do with it, and it is
 * not in doubt any more. */
bool observe_begin(struct work *m);
/* Within a transaction, which it may commit: no handler runs on it any more. OFFLOAD_DEFAULT, or
 * -ENOSPC, -ENOBUFS: an event finds no room, and the record comes again. */
int observe_end(struct work *m);

#endif
