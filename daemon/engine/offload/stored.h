/*
 * Messages whose bytes stand in the offload's region when their one record comes: puts to a region
 * that stores them, and Longs to an offload's index. Handlers deal with the bytes there, packet by
 * packet, over as many steps as it takes. Until then the record stays at the head of its ledger, or
 * is refused and comes again: where records of others stand behind it (ledger/ahead.h), and where
 * its client has no turn.
 *
 *     record stays     | done, in earlier steps | this step | more |     total
 *
 * The payload of a Long must lie within the offload's host window, and peers must have the right to
 * write there. A short one comes in its record, and is placed before its first handler runs.
 *
 *     region           |      | Long                 |          |
 *     host window             | place  | packet |               |
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_OFFLOAD_STORED_H
#define PWC_ENGINE_OFFLOAD_STORED_H

#include "daemon/engine/offload/work.h"

/* The packet of the message that begins at `at`; the last one has some bytes always. */
void stored_take(struct work *m, uint32_t at);
/* Between handlers: the next packet of a message that is stored, or its last one where no handler
 * gets what is left of it. */
void stored_next(struct work *m);
/* Whether the rest of a message that is stored is for the next step. */
bool stored_rests(const struct work *m);

/* Whether the record is a Long with bytes. */
static inline bool long_has_bytes(const struct arrival *a)
{
    return a->message.kind == SUBMIT_LONG && a->w.op.length > 0;
}

/* A Long with bytes that no handler has seen: finds its place, and its first packet; or its status.
 */
void long_begin(struct work *m);
/* The record of a message that the inflow holds, and that work_resume has resumed: 0 with the next
 * packet of a Long, or -EPROTO: it does not fit what the inflow has noted. */
int long_resume(struct work *m);
/* Places the bytes that the record of a Long brings, unless handlers have begun it. */
void long_place(struct work *m);

#endif
