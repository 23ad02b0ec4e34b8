/*
 * Replies to active messages: the flows of replies. reply_credit.h counts the replies that are
 * owed, and the event space that requests hold for replies.
 *
 * At the replier each inflow has a flow of replies of its own, from its first request on that may
 * be replied to. A flow of replies needs no bind: its records name the requester's flow, which the
 * requester's daemon knows, and the replier's flow, which a FAIL names. The inflow counts the
 * replies that are `owed`. The inflow's number is the token that a reply must name, so the inflow
 * stays, PARTING, until all requests are replied to, even when its origin is gone. At the requester
 * a flow counts `replies_expected`; each holds event_bytes(message_max) of the session's reply
 * ring. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_REPLY_H
#define PWC_ENGINE_REPLY_H

#include "daemon/engine/state/state.h"

/* Within a transaction: makes sure that there is a flow for replies to requests of this inflow. 0,
 * -ENOSPC, -EDQUOT. */
int reply_flow_open(struct engine *e, uint32_t inflow, enum replier who);

#endif
