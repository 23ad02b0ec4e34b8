/*
 * Finds offloads by handle and by index, and decides how long their messages wait. Thread: the
 * progress thread.
 */
#ifndef PWC_ENGINE_OFFLOAD_FIND_H
#define PWC_ENGINE_OFFLOAD_FIND_H

#include "daemon/engine/offload/turns.h"
#include "daemon/engine/state/state.h"

/* The entry of a handle that this context was given, or NONE. */
uint32_t offload_of_handle(const struct engine *e, uint32_t session, uint32_t handle);
/* The entry of the offload at an index of a context's messages, in any state, or NONE. */
uint32_t offload_of_index(const struct engine *e, uint32_t session, uint32_t index);

/* Whether the inflow holds this message, and handlers have begun it. */
static inline bool offload_holds(const struct inflow *in, uint32_t sequence)
{
    return in->handled.open && in->handled.sequence == sequence;
}

/* Whether the inflow holds a put, or a Long, whose handlers may run over several steps or records:
 * one that can't end is cut. */
static inline bool offload_may_cut(const struct inflow *in)
{
    return in->handled.open &&
           (in->handled.kind == HANDLER_PUT || in->handled.flags & HANDLED_STORED);
}

/* Whether the inflow's origin was lost, and the message that the inflow holds is to be cut
 * (cuts.h). */
static inline bool offload_cut_waits(const struct inflow *in)
{
    return in->state == INFLOW_PARTING && offload_may_cut(in);
}

/* Whether the handlers of the message with this sequence wait: for room to send, because one has
 * returned AGAIN; for their client's turn; or for replies to leave. */
static inline bool offload_awaits(const struct inflow *in, uint32_t sequence)
{
    return offload_holds(in, sequence) &&
           in->handled.flags & (HANDLED_RERUN | HANDLED_WAITING | HANDLED_UNANSWERED);
}

/* Whether the inflow's message waits for a turn, and its client stands in line for one. */
static inline bool offload_in_line(const struct engine *e, const struct inflow *in)
{
    return in->handled.flags & HANDLED_WAITING &&
           handlers_wait_for_turn(e, e->sessions[in->session].client);
}

/* Charges for a record that is dropped, because it came after one that waits for a turn. Later
 * packets of the put that waits cost nothing: its origin's pace is in operations. */
static inline void offload_drops(struct engine *e, const struct inflow *in)
{
    if (offload_awaits(in, in->refused) && in->handled.flags & HANDLED_WAITING)
        handlers_charge(e, e->sessions[in->session].client, HANDLERS_DROP_UNITS);
}

/* Within a transaction: a message that waits is refused. GO follows with its client's turn; or when
 * a send of the context's handlers ends, or after a pause, which grows while no send ends, because
 * memory may be short. */
void offload_refused(struct engine *e, uint32_t inflow);
/* The completion handlers of the context's gets wait for room in the same way. */
void offload_gets_wait(struct engine *e, uint32_t session);
/* Within a transaction: notes that GO is on its way to the origin of what this inflow has refused.
 * False: that was noted before. */
bool offload_returns(struct engine *e, struct inflow *in);
/* Sends of the context's handlers have ended: what waits for room may continue. */
void offload_room(struct engine *e, uint32_t session);
/* The part of offload_try_again where something waits. */
void offload_pause_ends(struct engine *e, uint64_t *deadline);
/* After the pause, what waits for room tries again. */
static inline void offload_try_again(struct engine *e, uint64_t *deadline)
{
    if (e->offloads.again_at != 0)
        offload_pause_ends(e, deadline);
}

#endif
