/*
 * Turns: whose operations are staged next towards a peer.
 *
 *     peer, traffic     turns of clients      flows of that client
 *     ready --> first     client 3  ---------> flow 7, flow 2
 *                         client 1  ---------> flow 4
 *               last      client 8  ---------> flow 9, flow 11, flow 5
 *
 * Deficit round robin on bytes, by client: each client has the same share of a link, however many
 * contexts or flows it has; within that share its flows take turns. The bytes of records and of
 * payloads beside them are counted. Bytes that the last operation of a turn used beyond the turn
 * are taken off the next one; so a turn may be short, and may end when the ledger is full in the
 * middle. A step takes O(1).
 *
 * Turns are private: engine_open, and a link that comes up, find the ready flows anew. Thread: the
 * progress thread.
 */
#ifndef PWC_ENGINE_TURN_H
#define PWC_ENGINE_TURN_H

#include "daemon/engine/state/ready_list.h"
#include "daemon/engine/state/state.h"

/* Bytes of a turn. A message that comes alone waits for one of these for each client before it. */
#define TURN_BYTES 16384
/* The most bytes of one payload that count, or a client would be in debt for long. */
#define TURN_PAYLOAD_MAX (64 * TURN_BYTES)

/* The flow, which is new or from the arena, belongs to this client's turn from now on. */
void turn_join(struct engine *e, uint32_t flow, uint32_t client);
/* The flow has something to stage. */
void turn_ready(struct engine *e, uint32_t flow);
/* The flow leaves its turn's list, because it is about to be freed. */
void turn_unready(struct engine *e, uint32_t flow);
/* No flow towards this peer is ready. */
void turns_clear(struct engine *e, uint32_t peer);
static inline bool turns_waiting(const struct peer_live *live)
{
    return live->ready[FLOW_REQUESTS].first != NONE || live->ready[FLOW_REPLIES].first != NONE;
}
/* The turn goes behind the others: this ends it and begins the next. */
void turn_push(struct engine *e, uint32_t turn);

#endif
