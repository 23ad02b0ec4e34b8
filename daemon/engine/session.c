/* Sessions: submissions in, events out. Thread: the progress thread. */
#include "session.h"

#include <string.h>
#include "client.h"
#include "doorbell.h"
#include "flow.h"
#include "notes.h"
#include "op.h"

static void session_dirty(struct engine *e, uint32_t session)
{
    struct session_live *live = &e->session_live[session];

    if (live->dirty)
        return;
    live->dirty = true;
    e->dirty[e->dirty_count++] = session;
}

/* What no honest library submits: 0 or the reason. */
static enum quarantine_reason record_check(const struct engine *e, uint32_t session,
                                           const struct submit_record *r)
{
    const struct remote *remote;
    uint64_t size = sizeof(*r) + abi_pad8(r->lid_len) + abi_pad8(r->rid_len);

    if (r->size < sizeof(*r) || !op_kind_of(r->kind) || r->flags & ~SUBMIT_FLAGS_ALL ||
        r->lid_len > SESSION_ID_MAX || r->rid_len > SESSION_ID_MAX)
        return QUARANTINE_RECORD;
    if (r->flags & SUBMIT_INLINE) {
        if (r->length == 0 || r->length > e->config.packed_max)
            return QUARANTINE_RECORD;
        size += abi_pad8((uint32_t)r->length);
    }
    if (r->size != size)
        return QUARANTINE_RECORD;
    if (r->reserve != event_bytes(r->lid_len))
        return QUARANTINE_RESERVE;
    if (r->remote >= e->config.remotes_max)
        return QUARANTINE_REMOTE;
    remote = &e->remotes[r->remote];
    if (remote->session != session || remote->unbound ||
        (remote->state != REMOTE_READY && remote->state != REMOTE_STALE &&
         remote->state != REMOTE_REVOKED))
        return QUARANTINE_REMOTE;
    return QUARANTINE_NONE;
}

/* Local event space for one more operation: -EPROTO when the client has passed what it may hold. */
static int local_space(struct engine *e, uint32_t session, uint32_t need)
{
    const struct session *s = &e->sessions[session];
    int64_t used = ring_used(&e->session_live[session].local);

    if (used < 0)
        return -EPROTO;
    return (uint64_t)used + s->reserved + need > s->sizes.local - EVENT_BYTES_MAX ? -EPROTO : 0;
}

static void op_fill(struct engine *e, struct flow *f, uint64_t slot, const struct submit_record *r,
                    uint32_t span, int32_t status)
{
    struct op *op = flow_op(e, f, slot);
    const uint8_t *bytes = (const uint8_t *)(r + 1);
    uint32_t left = r->size - (uint32_t)sizeof(*r);

    *op = (struct op){
        .kind = r->kind,
        .phase = status < 0 ? OP_PLACED : OP_QUEUED,
        .flags = r->flags,
        .status = status,
        .remote = r->remote,
        .span = (uint16_t)span,
        .offset = r->offset,
        .length = r->length,
        .lid = r->lid,
        .rid = r->rid,
        .lid_len = r->lid_len,
        .rid_len = r->rid_len,
        .segment = r->segment,
        .local_offset = r->local_offset,
        .reserve = r->reserve,
        .nonce = UINT16_MAX,
        .submitted_at = e->now,
    };
    if (span == 1) {
        memcpy(op->small, bytes, left);
        return;
    }
    for (uint32_t i = 1; i < span; i++) {
        uint32_t n = left < sizeof(*op) ? left : (uint32_t)sizeof(*op);

        memcpy(flow_op(e, f, slot + i), bytes, n);
        bytes += n;
        left -= n;
    }
}

/* Takes one record that stands in e->record. 1 taken, 0 no room for it now. */
static int session_submit(struct engine *e, uint32_t session, uint32_t size)
{
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    const struct submit_record *r = (const struct submit_record *)e->record;
    enum quarantine_reason reason = record_check(e, session, r);
    uint32_t extra, span, flow;
    uint64_t slot;
    struct flow *f;
    int status;

    if (reason == QUARANTINE_NONE && local_space(e, session, r->reserve) < 0)
        reason = QUARANTINE_RESERVE;
    if (reason != QUARANTINE_NONE) {
        client_quarantine(e, s->client, reason);
        return 0;
    }
    flow = e->remotes[r->remote].flow;
    f = &e->flows[flow];
    status = op_kind_of(r->kind)->validate(e, s, r, &e->remotes[r->remote]);
    if (status == -EPROTO) {
        client_quarantine(e, s->client, QUARANTINE_SEGMENT);
        return 0;
    }
    if (f->state == FLOW_DEAD)
        status = f->error;
    if (s->submitted - s->ended >= e->config.ops_max)
        return 0;
    extra = size - (uint32_t)sizeof(*r);
    span = extra <= OP_SMALL ? 1 : 1 + (extra + sizeof(struct op) - 1) / sizeof(struct op);
    slot = f->ops.tail;
    if (queue_push(&e->pool, &f->ops, span, e->chunks_keep) < 0)
        return 0;
    op_fill(e, f, slot, r, span, status);
    ring_consume(&live->submit, size);
    set64(e, &s->submit_head, live->submit.head);
    set64(e, &s->reserved, s->reserved + r->reserve);
    set64(e, &s->submitted, s->submitted + 1);
    if (f->state == FLOW_DEAD || (status < 0 && f->staged == slot)) {
        set64(e, &f->staged, f->ops.tail);
        set64(e, &f->started, f->ops.tail);
    }
    commit(e);
    if (r->kind == SUBMIT_PUT) {
        live->put_ops++;
        live->put_bytes += r->length;
    } else if (r->kind == SUBMIT_GET) {
        live->get_ops++;
        live->get_bytes += r->length;
    }
    if (f->staged == f->ops.tail)
        flow_finish(e, flow);
    else
        flow_ready(e, flow);
    session_dirty(e, session);
    return 1;
}

int session_take(struct engine *e, uint32_t session, int budget)
{
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    int taken = 0;

    live->stalled = false;
    while (taken < budget && s->state == SESSION_OPEN && live->attached &&
           e->clients[s->client].quarantine == QUARANTINE_NONE) {
        uint32_t size;
        int r = ring_copy(&live->submit, e->record, e->record_max, &size);

        if (r == 0)
            break;
        if (r < 0) {
            client_quarantine(e, s->client,
                              r == -EMSGSIZE ? QUARANTINE_RECORD : QUARANTINE_SUBMIT_INDEX);
            break;
        }
        if (live->submit.tail_seen - live->submit.head > live->submit_high)
            live->submit_high = live->submit.tail_seen - live->submit.head;
        if (session_submit(e, session, size) == 0) {
            live->stalled = true;
            break;
        }
        taken++;
    }
    if (taken == 0)
        return 0;
    /* Padding behind the last record may have been passed over too. */
    if (s->submit_head != live->submit.head) {
        set64(e, &s->submit_head, live->submit.head);
        commit(e);
    }
    ring_release(&live->submit);
    return taken;
}

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

static void remote_event_fill(const struct engine *e, uint32_t inflow, const struct wire_op *w,
                              uint32_t size, struct event_record *event)
{
    static const uint8_t kinds[] = {[WIRE_PUT] = SUBMIT_PUT,
                                    [WIRE_PLACED] = SUBMIT_PUT,
                                    [WIRE_GOT] = SUBMIT_GET,
                                    [WIRE_NOTE] = SUBMIT_PUT};

    *event = (struct event_record){
        .size = size,
        .kind = EVENT_REMOTE,
        .op = kinds[w->head.kind],
        .id_len = w->rid_len,
        .origin = e->inflows[inflow].node,
        .peer = e->inflows[inflow].origin,
        .bytes = w->length,
        .sequence = w->sequence,
        .id = w->rid,
    };
}

static int spill_event(struct engine *e, uint32_t inflow, const struct wire_op *w, const void *rid,
                       uint32_t size)
{
    struct inflow *in = &e->inflows[inflow];
    struct session *s = &e->sessions[in->session];
    uint32_t entry = 1u << SPILL_SHIFT;
    uint32_t span = (size + entry - 1) / entry;
    uint64_t slot = s->spill.tail;
    uint8_t event[EVENT_BYTES_MAX];

    if (s->spill_bytes + size > e->config.spill_max ||
        queue_push(&e->pool, &s->spill, span, e->chunks_keep) < 0)
        return -ENOSPC;
    if (in->state == INFLOW_OPEN) {
        if (notes_push_flow(e, in->node, WIRE_STOP, in->origin_flow, 0, 0) < 0)
            return -ENOBUFS;
        set32(e, &in->state, INFLOW_STOPPED);
    }
    remote_event_fill(e, inflow, w, size, (struct event_record *)event);
    memcpy(event + sizeof(struct event_record), rid, w->rid_len);
    memset(event + sizeof(struct event_record) + w->rid_len, 0,
           size - sizeof(struct event_record) - w->rid_len);
    for (uint32_t i = 0; i < span; i++)
        memcpy(queue_at(&e->pool, &s->spill, slot + i), event + i * entry,
               size - i * entry < entry ? size - i * entry : entry);
    if (s->spill_bytes == 0)
        e->spilling++;
    set64(e, &s->spill_bytes, s->spill_bytes + size);
    set64(e, &s->delivered, s->delivered + 1);
    e->session_live[in->session].spilled++;
    return 0;
}

int session_tell_remote(struct engine *e, uint32_t inflow, const struct wire_op *w, const void *rid)
{
    uint32_t session = e->inflows[inflow].session;
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    uint32_t size = event_bytes(w->rid_len);
    struct event_record *event;
    int r;

    if (!live->attached || e->clients[s->client].quarantine != QUARANTINE_NONE)
        return 0;
    if (s->spill_bytes > 0)
        return spill_event(e, inflow, w, rid, size);
    r = ring_reserve(&live->remote, size, (void **)&event);
    if (r == -EAGAIN)
        return spill_event(e, inflow, w, rid, size);
    if (r < 0) {
        client_quarantine(e, s->client, QUARANTINE_EVENT_INDEX);
        return 0;
    }
    remote_event_fill(e, inflow, w, size, event);
    if (w->rid_len > 0) {
        memcpy(event + 1, rid, w->rid_len);
        memset((uint8_t *)(event + 1) + w->rid_len, 0, abi_pad8(w->rid_len) - w->rid_len);
    }
    ring_advance(&live->remote, size);
    set64(e, &s->remote_tail, live->remote.tail);
    set64(e, &s->delivered, s->delivered + 1);
    session_dirty(e, session);
    return 0;
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

void session_publish(struct engine *e, uint32_t session)
{
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    uint64_t local, remote;
    uint32_t mode;

    live->dirty = false;
    if (!live->attached)
        return;
    local = live->local.tail - live->local.head_seen;
    remote = live->remote.tail - live->remote.head_seen;
    live->local_high = local > live->local_high ? local : live->local_high;
    live->remote_high = remote > live->remote_high ? remote : live->remote_high;
    atomic_store_explicit(&live->shared->released, s->released, memory_order_relaxed);
    /* Padding before an event that found no room is published with what stands before it. */
    if (s->local_tail != live->local.tail || s->remote_tail != live->remote.tail) {
        set64(e, &s->local_tail, live->local.tail);
        set64(e, &s->remote_tail, live->remote.tail);
        commit(e);
    }
    ring_publish(&live->local);
    ring_publish(&live->remote);
    atomic_store_explicit(&live->shared->ended, s->ended, memory_order_release);
    mode = doorbell_ring(&live->shared->event_bell);
    if (mode != DOORBELL_AWAKE)
        e->host->wake(e->host->context, session, mode);
}

void session_views(struct engine *e, uint32_t session, void *base)
{
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    uint8_t *data = (uint8_t *)base + SESSION_DATA_OFFSET;

    live->shared = base;
    ring_consumer_init(&live->submit, &live->shared->submit, data, s->sizes.submit, s->submit_head);
    data += s->sizes.submit;
    ring_producer_init(&live->local, &live->shared->local, data, s->sizes.local, s->local_tail);
    data += s->sizes.local;
    ring_producer_init(&live->remote, &live->shared->remote, data, s->sizes.remote, s->remote_tail);
    live->attached = true;
    session_dirty(e, session);
}

/* The flows that end here: their origins are told, what comes by them fails. */
static bool inflows_close(struct engine *e, uint32_t session)
{
    struct session *s = &e->sessions[session];

    while (s->first_inflow != NONE) {
        struct inflow *in = &e->inflows[s->first_inflow];

        if (notes_push_flow(e, in->node, WIRE_GONE, in->origin_flow, 0, -EHOSTDOWN) < 0) {
            arena_rollback(&e->arena);
            e->sweep = true;
            return false;
        }
        set32(e, &s->first_inflow, in->next);
        set32(e, &in->session, NONE);
        set32(e, &in->state, INFLOW_CLOSED);
        commit(e);
    }
    return true;
}

int session_sweep(struct engine *e, uint32_t session)
{
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];

    while (s->first_flow != NONE) {
        struct flow *f = &e->flows[s->first_flow];

        set32(e, &s->first_flow, f->next);
        set32(e, &f->session, NONE);
        set32(e, &f->state, FLOW_CLOSING);
        set32(e, &f->held, 0);
        commit(e);
        e->sweep = true;
    }
    if (!inflows_close(e, session))
        return 0;
    if (s->spill_bytes > 0)
        e->spilling--;
    set64(e, &s->spill_bytes, 0);
    commit(e);
    queue_clear(&e->pool, &s->spill);
    set32(e, &s->state, SESSION_FREE);
    commit(e);
    if (live->attached) {
        uint32_t state = SESSION_LIVE, mode;

        atomic_compare_exchange_strong(&live->shared->state, &state, SESSION_CLOSED);
        mode = doorbell_ring(&live->shared->event_bell);
        if (mode != DOORBELL_AWAKE)
            e->host->wake(e->host->context, session, mode);
    }
    live->attached = false;
    return 1;
}
