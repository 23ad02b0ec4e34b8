/*
 * Looks ahead in a ledger, at the records after the next one and at their clients. Handlers of one
 * client share a step with the records of other clients (offload/turns.h), and these count as soon
 * as they have arrived. A ledger that is full of one client's records would keep other clients out.
 * So where handlers would work on these records for longer than HANDLERS_AHEAD_NS, the next record
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

/* Work of handlers that may stand in a ledger. */
#define HANDLERS_AHEAD_NS UINT64_C(500000)

/* After a part of the step that has consumed `bytes`, for which handlers have taken `units`: notes
 * the clients of records that have arrived and are not consumed, of a bounded number in each call;
 * a record is looked at once. */
void ledger_look_ahead(struct engine *e, uint32_t peer, uint64_t bytes, uint64_t units);
/* The next record stays, for its handlers take several steps. It is refused where a record for
 * another client stands after it, or where so many records stand after it that others might find no
 * room. */
void ledger_look_behind(struct engine *e, uint32_t peer);

#endif
