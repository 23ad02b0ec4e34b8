/*
 * Looks ahead in a ledger, at the records after the next one and at their clients. Handlers of one
 * client share a step with the records of other clients (offload/turns.h), which count as soon as
 * they have arrived. A ledger that is full of one client's records would keep other clients out. So
 * where handlers would work for longer than HANDLERS_AHEAD_NS on what has arrived, the next record
 * is refused, and its origin keeps few records on their way from then on (ops/flow.h).
 *
 *     consumed    next run                              arrived
 *     | A A A A A | A A B A ...                         |
 *                   ^ahead.at
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_AHEAD_H
#define PWC_ENGINE_AHEAD_H

#include "daemon/engine/state/state.h"

/* Work of handlers for which records may wait in a ledger. */
#define HANDLERS_AHEAD_NS UINT64_C(500000)

/* Called after a part of the step that has consumed `bytes`, for which handlers have taken `units`.
 * Notes the clients of records that have arrived and are not consumed; looks at a bounded number of
 * records in a call, and at each record once. */
void ledger_look_ahead(struct engine *e, uint32_t peer, uint64_t bytes, uint64_t units);
/* Called when the next record stays at the head, because its handlers take several steps. Has that
 * record refused if a record for another client waits after it, or so many records that others
 * might find no room. */
void ledger_look_behind(struct engine *e, uint32_t peer);

#endif
