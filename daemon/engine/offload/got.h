/*
 * Gets of handlers that have come, which is to say completed or failed: the completion handler
 * runs, with kind *got*, in a turn of its client. The get's entry notes how far it is, as an inflow
 * does for a message.
 *
 *     come --> turn, room for the event --> doubt --> completion handler --> end: event, entry free
 *                 |                           |          |
 *                 waits, behind the others    |          AGAIN: waits for room
 *                                             REPEATABLE: runs again; else -ECONNABORTED
 *
 * Where a fault has disabled the offload no handler runs; the get ends with -ESHUTDOWN.
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_GOT_H
#define PWC_ENGINE_GOT_H

#include "daemon/engine/state/state.h"

/* The part of got_step where a get has come. */
int got_run(struct engine *e);
/* At the end of a step: runs handlers on gets that have come, on one at least, and on more while
 * all handlers of the step have taken less than their bound. Returns the work done. */
static inline int got_step(struct engine *e)
{
    return e->offloads.gets.sessions.first == NONE ? 0 : got_run(e);
}

#endif
