/*
 * Sessions: a context's rings as the engine sees them. Submissions are taken from here, local and
 * remote events are posted here, and remote events that find their ring full wait in the spill.
 *
 * A published tail covers only committed events: events are written past the tail, the arena's tail
 * moves with the operation's end in one transaction, and sessions_show shows that tail. Thread: the
 * progress thread.
 */
#ifndef PWC_ENGINE_SESSION_H
#define PWC_ENGINE_SESSION_H

#include "daemon/engine/state/state.h"

/* An event to be written, in pieces that are not copied together before. */
struct event_draft {
    struct event_record head;
    struct message message; /* for an active message: the id's first bytes, as they were checked */
    const uint8_t *rest;    /* in the ledger, read once: the id, or the block after its head */
    uint32_t front;         /* bytes of head and message */
    uint32_t rest_len;
};

/* Takes submitted replies, then submissions, up to `budget` of each. Returns their number. */
int session_take(struct engine *e, uint32_t session, int budget);
/* Within a transaction: ends the operation for its client, with its local events. */
void session_report_local(struct engine *e, uint32_t flow, uint64_t slot, const struct op *op);
/* Within a transaction: `count` operations have ended without an event; `bytes` of reserved event
 * space are free again. */
void session_end_silent(struct engine *e, uint32_t session, uint32_t count, uint64_t bytes);
/* Where events for which room was reserved will be written. */
enum event_place {
    EVENT_DROPPED = 0, /* nowhere: the client takes no events any more */
    EVENT_IN_RING,
    EVENT_SPILLED,
};
struct event_room {
    enum event_place where;
    uint32_t count; /* of events */
    uint64_t slot;  /* place of the first event in the spill */
    void *at;       /* place of the event in the ring, if there is only one */
};
/*
 * Within a transaction, and before anything is done for a record that came by `inflow`: reserves
 * room for its `count` events of `size` bytes each. Returns 0 (where the events spill, the flow is
 * stopped); -ENOSPC: the record is to be refused; -ENOBUFS: there is no chunk for the STOP. Until
 * session_deliver, the caller may still roll the transaction back.
 */
static inline int session_reserve(struct engine *e, uint32_t inflow, uint32_t size, uint32_t count,
                                  struct event_room *room);
/* As session_reserve, for any session; with inflow NONE an event that spills stops no flow. */
int session_reserve_for(struct engine *e, uint32_t session, uint32_t inflow, uint32_t size,
                        uint32_t count, struct event_room *room);
/* As session_reserve_for, for one event that stops no flow, and that takes room beyond the spill's
 * bound: the bound is for peers that send, and of such an event each peer or inflow causes only
 * one. Returns 0, or -ENOSPC: there is no memory. */
int session_reserve_once(struct engine *e, uint32_t session, uint32_t size,
                         struct event_room *room);
/* Within the transaction of session_reserve, whose event may be in the ring: whether one more event
 * of `size` bytes has room, beside `held` promised bytes of the ring. Returns 0, -ENOSPC, -ENOBUFS.
 * The caller rolls the transaction back, and reserves room for each event when it writes it. */
int session_try_more(struct engine *e, uint32_t session, uint32_t inflow, uint32_t size,
                     uint32_t held);
/* Writes the event within the transaction of session_reserve. */
void session_deliver(struct engine *e, uint32_t session, const struct event_room *room,
                     const struct event_draft *draft);
/* Writes the events of a batch's puts, which are all as `like`, except for id and bytes. */
void session_deliver_batch(struct engine *e, uint32_t inflow, const struct event_room *room,
                           const struct event_record *like, const uint8_t *block);
/* Within a transaction: writes the event of a reply. The request has reserved its room; a client
 * whose ring has none is quarantined. */
void session_report_reply(struct engine *e, uint32_t session, const struct event_draft *draft);
/*
 * Within a transaction: posts the event that the context `endpoint` has ended (`end` is WIRE_ENDED
 * or an error). Returns 0; or -ENOSPC: its ring is full, and there is no memory to keep the event,
 * so the report stays due.
 */
int session_report_end(struct engine *e, uint32_t session, uint64_t endpoint, int32_t end);
/* Whether the end of this context was reported to the session. Contexts share bits, so the answer
 * may be true for one that has not ended; the session then gets a needless event at most. */
bool session_knows_end(const struct engine *e, uint32_t session, uint64_t endpoint);
/*
 * Within a transaction: posts the event that the context `endpoint` is back. Returns 0; or
 * -ENOSPC: the ring is full and the spill has no room within its bound, so the report stays due.
 */
int session_report_back(struct engine *e, uint32_t session, uint64_t endpoint);
/* Within a transaction: notes that an event about the peer of a session's flow, or inflow, is due.
 * session_release_spill posts the event. `due`: as in struct flow and struct inflow. */
void session_owe_flow(struct engine *e, uint32_t flow, int32_t due);
void session_owe_inflow(struct engine *e, uint32_t inflow, int32_t due);
/* Within a transaction: drops the report that is due, by a flow or an inflow of the session. */
void session_drop_due(struct engine *e, uint32_t session, int32_t *due);
/* Whether a client has a handler at this index; reads the client's word once. */
bool session_handles(const struct engine *e, uint32_t session, uint32_t index);
/* Called with an empty spill: posts the reports about peers that are due, and GO to the flows that
 * were stopped. A second call does no harm. */
void session_release_spill(struct engine *e, uint32_t session);
/* Called with events in the spill: posts GO only to flows whose refused message waits for its
 * handlers, not for the spill (offload_awaits), and whose client is not in line for a turn. */
void session_release_handlers(struct engine *e, uint32_t session);
/* Moves spilled events into the ring. Returns their number. */
int session_drain_spill(struct engine *e, uint32_t session);
/* The session has a count to publish; its client is woken only if it sleeps for counts. */
static inline void session_counted(struct engine *e, uint32_t session)
{
    struct session_live *live = &e->session_live[session];

    if (live->dirty)
        return;
    live->dirty = true;
    e->dirty[e->dirty_count++] = session;
}
/* Records of the session were taken; its client is woken only if it may wait for room. */
static inline void session_took(struct engine *e, uint32_t session)
{
    e->session_live[session].taken = true;
    session_counted(e, session);
}
/* The session has something to publish, for which a client may sleep. */
static inline void session_dirty(struct engine *e, uint32_t session)
{
    e->session_live[session].loud = true;
    session_counted(e, session);
}
/* Within a transaction: `count` operations of peers have changed the client's memory. */
static inline void session_arrived(struct engine *e, uint32_t session, uint64_t count)
{
    struct session *s = &e->sessions[session];

    if (count == 0)
        return;
    set64(e, &s->arrived, s->arrived + count);
    session_counted(e, session);
}
/* Shows the session's counts and events that have been committed since the last call. */
void session_show(struct engine *e, uint32_t session);
/* session_show for all sessions that have something to show. */
void sessions_show(struct engine *e);
/* After sessions_show: shows the counts of ended operations, and wakes the client if it sleeps. */
void session_publish(struct engine *e, uint32_t session);
/* Sets up the rings of a session over its mapping, at the arena's indices. */
void session_views(struct engine *e, uint32_t session, void *base);
/* Shows the client the processor of this thread (engine_set_processor). The session is attached. */
void session_show_processor(struct engine *e, uint32_t session);
/* Adds the session's counts since this process attached the session to the sums of all. */
void session_add_totals(const struct session *s, const struct session_live *live,
                        struct engine_totals_view *to);

static inline int session_reserve(struct engine *e, uint32_t inflow, uint32_t size, uint32_t count,
                                  struct event_room *room)
{
    return session_reserve_for(e, e->inflows[inflow].session, inflow, size, count, room);
}

/* From now on, binds of peers find the session by its rank and context. */
static inline void session_enters(struct engine *e, uint32_t session)
{
    const struct session *s = &e->sessions[session];

    chain_add_key(&e->sessions_of_endpoint, chain_hash(s->context, e->clients[s->client].rank),
                  session);
}

#endif
