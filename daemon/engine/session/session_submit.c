/* Submissions: taken from a session's ring, checked, queued. Thread: the progress thread. */
#include "daemon/engine/session/session.h"

#include <string.h>
#include "daemon/engine/session/quarantine.h"
#include "shm_ring/fault.h"
#include "daemon/engine/offload/turns.h"
#include "daemon/engine/ops/op.h"
#include "daemon/engine/ops/submit.h"
#include "daemon/engine/ops/message.h"
#include "daemon/engine/session/quota.h"
#include "daemon/engine/session/session_batch.h"
#include "daemon/engine/ops/reply_credit.h"

struct intake;

/* The differences between the two rings that a session submits through. */
struct intake_rules {
    /* Checks for records that no honest library submits in this ring: 0 or the reason. */
    enum quarantine_reason (*check)(const struct engine *e, uint32_t session,
                                    const struct submit_record *r);
    /* The flow that a record in good order goes to. */
    uint32_t (*flow_of)(const struct engine *e, const struct submit_record *r);
    /* Whether the flow's queue has room for the operation: 0 or negative. */
    int (*room)(struct engine *e, uint32_t session, struct queue *ops, uint32_t span);
    /* Takes the record `r` of that kind (NULL: the kind is unknown), and up to `budget` - 1 records
     * after it. Returns how many; 0: none can be taken now. */
    int (*take)(struct engine *e, uint32_t session, const struct intake *in,
                const struct op_kind *kind, const struct submit_record *r, int budget);
};

/* One of these rings, while records are taken from it. */
struct intake {
    const struct intake_rules *rules;
    struct ring_consumer *ring;
    uint64_t *head; /* in the arena */
    bool *stalled;  /* there is no room to take the next record */
};

/* Checks the flags that few records have. A notification must be of a kind that may notify; it
 * always brings its id, by value. */
static bool flags_valid(const struct op_kind *kind, const struct submit_record *r)
{
    if (r->flags & SUBMIT_MORE && !kind->in_vector)
        return false;
    return !(r->flags & SUBMIT_NOTIFY) ||
           (kind->notifies && r->rid_len == 0 && !(r->flags & SUBMIT_NO_RCE));
}

/* Checks for records that no honest library submits in either ring: 0 or the reason. */
static enum quarantine_reason record_check(const struct engine *e, const struct op_kind *kind,
                                           const struct submit_record *r)
{
    uint64_t size = sizeof(*r) + abi_pad8(r->lid_len) + abi_pad8(r->rid_len);

    if (!kind || !kind->validate || r->size < sizeof(*r) || r->flags & ~SUBMIT_FLAGS_ALL ||
        r->lid_len > SESSION_ID_MAX || (!kind->message && r->rid_len > SESSION_ID_MAX) ||
        (r->flags & (SUBMIT_NOTIFY | SUBMIT_MORE) && !flags_valid(kind, r)))
        return QUARANTINE_RECORD;
    if (r->flags & SUBMIT_INLINE) {
        if (r->length == 0 || r->length > submit_inline_max(r->kind, e->config.packed_max))
            return QUARANTINE_RECORD;
        size += abi_pad8((uint32_t)r->length);
    }
    if (r->size != size)
        return QUARANTINE_RECORD;
    if (kind->message && !message_submitted_valid(e, r))
        return QUARANTINE_MESSAGE;
    return r->reserve == event_bytes(r->lid_len) ? QUARANTINE_NONE : QUARANTINE_RESERVE;
}

/* Bytes of local event space that no operation has reserved, or -EPROTO. */
static int64_t local_space(struct engine *e, uint32_t session)
{
    const struct session *s = &e->sessions[session];
    int64_t used = ring_used(&e->session_live[session].local);
    int64_t space = (int64_t)(s->sizes.local - EVENT_BYTES_MAX - s->reserved) - used;

    return used < 0 ? used : space > 0 ? space : 0;
}

static void count_submitted(struct session_live *live, const struct op_kind *kind,
                            const struct submit_record *r)
{
    live->ops[kind->counter]++;
    live->bytes[kind->counter] += kind->bytes ? kind->bytes(r) : r->length;
}

/* Checks all of a record except for room in queues. Returns the reason to quarantine the client; or
 * 0, with the flow that the record goes to. */
static enum quarantine_reason submission_check(struct engine *e, uint32_t session,
                                               const struct intake *in, const struct op_kind *kind,
                                               const struct submit_record *r, uint32_t *flow)
{
    enum quarantine_reason reason = record_check(e, kind, r);
    int64_t space;

    if (reason == QUARANTINE_NONE)
        reason = in->rules->check(e, session, r);
    if (reason != QUARANTINE_NONE)
        return reason;
    *flow = in->rules->flow_of(e, r);
    space = local_space(e, session);
    if (space < r->reserve)
        return space < 0 ? QUARANTINE_EVENT_INDEX : QUARANTINE_RESERVE;
    if (reply_awaited(&e->flows[*flow], r->kind, r->flags))
        return reply_space(e, session);
    return QUARANTINE_NONE;
}

/* Moves past the record; the next commit puts the new head of the ring into the arena. */
static void intake_pass(struct engine *e, const struct intake *in, const struct submit_record *r)
{
    ring_consume(in->ring, r->size);
    set64(e, in->head, in->ring->head);
}

/* Takes one record as an operation. Returns 1; 0: there is no room now, or the client is
 * quarantined. */
static int session_submit(struct engine *e, uint32_t session, const struct intake *in,
                          const struct op_kind *kind, const struct submit_record *r)
{
    struct session *s = &e->sessions[session];
    uint32_t flow = NONE, span;
    enum quarantine_reason reason = submission_check(e, session, in, kind, r, &flow);
    struct flow *f;
    int status;

    if (reason != QUARANTINE_NONE) {
        client_quarantine(e, s->client, reason);
        return 0;
    }
    f = &e->flows[flow];
    status = kind->validate(e, s->client, r, kind->over_remote ? &e->remotes[r->remote] : NULL);
    if (status == -EPROTO || status == -EFAULT) {
        client_quarantine(e, s->client, status == -EFAULT ? QUARANTINE_SEGMENT : QUARANTINE_RECORD);
        return 0;
    }
    if (f->state == FLOW_DEAD)
        status = f->error;
    span = op_span(r);
    if (FAULT(QUEUE_ROOM) < 0 || in->rules->room(e, session, &f->ops, span) < 0)
        return 0;
    intake_pass(e, in, r);
    set64(e, &s->reserved, s->reserved + r->reserve);
    set64(e, &s->submitted, s->submitted + 1);
    op_enqueue(e, flow, r, span, status);
    count_submitted(&e->session_live[session], kind, r);
    session_took(e, session);
    return 1;
}

/* ---- the requests ring ----------------------------------------------------------------------- */

static enum quarantine_reason request_check(const struct engine *e, uint32_t session,
                                            const struct submit_record *r)
{
    /* A request without its event could not be replied to, and would hold its credit forever. */
    if (submit_is_message(r->kind) && (r->rid != 0 || r->flags & SUBMIT_NO_RCE))
        return QUARANTINE_MESSAGE;
    return op_remote_given(e, session, r->remote) ? QUARANTINE_NONE : QUARANTINE_REMOTE;
}

static uint32_t request_flow(const struct engine *e, const struct submit_record *r)
{
    return e->remotes[r->remote].flow;
}

static int request_room(struct engine *e, uint32_t session, struct queue *ops, uint32_t span)
{
    const struct session *s = &e->sessions[session];

    if (s->submitted - s->ended >= e->config.ops_max)
        return -EAGAIN;
    return quota_push(e, session, ops, span);
}

/* Takes the puts from `r` on that form one batch. Returns their number; 0: take `r` on its own. */
static int batch_submit(struct engine *e, uint32_t session, const struct op_kind *kind,
                        const struct submit_record *r, int budget)
{
    int64_t space = local_space(e, session);

    if (space < 0 || record_check(e, kind, r) != QUARANTINE_NONE ||
        request_check(e, session, r) != QUARANTINE_NONE ||
        kind->validate(e, e->sessions[session].client, r, &e->remotes[r->remote]) < 0)
        return 0;
    return batch_take(e, session, r, (uint64_t)space, budget);
}

/* A collective takes 1 of the budget, and 1 more for each COLLECTIVE_BYTES that it moves at once.
 * So a context moves some 16 KiB in its turn, or one slice, and all contexts 128 KiB in a step. */
#define COLLECTIVE_BYTES 16u

/* Carries out a submission that is no operation. Returns what it takes of the budget; 0: it can't
 * be done now, or its client is quarantined. */
static int submit_at_once(struct engine *e, uint32_t session, const struct intake *in,
                          const struct op_kind *kind, const struct submit_record *r)
{
    uint64_t moved = e->teams.moved;
    int reason = kind->at_once(e, session, r);

    if (reason == -EAGAIN)
        return 0;
    if (reason != QUARANTINE_NONE) {
        client_quarantine(e, e->sessions[session].client, (enum quarantine_reason)reason);
        return 0;
    }
    intake_pass(e, in, r);
    commit(e);
    if (kind->behind)
        kind->behind(e);
    session_took(e, session);
    return 1 + (int)((e->teams.moved - moved) / COLLECTIVE_BYTES);
}

static int request_take(struct engine *e, uint32_t session, const struct intake *in,
                        const struct op_kind *kind, const struct submit_record *r, int budget)
{
    struct session_live *live = &e->session_live[session];

    if (in->ring->tail_seen - in->ring->head > live->submit_high)
        live->submit_high = in->ring->tail_seen - in->ring->head;
    if (batch_may_begin(in->ring, r)) {
        int batch = batch_submit(e, session, kind, r, budget);

        if (batch > 0)
            return batch;
    }
    if (kind && kind->at_once)
        return submit_at_once(e, session, in, kind, r);
    return session_submit(e, session, in, kind, r);
}

static const struct intake_rules requests = {request_check, request_flow, request_room,
                                             request_take};

/* ---- the ring of replies --------------------------------------------------------------------- */

/* A reply must be a message, and its request must be owed a reply; a Long must name a remote of
 * the requester. */
static enum quarantine_reason reply_check(const struct engine *e, uint32_t session,
                                          const struct submit_record *r)
{
    const struct inflow *in;

    if (!submit_is_message(r->kind))
        return QUARANTINE_RECORD;
    if (!reply_owed(e, session, r))
        return QUARANTINE_REPLY;
    in = &e->inflows[r->token];
    if (op_kind_of(r->kind)->over_remote &&
        (!op_remote_given(e, session, r->remote) || e->remotes[r->remote].peer != in->peer ||
         e->remotes[r->remote].endpoint != in->origin))
        return QUARANTINE_REMOTE;
    return QUARANTINE_NONE;
}

static uint32_t reply_flow(const struct engine *e, const struct submit_record *r)
{
    return e->inflows[r->token].reply_flow[REPLIER_CLIENT];
}

static int reply_take(struct engine *e, uint32_t session, const struct intake *in,
                      const struct op_kind *kind, const struct submit_record *r, int budget)
{
    return session_submit(e, session, in, kind, r);
}

/* Replies may take room that requests leave free, so replies never wait for requests. There are no
 * more replies than requests that have arrived. */
static const struct intake_rules replies = {reply_check, reply_flow, quota_push_reply, reply_take};

/* ---- both ------------------------------------------------------------------------------------ */

/* Takes up to `budget` records. Returns their number. */
static int intake_take(struct engine *e, uint32_t session, const struct intake *in, int budget)
{
    const struct session *s = &e->sessions[session];
    const struct submit_record *r = (const struct submit_record *)e->record;
    int taken = 0;

    *in->stalled = false;
    while (taken < budget && !ring_empty(in->ring) && s->state == SESSION_OPEN &&
           e->clients[s->client].quarantine == QUARANTINE_NONE) {
        uint32_t size;
        int n = ring_copy(in->ring, e->record, e->record_max, &size);

        if (n == 0)
            break;
        if (n < 0) {
            client_quarantine(e, s->client,
                              n == -EMSGSIZE ? QUARANTINE_RECORD : QUARANTINE_SUBMIT_INDEX);
            break;
        }
        FAULT(RECORD_READ);
        n = in->rules->take(e, session, in, op_kind_of(r->kind), r, budget - taken);
        if (n == 0) {
            *in->stalled = true;
            break;
        }
        taken += n;
    }
    if (taken == 0)
        return 0;
    /* Padding after the last record may have been passed over too. */
    if (*in->head != in->ring->head) {
        set64(e, in->head, in->ring->head);
        commit(e);
    }
    ring_release(in->ring);
    handlers_note_other(e, s->client);
    return taken;
}

int session_take(struct engine *e, uint32_t session, int budget)
{
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    int taken = 0;

    if (!live->attached)
        return 0;
    if (!ring_empty(&live->reply_submit))
        taken += intake_take(
            e, session,
            &(struct intake){&replies, &live->reply_submit, &s->answer_head, &live->answer_stalled},
            budget);
    if (!ring_empty(&live->submit))
        taken += intake_take(
            e, session, &(struct intake){&requests, &live->submit, &s->submit_head, &live->stalled},
            budget);
    return taken;
}
