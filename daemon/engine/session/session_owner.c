/* A context of a client as the owner of its flows (ops/owner.h). Thread: the progress thread. */
#include "daemon/engine/ops/owner.h"

#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ops/op.h"
#include "daemon/engine/session/direct.h"
#include "daemon/engine/session/quota.h"
#include "daemon/engine/session/session.h"
#include "daemon/engine/state/notice.h"

static uint32_t *session_flows(struct engine *e, uint32_t session)
{
    return &e->sessions[session].first_flow;
}

static uint32_t session_client(const struct engine *e, uint32_t session)
{
    return e->sessions[session].client;
}

static void session_identify(const struct engine *e, uint32_t session, struct owner_identity *out)
{
    const struct session *s = &e->sessions[session];
    const struct client *c = &e->clients[s->client];

    *out = (struct owner_identity){
        .uid = c->uid, .origin = (uint64_t)s->context << 32 | c->rank, .job = c->job};
}

static void session_bound(struct engine *e, uint32_t remote, int32_t status)
{
    const struct remote *r = &e->remotes[remote];
    struct engine_notice n = {.kind = ENGINE_BOUND,
                              .status = status,
                              .handle = remote,
                              .peer = r->peer,
                              .cookie = r->cookie,
                              .length = r->length,
                              .rights = r->rights,
                              .neighbour.session = NONE};

    direct_way(e, remote, &n.way);
    if (r->peer == e->config.self)
        (void)engine_neighbour(e, e->config.self, &n.way, &n.neighbour);
    notice_push(e, &n);
}

/* A client that has not read the end of an earlier context of this number would take the end for
 * that of this context, so the client gets PEER_BACK behind it. */
static void session_peer_answered(struct engine *e, uint32_t flow)
{
    const struct flow *f = &e->flows[flow];
    uint32_t session = owner_handle(f->owner);

    if (!session_knows_end(e, session, f->endpoint))
        return;
    if (e->sessions[session].ends_due > 0 || session_report_back(e, session, f->endpoint) < 0)
        session_owe_flow(e, flow, DUE_BACK);
}

/* The client may have bound a later context of this number, on another node, before the end of
 * this one was known here. That context is back, too. */
static void session_peer_ended(struct engine *e, uint32_t flow, int32_t end)
{
    struct flow *f = &e->flows[flow];
    int later = flow_find_open(e, f->owner, f->endpoint);

    if (f->due != 0)
        session_drop_due(e, owner_handle(f->owner), &f->due);
    if (session_report_end(e, owner_handle(f->owner), f->endpoint, end) < 0)
        session_owe_flow(e, flow, end);
    if (later >= 0 && e->flows[later].due == 0)
        session_peer_answered(e, (uint32_t)later);
}

static void session_ended_early(struct engine *e, uint32_t session, int64_t change)
{
    e->session_live[session].early += (uint64_t)change;
    session_dirty(e, session); /* the client may sleep until everything has left */
}

static void session_inherit(struct engine *e, uint32_t session, const struct queue *ops)
{
    quota_count(e, session, ops);
    for (uint64_t slot = ops->head; slot < ops->tail;) {
        const struct op *op = queue_entry(&e->pool, ops, OP_SHIFT, slot);

        e->session_live[session].early += op->ended ? op_count(op) : 0;
        slot += op->span;
    }
}

const struct owner_kind owner_session = {
    .flows = session_flows,
    .client = session_client,
    .identify = session_identify,
    .bound = session_bound,
    .ended = session_report_local,
    .ended_silently = session_end_silent,
    .ended_early = session_ended_early,
    .peer_answered = session_peer_answered,
    .peer_ended = session_peer_ended,
    .pop = quota_pop_chunks,
    .inherit = session_inherit,
};
