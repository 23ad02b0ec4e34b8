/* Submissions: taken from a session's ring, checked, queued. Thread: the progress thread. */
#include "daemon/engine/session/session.h"

#include <string.h>
#include "daemon/engine/session/quarantine.h"
#include "daemon/engine/session/direct.h"
#include "shm_ring/fault.h"
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ops/op.h"
#include "daemon/engine/ops/op_batch.h"
#include "daemon/engine/session/quota.h"
#include "daemon/engine/ops/reply.h"
#include "daemon/engine/watch/steps.h"

static bool remote_given(const struct engine *e, uint32_t session, uint32_t remote)
{
    const struct remote *r;

    if (remote >= e->config.remotes_max)
        return false;
    r = &e->remotes[remote];
    return r->session == session && !r->unbound &&
           (r->state == REMOTE_READY || r->state == REMOTE_STALE || r->state == REMOTE_REVOKED);
}

/* A record of the answer ring: a message, a debt, and a Long's way back to the requester. */
static enum quarantine_reason answer_check(const struct engine *e, uint32_t session,
                                           const struct submit_record *r)
{
    const struct inflow *in;

    if (r->kind < SUBMIT_SHORT)
        return QUARANTINE_RECORD;
    if (!reply_owed(e, session, r))
        return QUARANTINE_REPLY;
    in = &e->inflows[r->rid];
    if (r->kind == SUBMIT_LONG &&
        (!remote_given(e, session, r->remote) || e->remotes[r->remote].node != in->node ||
         e->remotes[r->remote].peer != in->origin))
        return QUARANTINE_REMOTE;
    return QUARANTINE_NONE;
}

/* What no honest library submits: 0 or the reason. */
static enum quarantine_reason record_check(const struct engine *e, uint32_t session,
                                           const struct submit_record *r, bool answer)
{
    uint64_t size = sizeof(*r) + abi_pad8(r->lid_len) + abi_pad8(r->rid_len);
    bool message = r->kind >= SUBMIT_SHORT;

    if (r->size < sizeof(*r) || r->kind == OP_BATCH || !op_kind_of(r->kind) ||
        r->flags & ~SUBMIT_FLAGS_ALL || r->lid_len > SESSION_ID_MAX ||
        (!message && r->rid_len > SESSION_ID_MAX))
        return QUARANTINE_RECORD;
    if (r->flags & SUBMIT_INLINE) {
        if (r->length == 0 || r->length > e->config.packed_max)
            return QUARANTINE_RECORD;
        size += abi_pad8((uint32_t)r->length);
    }
    if (r->size != size)
        return QUARANTINE_RECORD;
    if (message && !message_submitted_valid(e, r))
        return QUARANTINE_MESSAGE;
    if (r->reserve != event_bytes(r->lid_len))
        return QUARANTINE_RESERVE;
    if (answer)
        return answer_check(e, session, r);
    /* A request without its event could not be answered, and would hold its credit for ever. */
    if (message && (r->rid != 0 || r->flags & SUBMIT_NO_RCE))
        return QUARANTINE_MESSAGE;
    return remote_given(e, session, r->remote) ? QUARANTINE_NONE : QUARANTINE_REMOTE;
}

/* Local event space that the client may still have promised to it, or -EPROTO. */
static int64_t local_space(struct engine *e, uint32_t session)
{
    const struct session *s = &e->sessions[session];
    int64_t used = ring_used(&e->session_live[session].local);
    int64_t space = (int64_t)(s->sizes.local - EVENT_BYTES_MAX - s->reserved) - used;

    return used < 0 ? used : space > 0 ? space : 0;
}

static struct op *op_fill(struct engine *e, struct flow *f, uint64_t slot,
                          const struct submit_record *r, uint32_t span, int32_t status)
{
    struct op *op = flow_op(e, f, slot);
    const uint8_t *bytes = (const uint8_t *)(r + 1);
    uint32_t left = r->size - (uint32_t)sizeof(*r);

    *op = (struct op){
        .kind = r->kind,
        .phase = status < 0 && (f->traffic == FLOW_REQUESTS || f->state == FLOW_DEAD) ? OP_PLACED
                                                                                      : OP_QUEUED,
        .flags = r->flags,
        .status = status,
        .remote = r->remote,
        .span = (uint16_t)span,
        .offset = r->offset,
        .length = r->length < UINT32_MAX ? (uint32_t)r->length : UINT32_MAX,
        .lid = r->lid,
        .rid = f->traffic == FLOW_REPLIES ? 0 : r->rid, /* the token has done its work */
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
        return op;
    }
    for (uint32_t i = 1; i < span; i++) {
        uint32_t n = left < sizeof(*op) ? left : (uint32_t)sizeof(*op);

        memcpy(flow_op(e, f, slot + i), bytes, n);
        bytes += n;
        left -= n;
    }
    return op;
}

static void count_submitted(struct session_live *live, const struct submit_record *r)
{
    if (r->kind == SUBMIT_PUT) {
        live->put_ops++;
        live->put_bytes += r->length;
    } else if (r->kind == SUBMIT_GET) {
        live->get_ops++;
        live->get_bytes += r->length;
    } else if (r->kind >= SUBMIT_SHORT) {
        const uint8_t *block = (const uint8_t *)(r + 1) + abi_pad8(r->lid_len);

        live->am_ops++;
        live->am_bytes += r->length + ((const struct message *)(const void *)block)->payload_len;
    }
}

/* Whether the client may have this record in flight: its reasons why not, but for want of room. */
static enum quarantine_reason submission_check(struct engine *e, uint32_t session,
                                               const struct submit_record *r, bool answer)
{
    enum quarantine_reason reason = record_check(e, session, r, answer);
    int64_t space;

    if (reason != QUARANTINE_NONE)
        return reason;
    space = local_space(e, session);
    if (space < r->reserve)
        return space < 0 ? QUARANTINE_EVENT_INDEX : QUARANTINE_RESERVE;
    if (!answer && reply_awaited(&e->flows[e->remotes[r->remote].flow], r->kind, r->flags))
        return reply_space(e, session);
    return QUARANTINE_NONE;
}

/* Room for it in its flow's queue. Replies take what requests leave, so that they never wait for
 * these; there are no more of them than requests that have come. */
static int submission_room(struct engine *e, uint32_t session, struct flow *f, uint32_t span)
{
    const struct session *s = &e->sessions[session];
    bool answer = f->traffic == FLOW_REPLIES;

    if (FAULT(QUEUE_ROOM) < 0 || (!answer && s->submitted - s->ended >= e->config.ops_max))
        return -EAGAIN;
    return answer ? quota_push_reply(e, session, &f->ops, span)
                  : quota_push(e, session, &f->ops, span);
}

/* Takes one record that stands in e->record. 1 taken, 0 no room for it now. */
static int session_submit(struct engine *e, uint32_t session, struct ring_consumer *ring,
                          uint32_t size, bool answer)
{
    struct session *s = &e->sessions[session];
    const struct submit_record *r = (const struct submit_record *)e->record;
    enum quarantine_reason reason = submission_check(e, session, r, answer);
    struct remote *remote = NULL;
    uint32_t extra, span, flow;
    uint64_t slot;
    struct flow *f;
    struct op *op;
    int status;

    if (reason != QUARANTINE_NONE) {
        client_quarantine(e, s->client, reason);
        return 0;
    }
    if (!answer || r->kind == SUBMIT_LONG)
        remote = &e->remotes[r->remote];
    flow = answer ? e->inflows[r->rid].reply_flow : remote->flow;
    f = &e->flows[flow];
    status = op_kind_of(r->kind)->validate(e, s, r, remote);
    if (status == -EPROTO || status == -EFAULT) {
        client_quarantine(e, s->client, status == -EFAULT ? QUARANTINE_SEGMENT : QUARANTINE_RECORD);
        return 0;
    }
    if (f->state == FLOW_DEAD)
        status = f->error;
    extra = size - (uint32_t)sizeof(*r);
    span = extra <= OP_SMALL ? 1 : 1 + (extra + sizeof(struct op) - 1) / sizeof(struct op);
    slot = f->ops.tail;
    if (submission_room(e, session, f, span) < 0)
        return 0;
    op = op_fill(e, f, slot, r, span, status);
    ring_consume(ring, size);
    set64(e, answer ? &s->answer_head : &s->submit_head, ring->head);
    set64(e, &s->reserved, s->reserved + r->reserve);
    set64(e, &s->submitted, s->submitted + 1);
    if (answer)
        reply_answered(e, (uint32_t)r->rid);
    else if (reply_awaited(f, r->kind, r->flags))
        reply_hold(e, flow);
    if (answer && remote)
        set32(e, &remote->replies, remote->replies + 1);
    if (op->phase == OP_PLACED && (f->state == FLOW_DEAD || f->staged == slot)) {
        set64(e, &f->staged, f->ops.tail);
        set64(e, &f->started, f->ops.tail);
    }
    commit(e);
    FAULT(OPERATION_QUEUED);
    step_submitted(e, flow, slot, op);
    count_submitted(&e->session_live[session], r);
    if (f->staged == f->ops.tail)
        flow_finish(e, flow);
    else
        flow_ready(e, flow);
    session_dirty(e, session);
    return 1;
}

/* A wake-up that stands in e->record: taken, whether there is somebody to wake or not. */
static int wake_submit(struct engine *e, uint32_t session, struct ring_consumer *ring,
                       uint32_t size)
{
    struct session *s = &e->sessions[session];
    const struct submit_record *r = (const struct submit_record *)e->record;

    if (size != sizeof(*r) || r->flags != 0 || r->lid_len != 0 || r->rid_len != 0 ||
        r->reserve != 0) {
        client_quarantine(e, s->client, QUARANTINE_RECORD);
        return 0;
    }
    if (r->remote != SUBMIT_NO_REMOTE && r->remote >= e->config.remotes_max) {
        client_quarantine(e, s->client, QUARANTINE_REMOTE);
        return 0;
    }
    if (r->remote != SUBMIT_NO_REMOTE && !remote_given(e, session, r->remote))
        ; /* unbound meanwhile: the control room does not wait for this ring */
    else if (r->remote != SUBMIT_NO_REMOTE)
        direct_wake(e, &e->flows[e->remotes[r->remote].flow]);
    else
        direct_wake_origin(e, session, r->rid);
    ring_consume(ring, size);
    set64(e, &s->submit_head, ring->head);
    commit(e);
    session_dirty(e, session);
    return 1;
}

/* As many puts as go together, from the one that stands in e->record on; 0: take it by itself. */
static int batch_submit(struct engine *e, uint32_t session, int budget)
{
    const struct submit_record *r = (const struct submit_record *)e->record;
    int64_t space = local_space(e, session);

    if (space < 0 || record_check(e, session, r, false) != QUARANTINE_NONE ||
        put_validate(e, &e->sessions[session], r, &e->remotes[r->remote]) < 0)
        return 0;
    return batch_take(e, session, (uint64_t)space, budget);
}

/* From one of the two rings. */
static int ring_take(struct engine *e, uint32_t session, bool answer, int budget)
{
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    struct ring_consumer *ring = answer ? &live->answer : &live->submit;
    uint64_t *head = answer ? &s->answer_head : &s->submit_head;
    bool *stalled = answer ? &live->answer_stalled : &live->stalled;
    int taken = 0;

    *stalled = false;
    while (taken < budget && s->state == SESSION_OPEN && live->attached &&
           e->clients[s->client].quarantine == QUARANTINE_NONE) {
        uint32_t size;
        int r = ring_copy(ring, e->record, e->record_max, &size);

        if (r == 0)
            break;
        if (r < 0) {
            client_quarantine(e, s->client,
                              r == -EMSGSIZE ? QUARANTINE_RECORD : QUARANTINE_SUBMIT_INDEX);
            break;
        }
        FAULT(RECORD_READ);
        if (!answer && ring->tail_seen - ring->head > live->submit_high)
            live->submit_high = ring->tail_seen - ring->head;
        if (!answer && batch_may_begin(ring, (const struct submit_record *)e->record)) {
            int batch = batch_submit(e, session, budget - taken);

            taken += batch;
            if (batch > 0)
                continue;
        }
        if (!answer && ((const struct submit_record *)e->record)->kind == SUBMIT_WAKE) {
            if (wake_submit(e, session, ring, size) == 0)
                break;
            taken++;
            continue;
        }
        if (session_submit(e, session, ring, size, answer) == 0) {
            *stalled = true;
            break;
        }
        taken++;
    }
    if (taken == 0)
        return 0;
    /* Padding behind the last record may have been passed over too. */
    if (*head != ring->head) {
        set64(e, head, ring->head);
        commit(e);
    }
    ring_release(ring);
    return taken;
}

int session_take(struct engine *e, uint32_t session, int budget)
{
    int taken = ring_take(e, session, true, budget);

    return taken + ring_take(e, session, false, budget);
}
