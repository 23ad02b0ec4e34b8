/*
 * Turns: what is staged next towards a peer, and which client pays for it.
 *
 *     peer     turns of clients    what one client has to stage, first things first
 *     ready -> first  client 3 --> verdicts, other notes, flows of replies, flows of requests
 *                     client 1 --> letters, flows of requests
 *                     nobody   --> other notes
 *              last   client 8 --> verdicts
 *
 * Deficit round robin on bytes, by client: each client has the same share of a link, however many
 * contexts or flows it has, and whatever has to be sent for it. Within that share its verdicts go
 * first, then its other notes, its letters, its replies, its requests; flows of one kind take
 * turns. A note is charged to the client of this node whose traffic or memory it is about: a FAIL
 * to the target of the operation that failed. A note about no client, or about one that has left,
 * goes to the turn "nobody", which has one share too.
 *
 * The bytes of records and of payloads beside them are counted, and TURN_POST_BYTES for each
 * operation of the fabric that carries a payload or a read. Bytes that the last operation of a
 * turn used beyond the turn are taken off the next one; so a turn may be short, and may end when
 * the ledger is full in the middle. A step takes O(1).
 *
 * Flows whose next payload finds the peer's window full stand on a further list of their turn, and
 * the turn on a further list of its peer. As payloads end, these flows become ready again, one of
 * each client in turn, and no flow that comes meanwhile posts before them.
 *
 * A turn whose flows pause (burst.h) is on the list only while it has something else to stage. Its
 * flows stay on its own lists, and it comes back when the pause ends.
 *
 * A turn that has nothing more to stage leaves the list when it comes to the front. Turns are
 * private: engine_open, and a link that comes up, find what is ready again. Thread: the progress
 * thread.
 */
#ifndef PWC_ENGINE_TURN_H
#define PWC_ENGINE_TURN_H

#include "daemon/engine/ops/burst.h"
#include "daemon/engine/state/ready_list.h"
#include "daemon/engine/state/state.h"

/* Bytes of a turn. A lone message waits for at most one turn of each client before it. */
#define TURN_BYTES  16384
#define SHARED_PART 4u /* while clients share the link, the window is 1/4 of the configured one */
/* Bytes that a fabric operation counts besides its payload, for the time that it costs both
 * sides. */
#define TURN_POST_BYTES 512

static inline uint32_t turn_of_nobody(const struct engine *e, uint32_t peer)
{
    return e->turns_max + peer;
}

static inline struct turn turn_empty(uint32_t client, uint32_t peer)
{
    return (struct turn){.client = client,
                         .peer = peer,
                         .next = NONE,
                         .waiting = {{NONE, NONE}, {NONE, NONE}},
                         .letters = {NONE, NONE},
                         .ready = {{NONE, NONE}, {NONE, NONE}},
                         .blocked = {NONE, NONE},
                         .left = TURN_BYTES,
                         .burst = BURST_UNITS};
}

/* The client's turn towards this peer, which may be a new one. The turn of nobody for client NONE,
 * and when the table of turns is full. */
uint32_t turn_of(struct engine *e, uint32_t peer, uint32_t client);
/* The flow, which is new or from the arena, belongs to this client's turn from now on. */
void turn_join(struct engine *e, uint32_t flow, uint32_t client);
/* The client whose turn the flow belongs to, or NONE. */
uint32_t turn_client(const struct engine *e, uint32_t flow);

/* Puts the turn, which has something to stage, after the other turns of its peer. */
void turn_list(struct engine *e, uint32_t turn);
/* Puts the flow, which has something to stage, on its turn's list. */
void turn_ready(struct engine *e, uint32_t flow);
/* The flow leaves its turn's list, because it is about to be freed. */
void turn_unready(struct engine *e, uint32_t flow);
/* Counts `entries` entries of notes that now wait in this turn. turn_notes_leave: that no longer
 * wait. */
void turn_notes_wait(struct engine *e, uint32_t turn, uint32_t entries);
void turn_notes_leave(struct engine *e, uint32_t turn, uint32_t entries);
/* The flow, which is on no list now, waits for its peer's window. */
void turn_block(struct engine *e, uint32_t flow);
/* Lets flows that wait for the window continue as far as it has room. */
void turns_unblock(struct engine *e, uint32_t peer);
/* Lets flows whose peer has consumed enough end their pause (burst.h). */
void turns_resume(struct engine *e, uint32_t peer);
/* Takes all flows and notes towards this peer off the lists of turns. */
void turns_clear(struct engine *e, uint32_t peer);

/* Whether nothing of the turn may be staged now. */
static inline bool turn_is_empty(const struct turn *t)
{
    return t->waiting[NOTES_VERDICTS].first == NONE && t->waiting[NOTES_OTHERS].first == NONE &&
           t->letters.first == NONE &&
           (t->paused ||
            (t->ready[FLOW_REPLIES].first == NONE && t->ready[FLOW_REQUESTS].first == NONE));
}

/* The peer's window: how many bytes of payloads may be on their way. Where clients share the link,
 * the window is smaller, so that one client's payloads wait behind fewer bytes of another's. */
static inline uint64_t turn_window(const struct engine *e, const struct peer_live *peer)
{
    return e->now < peer->shared_until ? e->config.window_bytes / SHARED_PART
                                       : e->config.window_bytes;
}

/* Whether anything may be staged or posted towards this peer. */
static inline bool turns_waiting(const struct engine *e, uint32_t peer)
{
    const struct peer_live *live = &e->peer_live[peer];

    return live->ready.first != NONE ||
           (live->blocked.first != NONE && live->bytes < turn_window(e, live));
}
/* Ends the first turn of the list, which goes after the others or, with nothing more to stage,
 * leaves the list. */
void turn_end(struct engine *e, uint32_t peer);

#endif
