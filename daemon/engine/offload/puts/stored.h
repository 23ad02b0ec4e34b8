/*
 * Messages whose bytes are in the offload's region when their one record comes: puts to a region
 * that stores them, and Longs to an offload's index. Handlers deal with the bytes there, packet by
 * packet, over as many steps as it takes. Until then the record stays at the head of its ledger, or
 * is refused and comes again: where records for others wait after it (ledger/ahead.h), and where
 * its client has no turn.
 *
 *     record stays     | done, in earlier steps | this step | more |     total
 *
 * The payload of a Long must lie within the offload's host window, and peers must have the right to
 * write there. A packed payload comes in the record, and is placed before the first handler runs.
 *
 *     region           |      | Long                 |          |
 *     host window             | place  | packet |               |
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_OFFLOAD_STORED_H
#define PWC_ENGINE_OFFLOAD_STORED_H

#include "daemon/engine/offload/work.h"

/* Takes the message's packet that begins at byte `at`. The last packet always has some bytes. */
void stored_take(struct work *m, uint32_t at);
/* Between handlers: takes the next packet of a message that is stored; or its last one, if no
 * handler gets the rest of its bytes. */
void stored_next(struct work *m);
/* Whether the rest of a message that is stored waits for the next step. */
bool stored_rests(const struct work *m);

/* Whether the record is a Long with bytes. */
static inline bool long_has_bytes(const struct arrival *a)
{
    return a->message.kind == SUBMIT_LONG && a->w.op.length > 0;
}

/* Begins a Long with bytes: finds its place, and its first packet; or sets its status. */
void long_begin(struct work *m);
/* Called after work_resume: continues a Long with its next packet. Returns 0, or -EPROTO: the
 * record does not fit what the inflow has noted. */
int long_resume(struct work *m);
/* Places the bytes that stand in the record of a Long, unless handlers have begun it. */
void long_place(struct work *m);

#endif
