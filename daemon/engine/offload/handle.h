/*
 * A message's way through the handlers of an offload. The message is an active message, which is
 * one record; a put to the offload's region, which comes in packets; or a get from it (observe.h).
 * Each handler has a transaction of its own; the inflow notes in the arena which handlers have run
 * (struct handled), so that a record that comes again continues where it was, over broken links and
 * deaths of the daemon.
 *
 *     room for event, verdict, reply --> doubt --> handler --> sends, events, next stage | commit
 *        |                                           |
 *        refused: comes again                        AGAIN: refused, runs again
 *
 *     header --PROCESS_DATA--> payload --> completion --> end, with the record's consumption:
 *        |                                                 ^   an event of the offload, or none
 *        +-- DROP ------------------------> completion ----+
 *        +-- PROCEED, DEFER --> the default action: the client's handler
 *        +-- FAIL --> completion (failed) --> end: -EREMOTEIO
 *        +-- a fault --> end: -EREMOTEIO, the offload is disabled
 *
 * The payload handler runs on each packet of a put, the completion handler with the last one, or
 * when the put is cut (region_put.h).
 *
 * The handler that runs when the daemon dies is the one in doubt (state/doubt.h): it runs again if
 * its offload says that this does no harm; otherwise the message is cut, and its origin gets
 * -ECONNABORTED.
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_OFFLOAD_HANDLE_H
#define PWC_ENGINE_OFFLOAD_HANDLE_H

#include "daemon/engine/ledger/records.h"
#include "daemon/engine/session/session.h"

/* Whether this record, the request of an active message, may be for handlers. A packet, or a get
 * that is observed, always is. */
static inline bool offload_concerns(const struct engine *e, const struct arrival *a)
{
    const struct inflow *in = &e->inflows[a->w.op.flow];

    return e->session_live[in->session].offloads > 0 || in->handled.open;
}

/* Whether a peer's next record may be taken in this step: its records have run no handlers since
 * `spent`, or all handlers of the step together have taken less than their bound. */
static inline bool offload_may_go_on(const struct engine *e, uint64_t spent)
{
    return e->offloads.spent == spent || e->offloads.spent < OFFLOAD_STEP_UNITS;
}

/* Whether a handler has replied to this request: its origin gets nothing more, whatever becomes of
 * the record. */
static inline bool offload_has_replied(const struct inflow *in, uint32_t sequence)
{
    return in->handled.sequence == sequence && in->handled.flags & HANDLED_REPLIED;
}

enum offload_outcome {
    OFFLOAD_NOT_OURS = 0, /* the record is for no handler */
    OFFLOAD_DONE = 1,     /* nothing is left to be done or reported */
    OFFLOAD_DEFAULT = 2,  /* the default action is due, as if there were no offload */
};

/*
 * Within a transaction, which holds nothing, and which the caller commits with the record's
 * consumption: gives a message to handlers. `event` is the size of the default action's event; 0:
 * there is none. Returns enum offload_outcome; -ENOSPC: the record is to be refused; -ENOBUFS: it
 * can't be taken now; -EPROTO: a packet does not fit those before it, or a record has the sequence
 * of a message of another kind. Transactions of handlers are committed on the way.
 */
int offload_handle(struct engine *e, struct arrival *a, uint32_t event);
/* Within a transaction: the default action is done, or has failed, and the record is consumed. */
void offload_ended(struct engine *e, struct arrival *a);

#endif
