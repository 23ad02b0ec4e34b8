/*
 * Replies to active messages: the flows they travel on, what is owed, and the event space that
 * requests hold for them.
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
#include "daemon/engine/session/quarantine.h"

/* ---- at the replier ------------------------------------------------------------------------ */

/* Within a transaction: the flow for replies to what comes by this inflow is there. 0, -ENOSPC. */
int reply_flow_open(struct engine *e, uint32_t inflow);
/* Whether records may be staged: not for replies whose requester is gone, for its flow's number may
 * soon be another's. */
bool reply_way_open(const struct engine *e, const struct flow *f);
/* What stands in the answer ring: whether that request is owed a reply by this session. */
bool reply_owed(const struct engine *e, uint32_t session, const struct submit_record *r);
/* Within a transaction: one less is owed. */
void reply_answered(struct engine *e, uint32_t inflow);

/* ---- at the requester ---------------------------------------------------------------------- */

/* Whether an operation of this flow holds reply event space. */
bool reply_awaited(const struct flow *f, uint8_t kind, uint16_t flags);
/* Event space for one more reply: a reason when the client has passed what it may hold. */
enum quarantine_reason reply_space(struct engine *e, uint32_t session);
/* Within a transaction: one more request holds its space. */
void reply_hold(struct engine *e, uint32_t flow);
/* Within a transaction: up to `count` requests of this flow will not be replied to: their space is
 * the client's again. */
void reply_give_back(struct engine *e, uint32_t flow, uint32_t count);
/* Whether the flow that a reply from `node` names awaits one: 0, -EHOSTDOWN: its client is on its
 * way out; -EPROTO: no honest daemon sends this. */
int reply_requester(const struct engine *e, uint32_t flow, uint32_t node);
/* Within a transaction: a reply has come, and its event takes the space. */
void reply_came(struct engine *e, uint32_t flow);

#endif
