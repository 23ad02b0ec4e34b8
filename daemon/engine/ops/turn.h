/*
 * Turns: whose operations are staged next towards a peer.
 *
 *     peer, traffic     turns of clients      flows of that client
 *     ready --> first     client 3  ---------> flow 7, flow 2
 *                         client 1  ---------> flow 4
 *               last      client 8  ---------> flow 9, flow 11, flow 5
 *
 * Deficit round robin on bytes, by client: each has the same share of a link, however many contexts
 * it has and however many it talks to; within its share its flows take turns. Bytes are those of
 * records and of payloads that go beside them. What the last operation of a turn took too much is
 * taken off the next turn; so a turn may be as short as it likes, and it ends where it ends, also
 * when the ledger has been full in the middle. A step takes O(1).
 *
 * Turns are private: who is ready is found anew by engine_open and when a link comes up.
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_TURN_H
#define PWC_ENGINE_TURN_H

#include "daemon/engine/state/ready_list.h"
#include "daemon/engine/state/state.h"

/* Bytes of a turn. A message that comes alone waits for one of these for each client before it. */
#define TURN_BYTES 16384
/* Of one payload: what is more is not counted, or a client would be in debt for long. */
#define TURN_PAYLOAD_MAX (64 * TURN_BYTES)

/* The flow, which is new or from the arena, belongs to this client's turn from now on. */
void turn_join(struct engine *e, uint32_t flow, uint32_t client);
/* The flow has something to stage. */
void turn_ready(struct engine *e, uint32_t flow);
/* Not any more: it is about to be freed. */
void turn_unready(struct engine *e, uint32_t flow);
/* No flow towards this peer is ready. */
void turns_clear(struct engine *e, uint32_t node);
static inline bool turns_waiting(const struct peer_live *live)
{
    return live->ready[FLOW_REQUESTS].first != NONE || live->ready[FLOW_REPLIES].first != NONE;
}
/* The turn goes behind the others: this ends it and begins the next. */
void turn_push(struct engine *e, uint32_t turn);

#endif
