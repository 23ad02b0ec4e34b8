/*
 * Flows: the operations of one pair of contexts at their origin, in order of submission.
 *
 *     head          reported         staged         started           tail
 *      | wait for     | wait for      | payload or   | wait for        |
 *      | the target   | their event   | read is on   | room, fence,    |
 *      |              |               | its way      | hold            |
 *
 * A flow is the unit of order and of hold (STOP). A flow advances in its client's turn (turn.h).
 * When it has to stop, the event that ends the reason makes it ready again. Thread: the progress
 * thread.
 */
#ifndef PWC_ENGINE_FLOW_H
#define PWC_ENGINE_FLOW_H

#include "daemon/engine/state/state.h"

/* The flow of this pair's requests, or -ENOENT. */
int flow_find(const struct engine *e, uint64_t owner, uint32_t peer, uint64_t endpoint);
/* An open flow of the owner's requests to a context of this number on any node, or -ENOENT. */
int flow_find_open(const struct engine *e, uint64_t owner, uint64_t endpoint);
/* The flow for requests of this pair of contexts; a new one is made in a transaction of its own.
 * Returns its number, or -ENOSPC. */
int flow_open(struct engine *e, uint64_t owner, uint32_t peer, uint64_t endpoint);
/* Within a transaction: makes a flow that no bind has asked for yet. Returns its number, or
 * -ENOSPC. */
int flow_new(struct engine *e, uint64_t owner, uint32_t peer, uint64_t endpoint, uint32_t traffic);
/* Adds the flow to the lists by which its peer and its owner find it. */
void flow_enters(struct engine *e, uint32_t flow);
static inline struct op *flow_op(struct engine *e, struct flow *f, uint64_t slot)
{
    return queue_entry(&e->pool, &f->ops, OP_SHIFT, slot);
}

/* Whether some pieces of this operation's payload are on their way, and others not. */
static inline bool flow_half_posted(const struct flow *f, uint64_t slot)
{
    return f->posted > 0 && slot == f->started;
}

/* Whether the target has refused this operation, and drops everything until it comes again. */
static inline bool flow_awaited(const struct flow *f, uint64_t slot)
{
    return f->epoch > 0 && slot == f->rewound;
}

/* Whether the flow waits: for an operation that is not staged, or for a reply. */
static inline bool flow_waits(const struct flow *f)
{
    return f->state != FLOW_FREE && (f->staged < f->ops.tail || f->replies_expected > 0);
}

/* Sets the private part of a flow whose number this process has not used before: no turn, no
 * remotes. */
void flow_live_init(struct engine *e, uint32_t flow);
/* Puts the flow on its turn's list if it has something to stage and may stage it. */
void flow_ready(struct engine *e, uint32_t flow);
/* Calls flow_ready for all flows that may have operations over this remote. */
void flows_ready_towards(struct engine *e, const struct remote *remote);
/*
 * Starts and stages operations, and takes their bytes off the turn and off its burst, until one of
 * these is used up. Returns 1: one is, and there is more; 0: there is nothing more to do until
 * something happens; -ENOSPC: no credit in the ledger; -EAGAIN: the fabric takes no more now;
 * -EBUSY: no nonce is left; -ENOBUFS: the peer's window has no room for a payload.
 */
int flow_advance(struct engine *e, uint32_t flow, struct turn *turn, int *work);
/* Posts local events and lets finished operations leave. */
void flow_finish(struct engine *e, uint32_t flow);

/* Within a transaction, which it commits: the target has consumed the records of `count` operations
 * in a row, at most FLOW_ROW_MAX. Unless `count` is 1, each has one entry. */
#define FLOW_ROW_MAX 64u
void flow_acknowledged(struct engine *e, uint32_t flow, uint64_t slot, uint32_t count,
                       uint32_t epoch);
/* The target has consumed a packet of the flow that is not the last one of its put. */
void flow_part_acknowledged(struct engine *e, uint32_t flow, uint32_t epoch);
/* Within a transaction: the target had not consumed the record of this operation when the link
 * broke (`part`: as in struct sent). */
void flow_rewind(struct engine *e, uint32_t flow, uint64_t slot, uint32_t epoch, uint32_t part);
/* A piece of a payload, or of a read, has ended. `low`: the low bits of its operation's index
 * (cookie_op). */
void flow_fabric_done(struct engine *e, uint32_t flow, uint64_t low, int status);
/* Within a transaction: the target's FAIL of one operation. */
void flow_failed(struct engine *e, uint32_t flow, uint32_t sequence, int32_t status, uint32_t done);
struct op_outcomes;
/* As flow_failed, where each operation of a batch has ended on its own: 0 or -EPROTO. */
int flow_failed_apart(struct engine *e, uint32_t flow, uint32_t sequence, int32_t status,
                      const struct op_outcomes *outcomes);
struct op_result;
/* As flow_failed, with the values that an atomic has fetched: 0 or -EPROTO. */
int flow_result(struct engine *e, uint32_t flow, uint32_t sequence, const struct op_result *result);
/*
 * The target's REFUSE of one operation, with the status of the refusal. `done`: for a put in
 * packets, the bytes that the target has dealt with.
 *
 * -EBUSY: handlers at the target are behind. Then at most PACED_OPS operations of the next
 * PACED_ENTRIES entries are on their way at a time: more would only fill the ledger there, or be
 * dropped. Packets of a put are long and many: PACED_PARTS may be on their way at first, half as
 * many after each further refusal, and one more whenever as many were consumed as may be on their
 * way.
 */
#define PACED_OPS         16u
#define PACED_PARTS       16u
#define PACED_PARTS_LEAST 2u
#define PACED_ENTRIES     4096u
void flow_refused(struct engine *e, uint32_t flow, uint32_t sequence, int32_t status,
                  uint32_t done);
void flow_hold(struct engine *e, uint32_t flow, bool held);
/* Within a transaction: the target's context has ended (WIRE_ENDED or an error); the owner gets one
 * report. flow_gone then ends the operations, at once or, after a restart, when the link is up
 * again. */
void flow_gone_known(struct engine *e, uint32_t flow, int32_t end);
/* The target's context is gone: operations whose records are in the ledger are still answered; the
 * others fail, most of them in the next sweeps. */
void flow_gone(struct engine *e, uint32_t flow);
/* Ends those operations of a dead flow that have started and are not staged, and up to `most`, or
 * the rest of a batch more. Returns what is left of `most`. */
uint32_t flow_end_rest(struct engine *e, uint32_t flow, uint32_t most);
/* The peer's state is lost: all operations fail, and those that had started have an unknown
 * outcome. */
void flow_kill(struct engine *e, uint32_t flow);
/* The flow's owner is gone: drops the operations that are left. */
void flow_empty(struct engine *e, uint32_t flow);
/* The flow's owner leaves the flow, which goes on the leaving list. flows_detach: all flows of the
 * owner. */
void flow_detach(struct engine *e, uint32_t flow);
void flows_detach(struct engine *e, uint64_t owner);
/* Retires a flow of requests that no remote names any more and that has nothing under way. */
void flow_retire(struct engine *e, uint32_t flow);

/* Within a transaction: the operation ends with `status`, without its target. */
void flow_end_op(struct engine *e, struct op *op, int32_t status);
/* The flow is held, or ends: gives back the nonces of payloads whose records are not staged.
 * Otherwise a few flows would stop the large puts of all others. */
void flow_void(struct engine *e, struct flow *f);

#endif
