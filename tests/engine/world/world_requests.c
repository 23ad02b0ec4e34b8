/* Requests that are answered by a notice, and what the world does on notices (world.h). Thread:
 * one. */
#include <errno.h>
#include <string.h>
#include "tests/engine/world/teams.h"
#include "tests/engine/world/world.h"

#define NO_COOKIE 0 /* for commands whose answer nobody waits for */

/* ---- asking -------------------------------------------------------------------------------- */

/* Draws a cookie; each try has a cookie of its own, so that an answer to an earlier try is known.
 */
static uint64_t cookie_new(struct world *w, uint32_t request)
{
    return ++w->cookies * WORLD_REQUESTS_MAX + request;
}

static void request_ended(struct world_request *r, int status)
{
    r->done = true;
    r->status = status;
}

/* Makes the request's call, without waiting where the node has died: the call is made again when
 * the node is back. */
static void request_ask(struct world *w, struct world_request *r)
{
    r->command.cookie = cookie_new(w, (uint32_t)(r - w->requests));
    if (world_command(w, r->node, &r->command) && r->command.result < 0)
        request_ended(r, r->command.result);
}

static int request_new(struct world *w, uint32_t client, uint32_t context)
{
    for (uint32_t i = 0; i < WORLD_REQUESTS_MAX; i++)
        if (!w->requests[i].used) {
            w->requests[i] = (struct world_request){.used = true,
                                                    .node = w->clients[client].node,
                                                    .client = client,
                                                    .context = context};
            return (int)i;
        }
    world_fail(w, "more than %u requests", WORLD_REQUESTS_MAX);
    return -ENOSPC;
}

int world_bind(struct world *w, uint32_t client, uint32_t context, uint32_t to_client,
               uint32_t to_context, const struct engine_key *key)
{
    struct world_client *c = &w->clients[client];
    int request = request_new(w, client, context);

    if (request < 0)
        return request;
    w->requests[request].command =
        (struct world_command){.kind = WORLD_BIND,
                               .handle = c->contexts[context].session,
                               .peer = w->clients[to_client].node,
                               .endpoint = world_peer_of(w, to_client, to_context),
                               .has_key = key != NULL,
                               .key = key ? *key : (struct engine_key){0}};
    request_ask(w, &w->requests[request]);
    return request;
}

int world_unbind(struct world *w, uint32_t client, uint32_t context, uint32_t remote)
{
    struct world_client *c = &w->clients[client];
    struct world_command command = {
        .kind = WORLD_UNBIND, .handle = c->contexts[context].session, .remote = remote};

    return world_insist(w, c->node, &command);
}

int world_withdraw(struct world *w, uint32_t client, uint32_t context)
{
    struct world_client *c = &w->clients[client];
    int request = request_new(w, client, context);

    if (request < 0)
        return request;
    c->contexts[context].region_open = false;
    w->requests[request].withdrawal = true;
    w->requests[request].command = (struct world_command){
        .kind = WORLD_REGION_CLOSE, .client = c->handle, .key = c->contexts[context].key};
    request_ask(w, &w->requests[request]);
    return request;
}

int world_await(struct world *w, int request)
{
    for (uint32_t i = 0; i < 100000 && !w->failed; i++) {
        if (w->requests[request].done)
            return w->requests[request].status;
        if (!world_round(w))
            break;
    }
    world_fail(w, "request %d is never answered", request);
    return -ETIMEDOUT;
}

void world_request_free(struct world *w, int request)
{
    w->requests[request].used = false;
}

/* ---- losing answers ------------------------------------------------------------------------ */

static bool region_exists(struct engine *e, const struct engine_key *key)
{
    struct view_region view;
    uint32_t from = 0;

    while (engine_view_regions(e, &from, &view, 1) == 1)
        if (view.slot == key->slot && view.generation == key->generation)
            return true;
    return false;
}

/* Makes the calls of unanswered requests again. A withdrawal is requested again unless its region
 * has gone; one that is under way keeps its cookie. */
void world_requests_resume(struct world *w, uint32_t node)
{
    for (uint32_t i = 0; i < WORLD_REQUESTS_MAX && w->nodes[node].alive; i++) {
        struct world_request *r = &w->requests[i];

        if (!r->used || r->done || r->node != node)
            continue;
        if (!r->withdrawal)
            request_ask(w, r);
        else if (!region_exists(w->nodes[node].engine, &r->command.key))
            request_ended(r, 0);
        else
            world_command(w, node, &r->command);
    }
}

void world_requests_drop(struct world *w, uint32_t client, uint32_t context)
{
    for (uint32_t i = 0; i < WORLD_REQUESTS_MAX; i++) {
        struct world_request *r = &w->requests[i];

        if (r->used && !r->done && r->client == client &&
            (context == WORLD_CONTEXTS_MAX || (r->context == context && !r->withdrawal)))
            request_ended(r, -ECONNABORTED);
    }
}

/* ---- notices ------------------------------------------------------------------------------- */

/* Undoes a bind that was requested twice, or whose client has left since. */
static void stray_answer(struct world *w, struct world_node *n, const struct engine_notice *notice)
{
    struct world_command command = {.kind = WORLD_UNBIND, .remote = notice->handle};

    if (notice->kind != ENGINE_BOUND || notice->status != 0)
        return;
    for (uint32_t i = 0; i < w->client_count; i++)
        for (uint32_t k = 0; k < WORLD_CONTEXTS_MAX; k++) {
            struct world_client *c = &w->clients[i];

            if (c->node != n->number || !c->contexts[k].open || !n->alive)
                continue;
            command.handle = c->contexts[k].session;
            world_command(w, n->number, &command);
        }
}

static void answered(struct world *w, struct world_node *n, const struct engine_notice *notice)
{
    struct world_request *r = &w->requests[notice->cookie % WORLD_REQUESTS_MAX];

    if (notice->cookie == NO_COOKIE)
        return;
    if (!r->used || r->done || r->command.cookie != notice->cookie) {
        if (notice->cookie > (w->cookies + 1) * WORLD_REQUESTS_MAX)
            world_fail(w, "node %u answers request %llu, which never was", n->number,
                       (unsigned long long)notice->cookie);
        stray_answer(w, n, notice);
        return;
    }
    request_ended(r, notice->status);
    r->handle = notice->handle;
    r->length = notice->length;
    r->rights = notice->rights;
}

static void quarantined(struct world *w, struct world_node *n, const struct engine_notice *notice)
{
    struct world_client *c = world_client_by_handle(w, n->number, notice->handle);

    if (!c) {
        world_fail(w, "node %u quarantines client %u, which is not there", n->number,
                   notice->handle);
        return;
    }
    if (!c->hostile)
        world_fail(w, "client of rank %u is quarantined: %s", c->rank, notice->reason);
    c->quarantined = true;
    c->reason = notice->reason;
    world_client_close(w, (uint32_t)(c - w->clients));
}

static void session_closed(struct world *w, struct world_node *n, uint32_t session)
{
    for (uint32_t i = 0; i < w->client_count; i++)
        for (uint32_t k = 0; k < WORLD_CONTEXTS_MAX; k++) {
            struct world_context *x = &w->clients[i].contexts[k];

            if (w->clients[i].node == n->number && x->open && x->session == session) {
                world_context_gone(x);
                return;
            }
        }
}

static struct world_segment *segment_of(struct world *w, uint32_t node, uint32_t handle)
{
    for (uint32_t i = 0; i < w->client_count; i++)
        for (uint32_t k = 0; k < WORLD_SEGMENTS; k++) {
            struct world_segment *s = &w->clients[i].segments[k];

            if (w->clients[i].node == node && s->open && s->handle == handle)
                return s;
        }
    return NULL;
}

static void segment_ready(struct world *w, struct world_node *n, const struct engine_notice *notice)
{
    struct world_segment *s = segment_of(w, n->number, notice->handle);

    if (s)
        s->ready = notice->status == 0;
    if (notice->status != 0)
        world_fail(w, "segment %u of node %u: %s", notice->handle, n->number,
                   strerror(-notice->status));
}

static void segment_closed(struct world *w, struct world_node *n,
                           const struct engine_notice *notice)
{
    struct world_segment *s = segment_of(w, n->number, notice->handle);

    if (s)
        world_segment_gone(s);
}

/* A notice may name a client that the world does not know only after a death. */
static void client_closed(struct world *w, struct world_node *n, const struct engine_notice *notice)
{
    struct world_client *c = world_client_by_handle(w, n->number, notice->handle);

    if (c && !c->live)
        world_client_gone(c);
    else if (c || n->deaths == 0)
        world_fail(w, "node %u ends client %u, which is not there or lives", n->number,
                   notice->handle);
}

void world_notice(struct world *w, struct world_node *n, const struct engine_notice *notice)
{
    world_log(w, "node %u: notice %u handle %u node %u status %d%s%s", n->number, notice->kind,
              notice->handle, notice->peer, notice->status, notice->reason ? " " : "",
              notice->reason ? notice->reason : "");
    switch (notice->kind) {
    case ENGINE_WANT_PEER:
        world_link_wanted(w, n->number, notice->peer);
        break;
    case ENGINE_OFFER_READY:
        world_link_offer_ready(w, n->number, notice->peer);
        break;
    case ENGINE_PEER_BROKEN:
        world_link_broken(w, n->number, notice->peer, notice->status);
        break;
    case ENGINE_PEER_SILENT:
        world_link_ask(w, n->number, notice->peer, notice->length);
        break;
    case ENGINE_PEER_GONE:
        world_link_gone(w, n->number, notice->peer);
        break;
    case ENGINE_SEGMENT_READY:
        segment_ready(w, n, notice);
        break;
    case ENGINE_SEGMENT_CLOSED:
        segment_closed(w, n, notice);
        break;
    case ENGINE_REGION_CLOSED:
    case ENGINE_BOUND:
        answered(w, n, notice);
        break;
    case ENGINE_SESSION_CLOSED:
        session_closed(w, n, notice->handle);
        break;
    case ENGINE_CLIENT_CLOSED:
        client_closed(w, n, notice);
        break;
    case ENGINE_QUARANTINED:
        quarantined(w, n, notice);
        break;
    case ENGINE_TEAM_CLOSED:
        if (w->teams)
            teams_closed(w->teams, n->number, notice->handle);
        break;
    case ENGINE_OFFLOAD_CLOSED:
        break;
    case ENGINE_OFFLOAD_READY:
        if (notice->status == -ESHUTDOWN ||
            (notice->status < 0 && notice->status == w->offload_error))
            w->offloads_given_up++;
        else if (notice->status < 0)
            world_fail(w, "node %u: no offload: %s", n->number, strerror(-notice->status));
        break;
    default:
        world_fail(w, "node %u: notice of unknown kind %u", n->number, notice->kind);
    }
}
