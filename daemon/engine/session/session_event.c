/* Events: local and remote ones into their rings, and the spill. Thread: the progress thread. */
#include "daemon/engine/session/session.h"

#include <string.h>
#include "daemon/engine/session/quarantine.h"
#include "daemon/engine/session/direct.h"
#include "shm_ring/fault.h"
#include "daemon/engine/ledger/notes.h"
#include "daemon/engine/ops/op.h"
#include "daemon/engine/kinds/batch_format.h"
#include "daemon/engine/session/quota.h"
#include "daemon/engine/state/table.h"

void session_end_silent(struct engine *e, uint32_t session, uint32_t count, uint64_t bytes)
{
    struct session *s = &e->sessions[session];

    set64(e, &s->reserved, s->reserved - bytes);
    set64(e, &s->ended, s->ended + count);
    set64(e, &s->released, s->released + bytes);
    session_dirty(e, session);
}

/* One local event of an operation; the caller notes the ring's tail. 0, or what is wrong with it.
 */
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
        op_bytes(e, f, slot, 0, op->lid_len, event + 1);
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
    bool silent = op->flags & SUBMIT_NO_LCE; /* others of the batch have failed */
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

void session_report_local(struct engine *e, uint32_t flow, uint64_t slot, const struct op *op)
{
    struct flow *f = &e->flows[flow];
    struct session *s = &e->sessions[owner_handle(f->owner)];
    struct session_live *live = &e->session_live[owner_handle(f->owner)];
    int r = 0;

    if (op->status < 0)
        live->errors += op_count(op);
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

/* Entries of the spill that an event of so many bytes takes. */
static uint32_t spill_span(uint32_t size)
{
    return (size + (1u << SPILL_SHIFT) - 1) >> SPILL_SHIFT;
}

/* Within a transaction: room for `count` events in the spill; the flow is stopped. 0, -ENOSPC,
 * -ENOBUFS. */
static int spill_room(struct engine *e, uint32_t inflow, uint32_t size, uint32_t count)
{
    struct inflow *in = &e->inflows[inflow];
    struct session *s = &e->sessions[in->session];
    uint32_t bytes = size * count;

    /* Notes that wait are held against their client: a REFUSE holds the origin's credit, too. */
    if (s->spill_bytes + bytes > e->config.spill_max ||
        (in->state == INFLOW_OPEN && e->client_notes[s->client] >= NOTES_CLIENT_MAX) ||
        quota_push_spill(e, in->session, spill_span(size) * count) < 0)
        return -ENOSPC;
    if (in->state == INFLOW_OPEN) {
        if (notes_push_flow(e, in->peer, s->client, WIRE_STOP, in->origin_flow, 0, 0) < 0)
            return -ENOBUFS;
        set32(e, &in->state, INFLOW_STOPPED);
    }
    set64(e, &s->spill_bytes, s->spill_bytes + bytes);
    return 0;
}

/* Whether the ring has room for so many events; a look at the client's index at most. */
static int ring_room(struct session_live *live, uint32_t size, uint32_t count, void **at)
{
    int64_t used;
    uint64_t need;

    if (count == 1)
        return ring_reserve(&live->remote, size, at);
    need = (uint64_t)size * (count + 1); /* padding takes less than an event */
    used = (int64_t)(live->remote.tail - live->remote.head_seen);
    if (live->remote.size - (uint64_t)used < need)
        used = ring_used(&live->remote);
    return used < 0 ? (int)used : live->remote.size - (uint64_t)used >= need ? 0 : -EAGAIN;
}

int session_reserve(struct engine *e, uint32_t inflow, uint32_t size, uint32_t count,
                    struct event_room *room)
{
    uint32_t session = e->inflows[inflow].session;
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    int r;

    *room = (struct event_room){EVENT_DROPPED, count, s->spill.tail, NULL};
    if (!live->attached || e->clients[s->client].quarantine != QUARANTINE_NONE)
        return 0;
    r = s->spill_bytes > 0 ? -EAGAIN : ring_room(live, size, count, &room->at);
    if (r == -EAGAIN) {
        room->where = EVENT_SPILLED;
        return spill_room(e, inflow, size, count);
    }
    if (r == 0)
        room->where = EVENT_IN_RING;
    else
        client_quarantine(e, s->client, QUARANTINE_EVENT_INDEX);
    return 0;
}

/* Within a transaction: the events stand where there was room for them. */
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
        e->spilling++; /* the first */
    direct_show_spill(live, true);
    live->spilled += room->count;
}

void session_deliver(struct engine *e, uint32_t inflow, const struct event_room *room,
                     const struct event_draft *d)
{
    uint32_t session = e->inflows[inflow].session;
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
            break; /* there was room for it */
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

bool session_handles(const struct engine *e, uint32_t session, uint32_t index)
{
    const struct session_live *live = &e->session_live[session];

    return live->attached && index < SESSION_HANDLERS &&
           atomic_load_explicit(&live->shared->handlers[index / 64], memory_order_relaxed) >>
                   (index % 64) &
               1;
}

void session_release_spill(struct engine *e, uint32_t session)
{
    for (uint32_t i = e->sessions[session].first_inflow; i != NONE; i = e->inflows[i].next) {
        struct inflow *in = &e->inflows[i];

        if (in->state != INFLOW_STOPPED && in->state != INFLOW_REFUSED)
            continue;
        if (notes_push_flow(e, in->peer, e->sessions[session].client, WIRE_GO, in->origin_flow, 0,
                            0) < 0) {
            arena_rollback(&e->arena);
            table_leaves(e, TABLE_SESSIONS, session); /* the sweep tries again */
            return;
        }
        if (in->state == INFLOW_STOPPED)
            set32(e, &in->state, INFLOW_OPEN);
        commit(e);
    }
}

/* Spilled events of a session that move into its ring in one step. */
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
