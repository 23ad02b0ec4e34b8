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
 * last SHARED_NS, had nothing more to stage then, and has used less than 1/8 of the units that all
 * clients have used lately. Clients that use more wait for their turns anyway, and need many
 * records on their way for their rate. With nine clients that use the same, each of them is sparse;
 * so many bursts keep the link busy.
 *
 * A burst is counted in units of about 0.6 ns of a peer's time: BURST_RECORD for each record,
 * BURST_MORE for each further operation in it, one for BURST_BYTES of its bytes, and one for each
 * byte by which short elements and pieces are rounded up (e->rounded). The record that uses a burst
 * up may go beyond it: one of a thousand far elements counts four bursts.
 *
 * Only flows pause. Verdicts may not: the peer's acknowledgements wait for them. A burst that ends
 * with a part of a vector asks for the part's ACK, which could come late otherwise. Thread: the
 * progress thread.
 */
#ifndef PWC_ENGINE_BURST_H
#define PWC_ENGINE_BURST_H

#include "daemon/engine/state/state.h"

#define BURST_UNITS  16384
#define BURST_BYTES  4
#define BURST_RECORD 512
#define BURST_MORE   16
#define BURST_NOTES  8
#define SPARSE_PART  8
/* When all clients have used this many units, those up to now begin to count half as much. */
#define SPARSE_OF_UNITS 131072

/* The flows of this turn have staged a record of `count` operations and `bytes`, whose elements
 * count `rounded` more. */
static inline void burst_spend(struct turn *t, uint32_t count, uint64_t bytes, uint64_t rounded)
{
    int64_t units =
        BURST_RECORD + BURST_MORE * (int64_t)(count - 1) + (int64_t)(bytes / BURST_BYTES + rounded);

    if (bytes == 0)
        return;
    t->burst -= units;
    t->spent += units;
}

/* This turn has staged notes or letters of so many bytes. */
static inline void burst_note(struct turn *t, int64_t bytes)
{
    t->spent += BURST_NOTES * bytes;
}

/* Whether the flows of this turn must pause when their burst is used up: a sparse client, other
 * than the turn's, has used the link within the last SHARED_NS. */
bool burst_may_pause(const struct engine *e, const struct turn *t);
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

/* The link begins. */
void burst_clear(struct turn *t);

#endif
