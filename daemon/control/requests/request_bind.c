/* Owns binds: it finds a peer's engine, and lets our engine resolve the key there (request_bind.h).
 * Thread: control. */
#include "daemon/control/requests/request_bind.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/control/clients/client.h"
#include "shm_ring/fault.h"
#include "daemon/control/nodes/directory_client.h"
#include "daemon/control/clients/pairs.h"
#include "daemon/control/clients/client_stream.h"
#include "daemon/control/clients/client_table.h"
#include "daemon/control/clients/client_calls.h"
#include "daemon/control/clients/reply.h"

/* ---- bind ------------------------------------------------------------------------------------ */

static const char *bind_text(int status)
{
    switch (status) {
    case -EHOSTUNREACH:
        return "no such rank or context in this job: has it attached?";
    case -EKEYREJECTED:
        return "the key is unknown, stale, or not for this job";
    case -EHOSTDOWN:
        return "its node cannot be reached";
    case -ESHUTDOWN:
        return "the context that binds was closed meanwhile";
    case -EDQUOT:
        return "as many contexts are bound to that client or user as its node allows: client-pairs "
               "and user-pairs there";
    case -ENOSPC:
        return "no bind or pair of contexts is left on one of the two nodes: unbind some, or "
               "configure more there (binds, pairs)";
    case -ENOBUFS:
        return "this daemon has no room now for a question to its node: try again later";
    default:
        return strerror(-status);
    }
}

/* Ends a bind that waits, with the reason in words. */
static void fail_with(struct control *control, struct pending *p, int status, const char *why)
{
    struct client *c = p->client;
    uint32_t request = p->request;
    uint64_t peer = p->peer;

    pending_remove(&control->pending, p);
    reply_error(c, request, status, "rank %u, context %u: %s", (uint32_t)peer,
                (uint32_t)(peer >> 32), why);
    client_stream_resume(c);
}

static void fail(struct control *control, struct pending *p, int status)
{
    fail_with(control, p, status, bind_text(status));
}

/* Ends a bind that exceeds this client's or user's quotas. */
static void fail_quota(struct control *control, struct pending *p)
{
    const struct engine_config *e = &control->engine;
    char why[320];

    quota_count_refused(p->client);
    snprintf(
        why, sizeof(why),
        "this client or user has as many binds, or contexts that it is bound to, as the quotas "
        "allow: client-binds %u, user-binds %u, client-pairs %u, user-pairs %u, of binds %u and "
        "pairs %u",
        e->binds_client, e->binds_user, e->pairs_client, e->pairs_user, e->remotes_max,
        e->flows_max);
    fail_with(control, p, -EDQUOT, why);
}

static void bind_posted(struct call *call)
{
    struct client *c = call->owner;
    struct pending *p = pending_find(&c->control->pending, call->bind.cookie, PENDING_BIND);

    if (call->result == -EDQUOT && p)
        fail_quota(c->control, p);
    else if (call->result < 0 && p)
        fail(c->control, p, call->result);
}

static void ask_engine(struct control *control, struct pending *p, uint64_t cookie, uint32_t number,
                       const struct engine_key *key)
{
    struct call *call = client_call(p->client, CALL_BIND, bind_posted);

    if (!call) {
        fail(control, p, -ENOMEM);
        return;
    }
    FAULT(BIND_ASKED);
    p->kind = PENDING_BIND;
    p->located = NULL;
    call->bind = (struct call_bind){
        .session = p->session, .peer = number, .endpoint = p->peer, .cookie = cookie};
    if (key) {
        call->bind.has_key = true;
        call->bind.key = *key;
    }
    call_post(p->client->worker->progress, call);
}

/* Whether an engine can have this number. How many engines another node has is not known before it
 * is linked. */
static bool may_exist(const struct control *control, uint32_t number)
{
    return number < control->engine.peers && (number % control->node_count != control->node ||
                                              number / control->node_count < control->worker_count);
}

/* Takes the answer of the job's home: the node and the engine that have the peer's rank. */
static void located(struct control *control, struct pending *p, int status, uint32_t node,
                    uint32_t engine)
{
    uint32_t number = node < control->node_count && engine < NODES_ENGINES_MAX
                          ? nodes_number(control->node_count, node, engine)
                          : UINT32_MAX;

    if (status < 0 || !may_exist(control, number))
        fail(control, p, status < 0 ? status : -EHOSTUNREACH);
    else if (!client_session_find(p->client, p->session)) /* the session was closed meanwhile */
        fail(control, p, -EINVAL);
    else
        ask_engine(control, p, pending_cookie(&control->pending, p), number, NULL);
}

/* Takes the home's answer about a rank that the key's engine does not know: the key may belong to
 * another rank. */
static void located_elsewhere(struct control *control, struct pending *p, int status, uint32_t node,
                              uint32_t engine)
{
    uint32_t of_key = (p->asked - 1) % control->node_count;
    char why[128];

    if (status < 0 || node >= control->node_count ||
        nodes_number(control->node_count, node, engine) == p->asked - 1) {
        fail(control, p, -EHOSTUNREACH);
        return;
    }
    if (of_key == node)
        snprintf(why, sizeof(why),
                 "the key is another rank's: both are on node %u, on different progress threads",
                 node);
    else
        snprintf(why, sizeof(why),
                 "the key is another rank's: it is of node %u, and this rank is on node %u", of_key,
                 node);
    fail_with(control, p, -EKEYREJECTED, why);
}

static bool key_parse(const struct control *control, const Pwc__Key *packed, struct engine_key *key)
{
    if (packed->secret.len != sizeof(key->secret) || !may_exist(control, packed->node))
        return false;
    *key = (struct engine_key){
        .node = packed->node, .slot = packed->slot, .generation = packed->generation};
    memcpy(key->secret, packed->secret.data, sizeof(key->secret));
    return true;
}

void request_bind(struct client *c, uint32_t request, const Pwc__Bind *bind)
{
    struct control *control = c->control;
    struct engine_key key;
    struct pending *p;
    uint64_t cookie;

    if (!client_session_find(c, bind->session)) {
        reply_error(c, request, -EINVAL, "session %u is not yours, or not open", bind->session);
        return;
    }
    if (bind->key && !key_parse(control, bind->key, &key)) {
        reply_error(c, request, -EKEYREJECTED, "%s", bind_text(-EKEYREJECTED));
        return;
    }
    p = pending_add(&control->pending, PENDING_WHERE, c, request, &cookie);
    if (!p) {
        reply_error(c, request, -ENOBUFS, "too many requests wait in this daemon: try again later");
        return;
    }
    p->session = bind->session;
    p->peer = bind->peer;
    p->located = located;
    p->asked = bind->key ? key.node + 1 : 0;
    if (bind->key)
        ask_engine(control, p, cookie, key.node, &key);
    else
        directory_client_where(c, (uint32_t)bind->peer, cookie);
}

/* Answers with the remote, and, where the peer's context is a neighbour, with the pair to it. */
static void reply_bound(struct client *c, uint32_t request, const struct call_neighbour *n,
                        const struct worker *theirs)
{
    struct client_session *s = client_session_find(c, n->session);
    struct client_session *target = worker_session(theirs, n->found.session);
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Bound bound = PWC__BOUND__INIT;
    Pwc__Pair pair = PWC__PAIR__INIT;
    struct pair_way way = {0};

    bound.remote = n->remote;
    bound.length = n->length;
    bound.rights = n->rights;
    if (s && target && pairs_connect(s, target, &n->found, n->rights, &way) == 0) {
        pair.number = way.number;
        pair.fresh = way.fresh;
        pair.segment_length = way.segment_length;
        pair.board = way.board;
        pair.slot = way.slot;
        pair.offset = n->found.offset;
        bound.pair = &pair;
    }
    reply.id = request;
    reply.body_case = PWC__CLIENT_REPLY__BODY_BOUND;
    reply.bound = &bound;
    client_reply(c, &reply, way.descriptors, way.descriptor_count);
}

/* The worker whose engine has the peer's context; NULL: the engine is another node's. */
static struct worker *worker_of(const struct control *control, uint32_t number)
{
    return number % control->node_count == control->node
               ? &control->workers[number / control->node_count]
               : NULL;
}

static void sibling_answered(struct call *call)
{
    struct client *c = call->owner;
    const struct call_neighbour *n = &call->neighbour;

    if (c->state == CLIENT_SERVED)
        reply_bound(c, (uint32_t)call->cookie, n,
                    &c->control->workers[call->target->number / c->control->node_count]);
}

/* Asks the sibling engine that has the peer's context for the handles of its session and segment.
 * The control thread receives the sibling's answers and notices in order, so these handles are not
 * in use again for another context. Our engine's answer could not promise this. */
static bool ask_sibling(struct client *c, struct worker *sibling, uint32_t request,
                        const struct call_neighbour *bound)
{
    struct call *call = client_call_to(c, sibling, CALL_NEIGHBOUR, sibling_answered);

    if (!call)
        return false;
    call->cookie = request;
    call->neighbour = *bound;
    call_post(sibling->progress, call);
    return true;
}

static void answer(struct control *control, struct pending *p, const struct engine_notice *notice)
{
    struct worker *theirs = worker_of(control, notice->peer);
    struct call_neighbour bound = {.remote = notice->handle,
                                   .rights = notice->rights,
                                   .length = notice->length,
                                   .way = notice->way,
                                   .found = notice->neighbour};
    struct client_session *s;
    uint32_t request;
    struct client *c;

    if (notice->status == -EHOSTUNREACH && p->asked > 0) {
        p->kind = PENDING_WHERE;
        p->located = located_elsewhere;
        directory_client_where(p->client, (uint32_t)p->peer, notice->cookie);
        return;
    }
    if (notice->status < 0) {
        fail(control, p, notice->status);
        return;
    }
    FAULT(BOUND);
    c = p->client;
    request = p->request;
    bound.origin = c->worker->number;
    bound.session = p->session;
    pending_remove(&control->pending, p);
    s = client_session_find(c, bound.session);
    if (s && s->direct && theirs && theirs != c->worker && ask_sibling(c, theirs, request, &bound))
        return;
    reply_bound(c, request, &bound, c->worker);
    client_stream_resume(c);
}

void bind_ended(struct control *control, const struct engine_notice *notice)
{
    struct pending *p = pending_find(&control->pending, notice->cookie, PENDING_BIND);

    if (p)
        answer(control, p, notice);
}

/* ---- unbind ---------------------------------------------------------------------------------- */

static void unbound(struct call *call)
{
    struct client *c = call->owner;

    if (c->state == CLIENT_SERVED && call->result < 0)
        reply_error(c, (uint32_t)call->cookie, call->result, "remote %u is not bound here",
                    call->bind.remote);
    else if (c->state == CLIENT_SERVED)
        reply_done(c, (uint32_t)call->cookie);
}

void request_unbind(struct client *c, uint32_t request, const Pwc__Unbind *unbind)
{
    struct client_session *s = client_session_find(c, unbind->session);
    struct call *call;

    if (!s) {
        reply_error(c, request, -EINVAL, "session %u is not yours, or not open", unbind->session);
        return;
    }
    if (unbind->pair != 0)
        pairs_give_up(s, unbind->pair);
    call = client_call(c, CALL_UNBIND, unbound);
    if (!call) {
        reply_error(c, request, -ENOMEM, "this daemon is out of memory");
        return;
    }
    call->cookie = request;
    call->bind = (struct call_bind){.session = unbind->session, .remote = unbind->remote};
    call_post(c->worker->progress, call);
}
