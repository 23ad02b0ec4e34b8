/*
 * Puts to an offload's region: which part of a packet handlers have not dealt with, and puts that
 * are cut. A packet whose handlers have run is skipped when it comes again:
 *
 *     0          done                    total
 *     | skipped  | at `done`: handlers   | behind it, and one before was refused: comes again
 *
 * The bytes of a put that is stored stand in the region when its one record comes (stored.h).
 *
 * A put that can't end is cut, and its completion handler runs with that flag: its origin has
 * failed or has gone on to something else, or its offload was disabled or destroyed. So is a Long.
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_OFFLOAD_REGION_PUT_H
#define PWC_ENGINE_OFFLOAD_REGION_PUT_H

#include "daemon/engine/ledger/records.h"
#include "daemon/engine/offload/find.h"

struct work;

/* Bytes of a put in packets that handlers have dealt with. */
static inline uint32_t offload_bytes_done(const struct inflow *in, uint32_t sequence)
{
    return offload_holds(in, sequence) ? in->handled.done : 0;
}

/* Whether this is a packet behind one that was refused. */
static inline bool offload_is_early(const struct inflow *in, const struct arrival *a)
{
    return a->w.op.head.kind == WIRE_PACKET && !(a->w.op.head.flags & (WIRE_CUT | WIRE_STORED)) &&
           a->w.packet.at > offload_bytes_done(in, a->w.op.sequence);
}

/* Whether handlers have begun a put or a Long whose origin has gone on to this record without its
 * end. */
static inline bool offload_is_left(const struct inflow *in, const struct wire_op *w)
{
    bool ends = w->head.kind == WIRE_NOTE && !(w->head.flags & WIRE_MESSAGE);

    return offload_may_cut(in) && (in->handled.sequence != w->sequence || ends);
}

/* A packet that `m` has the record of: 1, and the part of it that is left, with its offload; 0:
 * there is nothing to do; -EPROTO: it does not fit those before it. */
int region_put_begin(struct work *m);

/* Within a transaction that holds nothing, which it commits: no more comes of the put or the Long
 * that this inflow holds. Its completion handler runs, and it ends. */
void offload_cut(struct engine *e, uint32_t inflow);
/* As offload_cut, where the put or the Long is one to this offload and handlers have begun it: the
 * offload ends, and what still comes of it gets -ESHUTDOWN. */
void offload_cut_begun(struct engine *e, uint32_t inflow, uint32_t handle);
/* As offload_cut_begun, where the offload of what the inflow holds ends: its record has come before
 * the sweep. */
void offload_cut_where_ending(struct engine *e, uint32_t inflow);
/* Whether offload_cut of this inflow is for a later step: then it is parting, and the sweep comes
 * to it (cuts.h). */
bool offload_cut_later(struct engine *e, uint32_t inflow);

#endif
