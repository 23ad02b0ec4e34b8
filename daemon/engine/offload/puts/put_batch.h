/*
 * Batches of small puts to an offload's region, at their target. Each put is a packet by itself,
 * whose handlers run as for any other; the inflow notes how many have ended, so that a batch that
 * comes again, after a refusal, over a new link or after the daemon's death, continues where it
 * was:
 *
 *     BATCH    put | put | put | put | put
 *              have ended  ^ handlers run on this one
 *
 * When all have ended, one FAIL has the outcome of each, unless all ended well. Thread: the
 * progress thread.
 */
#ifndef PWC_ENGINE_PUT_BATCH_H
#define PWC_ENGINE_PUT_BATCH_H

#include "daemon/engine/ledger/records.h"
#include "daemon/engine/state/state.h"

/* Puts of the batch with this sequence that have ended. */
static inline uint32_t put_batch_done(const struct inflow *in, uint32_t sequence)
{
    return in->batched.sequence == sequence ? in->batched.done : 0;
}

/* Whether the record is such a batch: the region takes packets, or did when the first put ended. */
static inline bool put_batch_is(const struct engine *e, const struct arrival *a)
{
    const struct wire_batch *w = &a->w.batch;

    if (w->op.head.kind != WIRE_BATCH)
        return false;
    return (w->slot < e->config.regions_max && e->regions[w->slot].packet > 0) ||
           put_batch_done(&e->inflows[w->op.flow], w->op.sequence) > 0;
}

/* Within a transaction: forgets the batch, because the inflow's origin has gone on to something
 * else. */
static inline void put_batch_left(struct engine *e, struct inflow *in)
{
    if (in->batched.done > 0)
        set32(e, &in->batched.done, 0);
}

/* A place in a batch, after the puts that have ended. */
struct put_batch {
    uint32_t done; /* how many have ended */
    uint32_t at;   /* bytes */
};

/* Finds the place at which the batch continues. Returns 0; -EPROTO: some puts are longer than a
 * packet, or more have ended than there are. */
int put_batch_begin(const struct engine *e, const struct arrival *a, struct put_batch *place);
/* The next put, as the record that it would have on its own. False: all have ended. */
bool put_batch_next(struct engine *e, const struct arrival *a, struct put_batch *place,
                    struct arrival *one);
/* Within a transaction, which it commits: that put has ended, with this status. */
void put_batch_ended(struct engine *e, const struct arrival *a, int32_t status);
/* Within a transaction, which the caller commits with the record's consumption: posts the verdict,
 * when all have ended. Returns 0 or -ENOBUFS. */
int put_batch_verdict(struct engine *e, const struct arrival *a);

#endif
