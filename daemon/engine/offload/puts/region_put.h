/*
 * Puts to an offload's region: which part of a packet handlers have not dealt with, and puts that
 * are cut. A packet whose handlers have run is skipped when it comes again:
 *
 *     0          done                    total
 *     | skipped  | at `done`: handlers   | after `done`: one before was refused, so it comes again
 *
 * The bytes of a put that is stored stand in the region when its one record comes (stored.h).
 *
 * A put that can't end is cut, and its completion handler runs with that flag: its origin has
 * failed or has gone on to something else, or its offload was disabled or destroyed. A Long is cut
 * in the same way.
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

/* Whether this is a packet after one that was refused. */
static inline bool offload_is_early(const struct inflow *in, const struct arrival *a)
{
    return a->w.op.head.kind == WIRE_PACKET && !(a->w.op.head.flags & (WIRE_CUT | WIRE_STORED)) &&
           a->w.packet.at > offload_bytes_done(in, a->w.op.sequence);
}

/* Whether handlers have begun a put or a Long, and its origin has gone on to this record without
 * ending it. */
static inline bool offload_is_left(const struct inflow *in, const struct wire_op *w)
{
    bool ends = w->head.kind == WIRE_NOTE && !(w->head.flags & WIRE_MESSAGE);

    return offload_may_cut(in) && (in->handled.sequence != w->sequence || ends);
}

/* Begins or resumes the put that the packet of `m` belongs to. Returns 1, with the rest of the
 * packet and the offload in `m`; 0: there is nothing to do; -EPROTO: the packet does not fit those
 * before it. */
int region_put_begin(struct work *m);

/* Within a transaction that holds nothing, which it commits: ends the put or the Long that this
 * inflow holds, because no more of it comes. Its completion handler runs. */
void offload_cut(struct engine *e, uint32_t inflow);
/* As offload_cut, if the put or the Long is one to this offload and handlers have begun it. The
 * offload ends; records of the message that still arrive fail with -ESHUTDOWN. */
void offload_cut_begun(struct engine *e, uint32_t inflow, uint32_t handle);
/* As offload_cut_begun, if the offload of the held message is to end: the message's record has come
 * before the sweep. */
void offload_cut_where_ending(struct engine *e, uint32_t inflow);
/* Whether offload_cut of this inflow is left to a later step: the inflow then parts, and the sweep
 * comes to it (cuts.h). */
bool offload_cut_later(struct engine *e, uint32_t inflow);

#endif
