/* Events: local and remote ones into their rings, and the spill. Thread: the progress thread. */
#include "session.h"

#include <string.h>
#include "client.h"
#include "direct.h"
#include "notes.h"
#include "op.h"

void session_tell_local(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    struct flow *f = &e->flows[flow];
    struct session *s = &e->sessions[f->session];
    struct session_live *live = &e->session_live[f->session];
    struct event_record *event;
    int r = 0;

    if (op->status < 0)
        live->errors++;
    set8(e, &op->ended, 1);
    set64(e, &s->reserved, s->reserved - op->reserve);
    set64(e, &s->ended, s->ended + 1);
    if (op->status == 0 && op->flags & SUBMIT_NO_LCE) {
        set64(e, &s->released, s->released + op->reserve);
    } else if (live->attached) {
        r = ring_reserve(&live->local, op->reserve, (void **)&event);
        if (r == 0) {
            *event = (struct event_record){
                .size = op->reserve,
                .kind = EVENT_LOCAL,
                .op = op->kind,
                .id_len = op->lid_len,
                .status = op->status,
                .origin = e->config.node,
                .peer = f->peer,
                .bytes = op->status == 0 ? op->length : 0,
                .sequence = slot,
                .id = op->lid,
            };
            if (op->lid_len > 0) {
                op_bytes(e, f, slot, 0, op->lid_len, event + 1);
                memset((uint8_t *)(event + 1) + op->lid_len, 0,
                       abi_pad8(op->lid_len) - op->lid_len);
            }
            ring_advance(&live->local, op->reserve);
            set64(e, &s->local_tail, live->local.tail);
        }
    }
    if (r < 0)
        client_quarantine(e, s->client, QUARANTINE_EVENT_INDEX);
    session_dirty(e, f->session);
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

static int spill_event(struct engine *e, uint32_t inflow, const struct event_draft *d)
{
    struct inflow *in = &e->inflows[inflow];
    struct session *s = &e->sessions[in->session];
    uint32_t size = d->head.size;
    uint32_t entry = 1u << SPILL_SHIFT;
    uint32_t span = (size + entry - 1) / entry;
    uint64_t slot = s->spill.tail;

    if (s->spill_bytes + size > e->config.spill_max ||
        queue_push(&e->pool, &s->spill, span, e->chunks_keep) < 0)
        return -ENOSPC;
    if (in->state == INFLOW_OPEN) {
        if (notes_push_flow(e, in->node, WIRE_STOP, in->origin_flow, 0, 0) < 0)
            return -ENOBUFS;
        set32(e, &in->state, INFLOW_STOPPED);
    }
    for (uint32_t i = 0; i < span; i++)
        draft_copy(d, i * entry, size - i * entry < entry ? size - i * entry : entry,
                   queue_at(&e->pool, &s->spill, slot + i));
    if (s->spill_bytes == 0)
        e->spilling++;
    direct_show_spill(&e->session_live[in->session], true);
    session_dirty(e, in->session);
    set64(e, &s->spill_bytes, s->spill_bytes + size);
    set64(e, &s->delivered, s->delivered + 1);
    e->session_live[in->session].spilled++;
    return 0;
}

int session_tell_remote(struct engine *e, uint32_t inflow, const struct event_draft *d)
{
    uint32_t session = e->inflows[inflow].session;
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    void *event;
    int r;

    if (!live->attached || e->clients[s->client].quarantine != QUARANTINE_NONE)
        return 0;
    if (s->spill_bytes > 0)
        return spill_event(e, inflow, d);
    r = ring_reserve(&live->remote, d->head.size, &event);
    if (r == -EAGAIN)
        return spill_event(e, inflow, d);
    if (r < 0) {
        client_quarantine(e, s->client, QUARANTINE_EVENT_INDEX);
        return 0;
    }
    draft_copy(d, 0, d->head.size, event);
    ring_advance(&live->remote, d->head.size);
    set64(e, &s->remote_tail, live->remote.tail);
    set64(e, &s->delivered, s->delivered + 1);
    session_dirty(e, session);
    return 0;
}

void session_tell_reply(struct engine *e, uint32_t session, const struct event_draft *d)
{
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    void *event;

    if (!live->attached)
        return;
    if (ring_reserve(&live->reply, d->head.size, &event) < 0) {
        client_quarantine(e, s->client, QUARANTINE_EVENT_INDEX);
        return;
    }
    draft_copy(d, 0, d->head.size, event);
    ring_advance(&live->reply, d->head.size);
    set64(e, &s->reply_tail, live->reply.tail);
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
        if (notes_push_flow(e, in->node, WIRE_GO, in->origin_flow, 0, 0) < 0) {
            arena_rollback(&e->arena);
            e->sweep = true; /* which calls us again */
            return;
        }
        if (in->state == INFLOW_STOPPED)
            set32(e, &in->state, INFLOW_OPEN);
        commit(e);
    }
}

int session_drain_spill(struct engine *e, uint32_t session)
{
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    uint32_t entry = 1u << SPILL_SHIFT;
    int moved = 0;

    while (s->spill_bytes > 0 && live->attached) {
        uint32_t size = ((struct event_record *)queue_at(&e->pool, &s->spill, s->spill.head))->size;
        uint32_t span = (size + entry - 1) / entry;
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
