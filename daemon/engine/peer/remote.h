/*
 * The results of a bind: remote and flow at the origin, inflow at the target; and when each is free
 * again. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_REMOTE_H
#define PWC_ENGINE_REMOTE_H

#include "daemon/engine/state/state.h"

/* Puts the remote, whose bind is committed, on its flow's list. */
void remote_joins(struct engine *e, uint32_t remote);
/* The home of the remotes that a REVOKE of this region may be about, and of others with the same
 * hash. */
static inline uint32_t remote_home(const struct engine *e, uint32_t peer, uint32_t slot)
{
    return chain_home(&e->remotes_of_key, peer, slot);
}
/* Within a transaction: nothing names the remote any more. */
void remote_free(struct engine *e, uint32_t remote);
/* Whether the client has freed the remote, and the remote's operations are over. */
bool remote_over(const struct engine *e, uint32_t remote);
/* Frees the remote if it is over. Returns whether it is still leaving (table_sweep). */
bool remote_leaves(struct engine *e, uint32_t remote);
/* Adds the inflow to the lists by which it is found. */
void inflow_enters(struct engine *e, uint32_t inflow);
static inline uint32_t inflow_hash(uint32_t session, uint32_t peer, uint32_t origin_flow)
{
    return chain_hash(session, (uint64_t)peer << 32 | origin_flow);
}
static inline uint32_t inflow_home(const struct engine *e, uint32_t session, uint32_t peer,
                                   uint32_t origin_flow)
{
    return chain_home_of(&e->inflows_of_flow, inflow_hash(session, peer, origin_flow));
}
/* Within a transaction: the inflow's origin waits for GO; `state` is INFLOW_STOPPED or
 * INFLOW_REFUSED. */
static inline void inflow_hold(struct engine *e, uint32_t inflow, enum inflow_state state)
{
    set32(e, &e->inflows[inflow].state, state);
    chain_add(&e->inflows_held, e->inflows[inflow].session, inflow);
}
static inline bool inflow_is_held(const struct inflow *in)
{
    return in->state == INFLOW_STOPPED || in->state == INFLOW_REFUSED;
}
/* The home in `flows_due` and `inflows_due` of flows and inflows with such a report. */
static inline uint32_t due_home(uint32_t session, int32_t due)
{
    return 2 * session + (due == DUE_BACK);
}
/* Within a transaction: nothing names the inflow any more. */
void inflow_free(struct engine *e, uint32_t inflow);
/* Within a transaction: frees a flow that has no inflow at the target, or no longer has one. */
void flow_free(struct engine *e, uint32_t flow);

#endif
