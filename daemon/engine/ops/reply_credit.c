/* Counts of replies (reply.h): what is owed at the replier, what is awaited at the requester.
 * Thread: the progress thread. */
#include "daemon/engine/ops/reply_credit.h"

#include "daemon/engine/offload/find.h"
#include "daemon/engine/peer/remote.h"
#include "daemon/engine/session/quarantine.h"
#include "daemon/engine/session/session.h"

/* ---- at the replier -------------------------------------------------------------------------- */

bool reply_way_open(const struct engine *e, const struct flow *f)
{
    return f->traffic == FLOW_REQUESTS ||
           (f->serves != NONE && e->inflows[f->serves].state != INFLOW_PARTING);
}

bool reply_owed(const struct engine *e, uint32_t session, const struct submit_record *r)
{
    const struct inflow *in;

    if (r->token >= e->config.flows_max)
        return false;
    in = &e->inflows[r->token];
    return in->state != INFLOW_FREE && in->state != INFLOW_CLOSED && in->session == session &&
           in->owed > 0;
}

/* Within a transaction: counts this many more replies as owed. */
static void owe(struct engine *e, struct inflow *in, int more)
{
    set32(e, &in->owed, in->owed + (uint32_t)more);
    if (in->session != NONE)
        set32(e, &e->sessions[in->session].replies_owed,
              e->sessions[in->session].replies_owed + (uint32_t)more);
}

void reply_owe(struct engine *e, uint32_t inflow)
{
    owe(e, &e->inflows[inflow], 1);
}

void reply_answered(struct engine *e, uint32_t inflow)
{
    struct inflow *in = &e->inflows[inflow];

    owe(e, in, -1);
    if (in->state == INFLOW_PARTING && in->owed == 0 && in->due == 0 && !offload_cut_waits(in))
        inflow_free(e, inflow);
}

/* ---- at the requester ------------------------------------------------------------------------ */

bool reply_awaited(const struct flow *f, uint8_t kind, uint16_t flags)
{
    return submit_is_message(kind) && !(flags & SUBMIT_NO_REPLY) && f->traffic == FLOW_REQUESTS;
}

enum quarantine_reason reply_space(struct engine *e, uint32_t session)
{
    const struct session *s = &e->sessions[session];
    uint32_t each = event_bytes(e->message_max);
    int64_t used = ring_used(&e->session_live[session].reply_event);

    /* Only padding may take a client past the library's own limit. An event takes at most a quarter
     * of the ring. */
    if (used < 0)
        return QUARANTINE_EVENT_INDEX;
    if (each > s->sizes.reply_event / 4 ||
        (uint64_t)used + s->reply_reserved + each > s->sizes.reply_event - each)
        return QUARANTINE_REPLY_SPACE;
    return QUARANTINE_NONE;
}

void reply_hold(struct engine *e, uint32_t flow)
{
    struct flow *f = &e->flows[flow];
    struct session *s = &e->sessions[owner_handle(f->owner)];

    set32(e, &f->replies_expected, f->replies_expected + 1);
    set64(e, &s->reply_reserved, s->reply_reserved + event_bytes(e->message_max));
}

void reply_give_back(struct engine *e, uint32_t flow, uint32_t count)
{
    struct flow *f = &e->flows[flow];
    uint64_t bytes;
    struct session *s;

    if (count > f->replies_expected)
        count = f->replies_expected;
    if (count == 0 || f->owner == OWNER_GONE)
        return;
    s = &e->sessions[owner_handle(f->owner)];
    bytes = (uint64_t)count * event_bytes(e->message_max);
    set32(e, &f->replies_expected, f->replies_expected - count);
    set64(e, &s->reply_reserved, s->reply_reserved - bytes);
    set64(e, &s->reply_released, s->reply_released + bytes);
    session_dirty(e, owner_handle(f->owner));
}

int reply_requester(const struct engine *e, uint32_t flow, uint32_t peer)
{
    const struct flow *f;
    const struct session *s;

    if (flow >= e->config.flows_max)
        return -EPROTO;
    f = &e->flows[flow];
    if (f->state == FLOW_FREE || f->traffic != FLOW_REQUESTS || f->peer != peer)
        return -EPROTO;
    if (f->owner == OWNER_GONE)
        return -EHOSTDOWN;
    if (owner_as_session(f->owner) == NONE) /* only a session awaits replies */
        return -EPROTO;
    s = &e->sessions[owner_handle(f->owner)];
    if (s->state != SESSION_OPEN || e->clients[s->client].state != CLIENT_LIVE ||
        e->clients[s->client].quarantine != QUARANTINE_NONE)
        return -EHOSTDOWN;
    return f->replies_expected > 0 ? 0 : -EPROTO;
}

void reply_came(struct engine *e, uint32_t flow)
{
    struct flow *f = &e->flows[flow];
    struct session *s = &e->sessions[owner_handle(f->owner)];

    set32(e, &f->replies_expected, f->replies_expected - 1);
    set64(e, &s->reply_reserved, s->reply_reserved - event_bytes(e->message_max));
}
