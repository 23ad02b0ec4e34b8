/*
 * Quotas: the share of a client, and of its user, in the tables that all clients use.
 *
 *     binds    remotes over flows of its contexts, and as many grants of its regions
 *     pairs    flows of its contexts, for requests and for replies, and as many inflows
 *     queues   chunks of its operations and spilled events, and of notes that wait to be
 *              staged
 *     teams    teams of its user, and their memory
 *
 * Binds, pairs and teams beyond the quota are refused. Queues at the quota only wait: submissions
 * stay in their ring, events in their origin's queue. Besides, a client may take a further chunk
 * only while at least as many are free as it has, so that any number of clients that flood or don't
 * drain leave some to the next client. A context has a few chunks whatever the other contexts of
 * its client do, so that a full context does not stop the others.
 *
 * Owns nothing. Binds and pairs are counted as they come and go (held.h), chunks when a queue takes
 * one more, teams when one opens. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_QUOTA_H
#define PWC_ENGINE_QUOTA_H

#include "daemon/engine/state/state.h"

/* Chunks that a context may have whatever its client's other contexts have. */
#define QUOTA_CONTEXT_CHUNKS 4u

/* Fills in the quotas that are not configured, and bounds each by the size of its table. */
void quota_defaults(struct engine_config *c);

/* Whether this session may have one more bind and one more flow, or one more inflow. 0 or
 * -EDQUOT. */
int quota_bind(const struct engine *e, uint32_t session, bool flow);
int quota_inflow(const struct engine *e, uint32_t session);
/* Whether the session may have one more flow for its replies, or the region one more peer that
 * resolves it. 0 or -EDQUOT. */
int quota_replies(const struct engine *e, uint32_t session);
int quota_grant(const struct engine *e, uint32_t region);
/* Whether this user may have one more team, with so much memory. 0, -EDQUOT (too many teams) or
 * -ENOBUFS (too much memory). */
int quota_team(const struct engine *e, uint32_t uid, uint64_t bytes);

/* Within a transaction: queue_push, which may take a chunk. -ENOBUFS. */
int quota_push_chunks(struct engine *e, uint32_t session, struct queue *q, uint32_t n);
int quota_push_reply(struct engine *e, uint32_t session, struct queue *q, uint32_t n);
int quota_push_spill(struct engine *e, uint32_t session, uint32_t n);
/* Whether this session may take this many chunks more for what its handlers send: 0 or -ENOBUFS. */
int quota_room(const struct engine *e, uint32_t session, uint32_t chunks);
/* As queue_pop, for operations whose chunk goes back to the pool. Within a transaction. */
void quota_pop_chunks(struct engine *e, uint32_t session, struct queue *q, uint32_t n);
/* After a restart: counts the chunks of these operations for the session. */
void quota_count(struct engine *e, uint32_t session, const struct queue *q);

/* As quota_push_chunks, faster where no chunk is taken. After a push the transaction must be
 * committed, because a rollback does not undo the count of chunks. On an error nothing has
 * changed. */
static inline int quota_push(struct engine *e, uint32_t session, struct queue *q, uint32_t n)
{
    if (!queue_push_stays(q, n))
        return quota_push_chunks(e, session, q, n);
    set64(e, &q->tail, q->tail + n);
    return 0;
}

#endif
