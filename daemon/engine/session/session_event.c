/* Events: local and remote ones into their rings, and the spill. Thread: the progress thread. */
#include "daemon/engine/offload/find.h"
#include "daemon/engine/session/session.h"

#include <errno.h>
#include <string.h>
#include "daemon/engine/session/quarantine.h"
#include "daemon/engine/session/direct.h"
#include "shm_ring/fault.h"
#include "daemon/engine/ledger/notes.h"
#include "daemon/engine/ops/op.h"
#include "daemon/engine/kinds/batch_format.h"
#include "daemon/engine/session/quota.h"
#include "daemon/engine/peer/remote.h"
#include "daemon/engine/state/table.h"

void session_end_silent(struct engine *e, uint32_t session, uint32_t count, uint64_t bytes)
{
    struct session *s = &e->sessions[session];

    set64(e, &s->reserved, s->reserved - bytes);
    set64(e, &s->ended, s->ended + count);
    set64(e, &s->released, s->released + bytes);
    session_dirty(e, session);
}

/* Writes one local event of an operation; the caller notes the ring's tail. Returns 0, or what is
 * wrong with the ring. */
static int post_local(struct engine *e, uint32_t flow, uint64_t slot, const struct op *op,
                      const struct op_part *part)
{
    struct flow *f = &e->flows[flow];
    struct session_live *live = &e->session_live[owner_handle(f->owner)];
    uint32_t size = event_bytes(op->lid_len);
    struct event_record *event;
    int r = ring_reserve(&live->local, size, (void **)&event);

    if (r < 0)
        return r;
    *event = (struct event_record){
        .size = size,
        .kind = EVENT_LOCAL,
        .op = event_op(op_shown_kind(op), op->flags),
        .id_len = op->lid_len,
        .status = part->status,
        .origin = e->config.self,
        .peer = f->endpoint,
        .bytes = part->bytes,
        .sequence = slot,
        .id = part->lid,
    };
    if (op->lid_len > 0) {
        op_bytes(e, f, slot, op, 0, op->lid_len, event + 1);
        memset((uint8_t *)(event + 1) + op->lid_len, 0, abi_pad8(op->lid_len) - op->lid_len);
    }
    FAULT(LOCAL_EVENT);
    ring_advance(&live->local, size);
    return 0;
}

/* Posts all local events of an operation. */
static int post_locals(struct engine *e, uint32_t flow, uint64_t slot, const struct op *op)
{
    struct session *s = &e->sessions[owner_handle(e->flows[flow].owner)];
    const struct op_kind *kind = op_row(op);
    bool silent = op->flags & SUBMIT_NO_LCE; /* only the operations of the batch that have failed
                                              * have events */
    struct op_part part = {.lid = op->lid, .status = op->status};
    uint32_t at = 0;
    int r = 0;

    if (!kind->part) {
        part.bytes = kind->shown ? kind->shown(op) : op->status == 0 ? op->length : 0;
        return post_local(e, flow, slot, op, &part);
    }
    for (uint32_t i = 0; i < op_count(op) && r == 0; i++) {
        at = kind->part(op, i, at, &part);
        if (silent && part.status == 0)
            set64(e, &s->released, s->released + event_bytes(0));
        else
            r = post_local(e, flow, slot, op, &part);
    }
    return r;
}

/* How many of an operation's parts have failed. */
static uint32_t failed_of(const struct op *op)
{
    const struct op_kind *kind = op_row(op);
    struct op_part part = {0};
    uint32_t at = 0, failed = 0;

    if (op->status == 0 || !kind->part)
        return op->status < 0;
    for (uint32_t i = 0; i < op_count(op); i++) {
        at = kind->part(op, i, at, &part);
        failed += part.status < 0;
    }
    return failed;
}

/* Counts an end for session_counts: as left out, where the library counts it or the operation is a
 * flush; else as failed, if it is. */
static void count_end(struct engine *e, struct session *s, const struct op *op, uint32_t failed)
{
    if (op->kind == SUBMIT_FLUSH || op->flags & (SUBMIT_SLOT | SUBMIT_MORE))
        set64(e, &s->uncounted, s->uncounted + op_count(op));
    else if (failed > 0)
        set64(e, &s->failed, s->failed + failed);
}

void session_report_local(struct engine *e, uint32_t flow, uint64_t slot, const struct op *op)
{
    struct flow *f = &e->flows[flow];
    struct session *s = &e->sessions[owner_handle(f->owner)];
    struct session_live *live = &e->session_live[owner_handle(f->owner)];
    uint32_t failed = failed_of(op);
    int r = 0;

    live->errors += failed;
    count_end(e, s, op, failed);
    set64(e, &s->reserved, s->reserved - op->reserve);
    set64(e, &s->ended, s->ended + op_count(op));
    if (live->attached) {
        r = post_locals(e, flow, slot, op);
        set64(e, &s->local_tail, live->local.tail);
    }
    if (r < 0)
        client_quarantine(e, s->client, QUARANTINE_EVENT_INDEX);
    session_dirty(e, owner_handle(f->owner));
}

/* Bytes [from, from + n) of the event. */
static void draft_copy(const struct event_draft *d, uint32_t from, uint32_t n, uint8_t *to)
{
    uint32_t end = d->front + d->rest_len;

    while (n > 0) {
        uint32_t until = from < d->front ? d->front : from < end ? end : from + n;
        uint32_t take = n < until - from ? n : until - from;

        if (from < d->front)
            memcpy(to, (const uint8_t *)d + from, take);
        else if (from < end)
            memcpy(to, d->rest + (from - d->front), take);
        else
            memset(to, 0, take);
        to += take;
        from += take;
        n -= take;
    }
}

/* Entries of the spill that an event of this many bytes takes. */
static uint32_t spill_span(uint32_t size)
{
    return (size + (1u << SPILL_SHIFT) - 1) >> SPILL_SHIFT;
}

/* Within a transaction: takes room for `count` events in the spill, up to `most` bytes in all, and
 * stops the inflow, if there is one. Returns 0, -ENOSPC, -ENOBUFS. */
static int spill_room(struct engine *e, uint32_t session, uint32_t inflow, uint32_t size,
                      uint32_t count, uint64_t most)
{
    struct inflow *in = inflow == NONE ? NULL : &e->inflows[inflow];
    struct session *s = &e->sessions[session];
    uint32_t bytes = size * count;
    bool stops = in && in->state == INFLOW_OPEN;

    /* Where many of the client's notes wait, no STOP is added: a REFUSE holds back the ACK, and
     * so the origin's credit. */
    if (s->spill_bytes + bytes > most ||
        (stops && e->client_notes[s->client] >= NOTES_CLIENT_MAX) ||
        quota_push_spill(e, session, spill_span(size) * count) < 0)
        return -ENOSPC;
    if (stops) {
        if (notes_push_flow(e, in->peer, s->client, WIRE_STOP, in->origin_flow, 0, 0) < 0)
            return -ENOBUFS;
        inflow_hold(e, inflow, INFLOW_STOPPED);
    }
    set64(e, &s->spill_bytes, s->spill_bytes + bytes);
    return 0;
}

/* Whether the remote ring has this many bytes free: 0, -EAGAIN, or what is wrong with it. */
static int ring_bytes_free(struct session_live *live, uint64_t need)
{
    int64_t used = (int64_t)(live->remote.tail - live->remote.head_seen);

    if (live->remote.size - (uint64_t)used < need)
        used = ring_used(&live->remote);
    return used < 0 ? (int)used : live->remote.size - (uint64_t)used >= need ? 0 : -EAGAIN;
}

/* Whether the ring has room for this many events; reads the client's index once at most. */
static int ring_room(struct session_live *live, uint32_t size, uint32_t count, void **at)
{
    if (count == 1)
        return ring_reserve(&live->remote, size, at);
    return ring_bytes_free(live,
                           (uint64_t)size * (count + 1)); /* padding is smaller than an event */
}

/* Whether the client takes events. */
static inline bool may_report(const struct engine *e, uint32_t session)
{
    return e->session_live[session].attached &&
           e->clients[e->sessions[session].client].quarantine == QUARANTINE_NONE;
}

/* As session_reserve_for, with this bound for the spill. */
static inline int reserve(struct engine *e, uint32_t session, uint32_t inflow, uint32_t size,
                          uint32_t count, uint64_t spill_max, struct event_room *room)
{
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    int r;

    *room = (struct event_room){EVENT_DROPPED, count, s->spill.tail, NULL};
    if (!may_report(e, session))
        return 0;
    r = s->spill_bytes > 0 ? -EAGAIN : ring_room(live, size, count, &room->at);
    if (r == -EAGAIN) {
        room->where = EVENT_SPILLED;
        return spill_room(e, session, inflow, size, count, spill_max);
    }
    if (r == 0)
        room->where = EVENT_IN_RING;
    else
        client_quarantine(e, s->client, QUARANTINE_EVENT_INDEX);
    return 0;
}

int session_reserve_for(struct engine *e, uint32_t session, uint32_t inflow, uint32_t size,
                        uint32_t count, struct event_room *room)
{
    return reserve(e, session, inflow, size, count, e->config.spill_max, room);
}

int session_reserve_once(struct engine *e, uint32_t session, uint32_t size, struct event_room *room)
{
    return reserve(e, session, NONE, size, 1, UINT64_MAX, room);
}

int session_try_more(struct engine *e, uint32_t session, uint32_t inflow, uint32_t size,
                     uint32_t held)
{
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];

    if (!may_report(e, session))
        return 0;
    if (s->spill_bytes == 0 && ring_bytes_free(live, UINT64_C(2) * (size + held)) == 0)
        return 0;
    return spill_room(e, session, inflow, size, 1, e->config.spill_max);
}

/* Within a transaction: the events have been written where room was reserved. */
static inline void delivered(struct engine *e, uint32_t session, const struct event_room *room,
                             uint64_t bytes)
{
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];

    if (room->where == EVENT_DROPPED)
        return;
    set64(e, &s->delivered, s->delivered + room->count);
    session_dirty(e, session);
    if (room->where == EVENT_IN_RING) {
        set64(e, &s->remote_tail, live->remote.tail);
        return;
    }
    if (s->spill_bytes == bytes)
        e->spilling++; /* its first spilled events */
    direct_show_spill(live, true);
    live->spilled += room->count;
}

void session_deliver(struct engine *e, uint32_t session, const struct event_room *room,
                     const struct event_draft *d)
{
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    uint32_t size = d->head.size, entry = 1u << SPILL_SHIFT;

    if (room->where == EVENT_IN_RING) {
        draft_copy(d, 0, size, room->at);
        FAULT(REMOTE_EVENT);
        ring_advance(&live->remote, size);
    }
    for (uint32_t i = 0; room->where == EVENT_SPILLED && i < spill_span(size); i++)
        draft_copy(d, i * entry, size - i * entry < entry ? size - i * entry : entry,
                   queue_at(&e->pool, &s->spill, room->slot + i));
    delivered(e, session, room, size);
}

void session_deliver_batch(struct engine *e, uint32_t inflow, const struct event_room *room,
                           const struct event_record *like, const uint8_t *block)
{
    uint32_t session = e->inflows[inflow].session;
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    uint32_t size = event_bytes(0), at = 0, length;
    uint32_t count = room->where == EVENT_DROPPED ? 0 : room->count;
    bool spilled = room->where == EVENT_SPILLED;
    uint64_t offset;

    static_assert(sizeof(struct event_record) <= 1u << SPILL_SHIFT, "one entry an event");
    for (uint32_t i = 0; i < count; i++) {
        struct event_record *event;

        if (spilled)
            event = queue_at(&e->pool, &s->spill, room->slot + i);
        else if (ring_reserve(&live->remote, size, (void **)&event) < 0)
            break; /* cannot happen: there is room for each */
        *event = *like;
        at = batch_step(block, at, &event->id, &offset, &length);
        event->bytes = length;
        if (!spilled)
            ring_advance(&live->remote, size);
    }
    delivered(e, session, room, (uint64_t)size * room->count);
}

void session_report_reply(struct engine *e, uint32_t session, const struct event_draft *d)
{
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    void *event;

    if (!live->attached)
        return;
    if (ring_reserve(&live->reply_event, d->head.size, &event) < 0) {
        client_quarantine(e, s->client, QUARANTINE_EVENT_INDEX);
        return;
    }
    draft_copy(d, 0, d->head.size, event);
    FAULT(REPLY_EVENT);
    ring_advance(&live->reply_event, d->head.size);
    set64(e, &s->reply_tail, live->reply_event.tail);
    session_dirty(e, session);
}

/* Posts an event about a peer, into the spill where the ring is full: 0, or -ENOSPC. */
static int report_peer(struct engine *e, uint32_t session, const struct event_draft *d,
                       uint64_t spill_max)
{
    struct event_room room;
    int r = reserve(e, session, NONE, d->head.size, 1, spill_max, &room);

    if (r == 0)
        session_deliver(e, session, &room, d);
    return r;
}

static uint64_t origin_bit(uint64_t endpoint)
{
    return UINT64_C(1) << (endpoint * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}

int session_report_end(struct engine *e, uint32_t session, uint64_t endpoint, int32_t end)
{
    struct session *s = &e->sessions[session];
    const struct event_draft d = {
        .head =
            {
                .size = event_bytes(0),
                .kind = EVENT_PEER,
                .op = PEER_ENDED,
                .status = end == WIRE_ENDED ? 0 : -EHOSTDOWN,
                .origin = e->config.self,
                .peer = endpoint,
            },
        .front = event_bytes(0),
    };

    if (!may_report(e, session))
        return 0;
    set64(e, &s->ended_peers, s->ended_peers | origin_bit(endpoint));
    return report_peer(e, session, &d, UINT64_MAX);
}

bool session_knows_end(const struct engine *e, uint32_t session, uint64_t endpoint)
{
    return e->sessions[session].ended_peers & origin_bit(endpoint);
}

int session_report_back(struct engine *e, uint32_t session, uint64_t endpoint)
{
    const struct event_draft d = {
        .head =
            {
                .size = event_bytes(0),
                .kind = EVENT_PEER,
                .op = PEER_BACK,
                .origin = e->config.self,
                .peer = endpoint,
            },
        .front = event_bytes(0),
    };

    return report_peer(e, session, &d, e->config.spill_max);
}

bool session_handles(const struct engine *e, uint32_t session, uint32_t index)
{
    const struct session_live *live = &e->session_live[session];

    return live->attached && index < SESSION_HANDLERS &&
           atomic_load_explicit(&live->shared->handlers[index / 64], memory_order_relaxed) >>
                   (index % 64) &
               1;
}

static bool awaits_handlers(const struct inflow *in)
{
    return in->state == INFLOW_REFUSED && offload_awaits(in, in->refused);
}

/* Posts GO to the inflow's origin. False: there is no room for the note, and the sweep tries
 * again. */
static bool let_go_on(struct engine *e, uint32_t session, struct inflow *in)
{
    if (awaits_handlers(in) && !offload_returns(e, in))
        return true;
    if (notes_push_flow(e, in->peer, e->sessions[session].client, WIRE_GO, in->origin_flow, 0, 0) <
        0) {
        arena_rollback(&e->arena);
        table_leaves(e, TABLE_SESSIONS, session);
        return false;
    }
    if (in->state == INFLOW_STOPPED)
        set32(e, &in->state, INFLOW_OPEN);
    commit(e);
    return true;
}

/* Within a transaction: counts one more report that is due. */
static void owe(struct engine *e, uint32_t session)
{
    struct session *s = &e->sessions[session];

    set32(e, &s->ends_due, s->ends_due + 1);
    if (s->spill_bytes == 0)
        table_leaves(e, TABLE_SESSIONS, session); /* no spill will drain: the sweep posts the
                                                   * report */
}

void session_owe_flow(struct engine *e, uint32_t flow, int32_t due)
{
    uint32_t session = owner_as_session(e->flows[flow].owner);

    set32(e, (uint32_t *)&e->flows[flow].due, (uint32_t)due);
    chain_add(&e->flows_due, due_home(session, due), flow);
    owe(e, session);
}

void session_owe_inflow(struct engine *e, uint32_t inflow, int32_t due)
{
    struct inflow *in = &e->inflows[inflow];

    set32(e, (uint32_t *)&in->due, (uint32_t)due);
    chain_add(&e->inflows_due, due_home(in->session, due), inflow);
    owe(e, in->session);
}

void session_drop_due(struct engine *e, uint32_t session, int32_t *due)
{
    struct session *s = &e->sessions[session];

    set32(e, (uint32_t *)due, 0);
    set32(e, &s->ends_due, s->ends_due - 1);
}

/* Posts the report that is due about the peer of a flow or an inflow. Returns whether there was
 * room. */
static bool post_due(struct engine *e, uint32_t session, uint64_t endpoint, int32_t *due)
{
    int r = *due == DUE_BACK ? session_report_back(e, session, endpoint)
                             : session_report_end(e, session, endpoint, *due);

    if (r < 0) {
        arena_rollback(&e->arena);
        if (e->sessions[session].spill_bytes == 0)
            table_leaves(e, TABLE_SESSIONS, session);
        return false;
    }
    session_drop_due(e, session, due);
    return true;
}

/* Bounds for one step: inflows that may continue, and reports about peers. Later steps do the
 * rest. */
#define RELEASED_MOST 256u

/* Posts the reports that are due about peers of flows, in this home. Returns whether those were
 * all. */
static bool release_flows(struct engine *e, uint32_t session, uint32_t home, uint32_t *left)
{
    struct chain *due = &e->flows_due;
    uint32_t i;

    for (; (i = chain_first(due, home)) != NONE && *left > 0; --*left) {
        struct flow *f = &e->flows[i];

        if (f->state != FLOW_FREE && owner_as_session(f->owner) == session && f->due != 0 &&
            !post_due(e, session, f->endpoint, &f->due))
            return false;
        commit(e);
        chain_remove(due, i);
    }
    return i == NONE;
}

/* Posts the reports that are due about origins of inflows, in this home. Returns whether those were
 * all. */
static bool release_inflows(struct engine *e, uint32_t session, uint32_t home, uint32_t *left)
{
    struct chain *due = &e->inflows_due;
    uint32_t i;

    for (; (i = chain_first(due, home)) != NONE && *left > 0; --*left) {
        struct inflow *in = &e->inflows[i];

        chain_remove(due, i);
        if (in->state == INFLOW_FREE || in->session != session || in->due == 0)
            continue;
        if (!post_due(e, session, in->origin, &in->due)) {
            chain_add(due, home, i);
            return false;
        }
        if (in->state == INFLOW_PARTING && in->owed == 0)
            inflow_free(e, i);
        commit(e);
    }
    return i == NONE;
}

/* Posts all ends before the reports that peers are back: a peer is back after its end. */
static void release_ends(struct engine *e, uint32_t session)
{
    uint32_t ends = due_home(session, WIRE_ENDED), backs = due_home(session, DUE_BACK);
    uint32_t left = RELEASED_MOST;

    if (release_flows(e, session, ends, &left) && release_inflows(e, session, ends, &left) &&
        release_flows(e, session, backs, &left))
        (void)release_inflows(e, session, backs, &left);
    if (left == 0)
        table_leaves(e, TABLE_SESSIONS, session);
}

/* Posts GO also to flows in line for a turn of handlers: an earlier STOP may arrive after an
 * earlier GO. */
void session_release_spill(struct engine *e, uint32_t session)
{
    struct chain *held = &e->inflows_held;
    uint32_t i, n = 0;

    e->session_live[session].gets_wait = false;
    if (e->sessions[session].ends_due > 0)
        release_ends(e, session);
    while ((i = chain_first(held, session)) != NONE) {
        struct inflow *in = &e->inflows[i];

        if (n++ == RELEASED_MOST) {
            table_leaves(e, TABLE_SESSIONS, session);
            return;
        }
        if (in->session == session && inflow_is_held(in) && !let_go_on(e, session, in))
            return;
        chain_remove(held, i);
    }
}

void session_release_handlers(struct engine *e, uint32_t session)
{
    const struct chain *held = &e->inflows_held;

    for (uint32_t i = chain_first(held, session); i != NONE; i = chain_next(held, i)) {
        struct inflow *in = &e->inflows[i];

        if (in->session == session && awaits_handlers(in) && !offload_in_line(e, in) &&
            !let_go_on(e, session, in))
            return;
    }
}

/* Spilled events that move into their ring in one step. */
#define DRAINED_MOST 256

int session_drain_spill(struct engine *e, uint32_t session)
{
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    uint32_t entry = 1u << SPILL_SHIFT;
    int moved = 0;

    while (s->spill_bytes > 0 && live->attached && moved < DRAINED_MOST) {
        uint32_t size = ((struct event_record *)queue_at(&e->pool, &s->spill, s->spill.head))->size;
        uint32_t span = spill_span(size);
        uint8_t *event;
        int r = ring_reserve(&live->remote, size, (void **)&event);

        if (r == -EAGAIN)
            break;
        if (r < 0) {
            client_quarantine(e, s->client, QUARANTINE_EVENT_INDEX);
            break;
        }
        for (uint32_t i = 0; i < span; i++)
            memcpy(event + i * entry, queue_at(&e->pool, &s->spill, s->spill.head + i),
                   size - i * entry < entry ? size - i * entry : entry);
        ring_advance(&live->remote, size);
        set64(e, &s->remote_tail, live->remote.tail);
        set64(e, &s->spill_bytes, s->spill_bytes - size);
        queue_pop(&e->pool, &s->spill, span);
        commit(e);
        session_dirty(e, session);
        moved++;
        if (s->spill_bytes == 0) {
            e->spilling--;
            session_release_spill(e, session);
        }
    }
    return moved;
}
