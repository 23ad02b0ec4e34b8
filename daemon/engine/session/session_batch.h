/* Gathers small puts that stand one after the other in a session's ring (session_batch.c).
 * Thread: the progress thread. */
#ifndef PWC_ENGINE_SESSION_BATCH_H
#define PWC_ENGINE_SESSION_BATCH_H

#include "daemon/engine/state/state.h"

/* Whether the record, which has been copied, could begin a batch, and another one follows it. */
bool batch_may_begin(const struct ring_consumer *ring, const struct submit_record *first);
/*
 * Takes a batch that begins with `first`, a private copy that has passed all checks; its local
 * events may take `space` bytes. Returns the number of puts taken; 0: take the record on its own.
 */
int batch_take(struct engine *e, uint32_t session, const struct submit_record *first,
               uint64_t space, int budget);

#endif
