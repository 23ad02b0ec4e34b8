/* Counts of replies (reply.h). Thread: the progress thread. */
#ifndef PWC_ENGINE_REPLY_CREDIT_H
#define PWC_ENGINE_REPLY_CREDIT_H

#include "daemon/engine/session/quarantine.h"
#include "daemon/engine/state/state.h"

/* ---- at the replier -------------------------------------------------------------------------- */

/* Whether records of the flow may be staged: not replies to a requester that is gone, because its
 * flow's number may soon be another flow's. */
bool reply_way_open(const struct engine *e, const struct flow *f);
/* Whether this session owes a reply to the request that a record of its reply_submit ring names. */
bool reply_owed(const struct engine *e, uint32_t session, const struct submit_record *r);
/* Within a transaction: counts one more reply as owed, to a request that is delivered. */
void reply_owe(struct engine *e, uint32_t inflow);
/* Within a transaction: counts one reply less as owed. */
void reply_answered(struct engine *e, uint32_t inflow);

/* ---- at the requester ------------------------------------------------------------------------ */

/* Whether an operation of this flow holds reply event space. */
bool reply_awaited(const struct flow *f, uint8_t kind, uint16_t flags);
/* Checks whether there is event space for one more reply; the reason when the client holds too
 * much. */
enum quarantine_reason reply_space(struct engine *e, uint32_t session);
/* Within a transaction: one more request holds its space. */
void reply_hold(struct engine *e, uint32_t flow);
/* Within a transaction: up to `count` requests of this flow will not be replied to: the client gets
 * their space back. */
void reply_give_back(struct engine *e, uint32_t flow, uint32_t count);
/* Whether the flow that a reply from `peer` names awaits one: 0, -EHOSTDOWN: its client is on its
 * way out; -EPROTO: no honest daemon sends this. */
int reply_requester(const struct engine *e, uint32_t flow, uint32_t peer);
/* Within a transaction: a reply has arrived, and its event takes the space. */
void reply_came(struct engine *e, uint32_t flow);

#endif
