/*
 * Replies to active messages: the flows they travel on; reply_credit.h has what is owed, and the
 * event space that requests hold for them.
 *
 * At the replier each inflow has a flow of replies of its own, from the first request on that may
 * be replied to. It needs no bind: its records name the requester's flow, which the requester's
 * daemon knows, and the replier's, for a FAIL to come back to. The inflow counts what is `owed`;
 * its number is the token that a reply must name, so it stays, PARTING, until all is answered,
 * though its origin be gone. At the requester a flow counts `replies_expected`, each of which holds
 * event_bytes(message_max) of the session's reply ring. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_REPLY_H
#define PWC_ENGINE_REPLY_H

#include "daemon/engine/state/state.h"

/* Within a transaction: the flow for replies to what comes by this inflow is there. 0, -ENOSPC. */
int reply_flow_open(struct engine *e, uint32_t inflow);

#endif
