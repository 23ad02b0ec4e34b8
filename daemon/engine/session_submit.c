/* Submissions: taken from a session's ring, checked, queued. Thread: the progress thread. */
#include "session.h"

#include <string.h>
#include "client.h"
#include "flow.h"
#include "op.h"

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
