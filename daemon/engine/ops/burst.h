/*
 * Bursts: how much of one client may be on its way to a peer while a client with few operations
 * uses the same link.
 *
 * A peer consumes records in the order in which they have left, so a lone record waits for all
 * that are before it in the ledger. There may be a whole ring of these, and records of few bytes
 * may take the peer long. So a client's flows stage in bursts, and pause before the third one:
 *
 *     burst 1      burst 2      the flows pause until the peer has consumed burst 1
 *     |----------->|----------->|
 *                  from         the ledger's tail
 *
 * A client does not pause unless another client is sparse: one that has used the link within the
 * last SHARED_NS, has nothing more to stage, and has used less than 1/8 of the bytes that all
 * clients have used lately. Clients that use more wait for their turns anyway, and need many
 * records on their way for their rate.
 *
 * A burst is counted in units of about 0.6 ns of a peer's time: one for BURST_BYTES bytes of
 * records, BURST_RECORD for each record, and one for each byte by which short elements are rounded
 * up (strided_format.h). Only flows pause. Verdicts may not: the peer's acknowledgements wait for
 * them. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_BURST_H
#define PWC_ENGINE_BURST_H

#include "daemon/engine/state/state.h"

#define BURST_UNITS  16384
#define BURST_BYTES  4
#define BURST_RECORD 512
#define SPARSE_PART  8
/* When all clients have used this many bytes, those up to now begin to count half as much. */
#define SPARSE_OF_BYTES 131072

/* The flows of this turn have staged a record of `bytes`, whose elements count `rounded` more. */
static inline void burst_spend(struct turn *t, uint64_t bytes, uint64_t rounded)
{
    if (bytes > 0)
        t->burst -= BURST_RECORD + (int64_t)(bytes / BURST_BYTES + rounded);
}

/* The turn's burst is used up. Begins the next one, or a pause: returns whether its flows may stage
 * more now. */
bool burst_ends(struct engine *e, uint32_t turn);
/* Whether the turn's flows may stage more now. */
static inline bool burst_goes_on(struct engine *e, uint32_t turn)
{
    return e->turns[turn].burst > 0 || burst_ends(e, turn);
}

/* Ends the first pause, if the peer has consumed enough. Returns its turn, or NONE. */
uint32_t burst_resumes(struct engine *e, uint32_t peer);
/* burst_turn_ends where clients share the link. */
void burst_compare(struct engine *e, struct turn *t, bool empty);
/* The turn ends; `empty`: its client has nothing more that may be staged now. Notes whether the
 * client is sparse. */
static inline void burst_turn_ends(struct engine *e, struct turn *t, bool empty)
{
    if (e->now < e->peer_live[t->peer].shared_until)
        burst_compare(e, t, empty);
    t->spent = 0;
}

/* The link begins anew, or ends. */
void burst_clear(struct turn *t);

#endif
