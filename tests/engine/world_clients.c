/* The world's clients and what control does for them (world.h). Thread: one. */
#include "world.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Private: a test that forks takes its clients' memory along. */
static void *map(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

static struct engine *engine_of(struct world *w, const struct world_client *c)
{
    return w->nodes[c->node].engine;
}

static struct world_client *client_by_handle(struct world *w, uint32_t node, uint32_t handle)
{
    for (uint32_t i = 0; i < w->client_count; i++) {
        struct world_client *c = &w->clients[i];

        if (c->open && c->node == node && c->handle == handle)
            return c;
    }
    return NULL;
}

/* ---- taking over ---------------------------------------------------------------------------- */

static bool region_exists(struct engine *e, const struct engine_key *key)
{
    struct engine_region_view view;
    uint32_t from = 0;

    while (engine_view_regions(e, &from, &view, 1) == 1)
        if (view.slot == key->slot && view.generation == key->generation)
            return true;
    return false;
}

/* Answers may have died with the process. A withdrawal is asked for again, unless it was over. */
static void requests_resume(struct world *w, uint32_t node)
{
    struct engine *e = w->nodes[node].engine;

    for (uint32_t i = 0; i < WORLD_REQUESTS_MAX; i++) {
        struct world_request *r = &w->requests[i];
        const struct world_client *c = &w->clients[r->client];

        if (!r->used || r->done || r->node != node)
            continue;
        r->orphan = true;
        if (!r->withdrawal)
            continue;
        if (region_exists(e, &c->key))
            engine_region_close(e, c->handle, c->key.slot, c->key.generation, i);
        else
            r->done = true;
    }
}

/* ---- opening and closing ------------------------------------------------------------------- */

static int context_open(struct world *w, struct world_client *c, uint32_t number)
{
    struct world_context *x = &c->contexts[number];
    const struct world_options *o = &w->options;
    const struct session_sizes sizes = {
        .submit = o->submit_bytes ? o->submit_bytes : SESSION_RING_MIN,
        .local = o->local_bytes ? o->local_bytes : SESSION_RING_MIN,
        .remote = o->remote_bytes ? o->remote_bytes : SESSION_RING_MIN,
        .answer = o->answer_bytes ? o->answer_bytes : SESSION_RING_MIN,
        .reply = o->reply_bytes ? o->reply_bytes : SESSION_RING_MIN,
    };
    int rc;

    x->size = session_bytes(&sizes);
    x->base = map(x->size);
    if (!x->base)
        return -ENOMEM;
    rc = engine_session_open(engine_of(w, c), c->handle, number, x->base, &sizes);
    if (rc < 0)
        return rc;
    x->session = (uint32_t)rc;
    x->open = true;
    rc = channel_init(&x->channel, x->base, x->size);
    x->channel_open = rc == 0;
    return rc;
}

static int memory_open(struct world *w, struct world_client *c)
{
    int rc;

    c->length = w->options.segment_bytes ? w->options.segment_bytes : 65536;
    c->memory = map(c->length);
    if (!c->memory)
        return -ENOMEM;
    rc = engine_segment_open(engine_of(w, c), c->handle, c->memory, c->length);
    if (rc < 0)
        return rc;
    c->segment = (uint32_t)rc;
    c->segment_open = true;
    rc = engine_region_open(engine_of(w, c), c->handle, c->segment, 0, c->length,
                            ENGINE_REMOTE_READ | ENGINE_REMOTE_WRITE, &c->key);
    c->region_open = rc >= 0;
    return rc < 0 ? rc : 0;
}

int world_client_open(struct world *w, uint32_t node, uint32_t rank, uint32_t contexts)
{
    struct engine_client_info info = {
        .uid = 1000, .pid = 100 + rank, .rank = rank, .size = WORLD_CLIENTS_MAX, .job = WORLD_JOB};
    uint32_t index = w->client_count;
    struct world_client *c;
    int rc;

    if (index == WORLD_CLIENTS_MAX) {
        world_fail(w, "more than %u clients", WORLD_CLIENTS_MAX);
        return -ENOSPC;
    }
    c = &w->clients[index];
    *c = (struct world_client){.node = node, .rank = rank};
    rc = engine_client_open(w->nodes[node].engine, &info);
    if (rc < 0)
        goto fail;
    c->handle = (uint32_t)rc;
    c->live = c->open = true;
    w->client_count++;
    for (uint32_t i = 0; i < contexts; i++) {
        rc = context_open(w, c, i);
        if (rc < 0)
            goto fail;
    }
    rc = memory_open(w, c);
    if (rc < 0)
        goto fail;
    world_log(w, "client %u: rank %u on node %u", index, rank, node);
    return (int)index;
fail:
    world_fail(w, "client of rank %u on node %u does not open: %s", rank, node, strerror(-rc));
    return rc;
}

void world_client_close(struct world *w, uint32_t client)
{
    struct world_client *c = &w->clients[client];

    if (!c->live)
        return;
    world_log(w, "client %u ends", client);
    c->live = false;
    if (w->nodes[c->node].alive)
        engine_client_close(engine_of(w, c), c->handle);
}

/* From here on a touch by the engine or the fabric faults. */
static void context_gone(struct world_context *x)
{
    if (x->channel_open)
        channel_destroy(&x->channel);
    x->channel_open = x->open = false;
    if (x->base)
        munmap(x->base, x->size);
    x->base = NULL;
}

static void client_gone(struct world_client *c)
{
    for (uint32_t i = 0; i < WORLD_CONTEXTS_MAX; i++)
        context_gone(&c->contexts[i]);
    if (c->memory)
        munmap(c->memory, c->length);
    c->memory = NULL;
    c->live = c->open = c->segment_open = c->segment_ready = c->region_open = false;
}

void world_clients_forget(struct world *w, uint32_t node)
{
    for (uint32_t i = 0; i < w->client_count; i++)
        if (w->clients[i].node == node)
            client_gone(&w->clients[i]);
}

void world_clients_free(struct world *w)
{
    for (uint32_t i = 0; i < w->client_count; i++)
        client_gone(&w->clients[i]);
}

/* A handle that the arena does not know any more had ended, and only its notice was lost. */
void world_clients_attach(struct world *w, uint32_t node)
{
    struct engine *e = w->nodes[node].engine;

    requests_resume(w, node);
    for (uint32_t i = 0; i < w->client_count; i++) {
        struct world_client *c = &w->clients[i];

        if (!c->open || c->node != node)
            continue;
        for (uint32_t k = 0; k < WORLD_CONTEXTS_MAX; k++)
            if (c->contexts[k].open &&
                engine_session_attach(e, c->contexts[k].session, c->contexts[k].base) != 0) {
                if (c->live && !c->hostile)
                    world_fail(w, "session %u of client %u is lost", c->contexts[k].session, i);
                context_gone(&c->contexts[k]);
            }
        if (c->segment_open && engine_segment_attach(e, c->segment, c->memory) != 0) {
            if (c->live)
                world_fail(w, "segment %u of client %u is lost", c->segment, i);
            c->segment_open = false;
        }
        c->segment_ready = false;
        /* What control does for a client that had hung up meanwhile. */
        if (!c->live)
            engine_client_close(e, c->handle);
    }
}

/* ---- requests ------------------------------------------------------------------------------ */

static int request_new(struct world *w, uint32_t node)
{
    for (uint32_t i = 0; i < WORLD_REQUESTS_MAX; i++)
        if (!w->requests[i].used) {
            w->requests[i] = (struct world_request){.used = true, .node = node};
            return (int)i;
        }
    world_fail(w, "more than %u requests", WORLD_REQUESTS_MAX);
    return -ENOSPC;
}

static void request_done(struct world *w, uint32_t node, const struct engine_notice *notice)
{
    struct world_request *r;

    if (notice->cookie >= WORLD_REQUESTS_MAX || !w->requests[notice->cookie].used ||
        (w->requests[notice->cookie].done && !w->requests[notice->cookie].orphan) ||
        w->requests[notice->cookie].node != node) {
        world_fail(w, "node %u answers request %llu, which is not open", node,
                   (unsigned long long)notice->cookie);
        return;
    }
    r = &w->requests[notice->cookie];
    r->done = true;
    r->status = notice->status;
    r->handle = notice->handle;
    r->length = notice->length;
    r->rights = notice->rights;
}

static int request_sent(struct world *w, int request, int rc)
{
    if (rc >= 0)
        return request;
    w->requests[request].done = true;
    w->requests[request].status = rc;
    return request;
}

int world_bind(struct world *w, uint32_t client, uint32_t context, uint32_t to_client,
               uint32_t to_context, const struct engine_key *key)
{
    struct world_client *c = &w->clients[client];
    int request = request_new(w, c->node);

    if (request < 0)
        return request;
    return request_sent(
        w, request,
        engine_bind(engine_of(w, c), c->contexts[context].session, w->clients[to_client].node,
                    world_peer_of(w, to_client, to_context), key, (uint64_t)request));
}

int world_unbind(struct world *w, uint32_t client, uint32_t context, uint32_t remote)
{
    struct world_client *c = &w->clients[client];

    return engine_unbind(engine_of(w, c), c->contexts[context].session, remote);
}

int world_withdraw(struct world *w, uint32_t client)
{
    struct world_client *c = &w->clients[client];
    int request = request_new(w, c->node);

    if (request < 0)
        return request;
    c->region_open = false;
    w->requests[request].withdrawal = true;
    w->requests[request].client = client;
    return request_sent(w, request,
                        engine_region_close(engine_of(w, c), c->handle, c->key.slot,
                                            c->key.generation, (uint64_t)request));
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

/* ---- notices ------------------------------------------------------------------------------- */

static void quarantined(struct world *w, struct world_node *n, const struct engine_notice *notice)
{
    struct world_client *c = client_by_handle(w, n->number, notice->handle);

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
                context_gone(x);
                return;
            }
        }
}

static void segment_ready(struct world *w, struct world_node *n, const struct engine_notice *notice)
{
    for (uint32_t i = 0; i < w->client_count; i++) {
        struct world_client *c = &w->clients[i];

        if (c->node == n->number && c->segment_open && c->segment == notice->handle)
            c->segment_ready = notice->status == 0;
    }
    if (notice->status != 0)
        world_fail(w, "segment %u of node %u: %s", notice->handle, n->number,
                   strerror(-notice->status));
}

void world_notice(struct world *w, struct world_node *n, const struct engine_notice *notice)
{
    struct world_client *c;

    world_log(w, "node %u: notice %u handle %u node %u status %d%s%s", n->number, notice->kind,
              notice->handle, notice->node, notice->status, notice->reason ? " " : "",
              notice->reason ? notice->reason : "");
    switch (notice->kind) {
    case ENGINE_WANT_PEER:
        world_link_wanted(w, n->number, notice->node);
        break;
    case ENGINE_OFFER_READY:
        world_link_offer_ready(w, n->number, notice->node);
        break;
    case ENGINE_PEER_BROKEN:
        world_link_break(w, n->number, notice->node);
        break;
    case ENGINE_SEGMENT_READY:
        segment_ready(w, n, notice);
        break;
    case ENGINE_SEGMENT_CLOSED:
        break;
    case ENGINE_REGION_CLOSED:
    case ENGINE_BOUND:
        request_done(w, n->number, notice);
        break;
    case ENGINE_SESSION_CLOSED:
        session_closed(w, n, notice->handle);
        break;
    case ENGINE_CLIENT_CLOSED:
        c = client_by_handle(w, n->number, notice->handle);
        if (c)
            client_gone(c);
        else
            world_fail(w, "node %u ends client %u, which is not there", n->number, notice->handle);
        break;
    case ENGINE_QUARANTINED:
        quarantined(w, n, notice);
        break;
    default:
        world_fail(w, "node %u: notice of unknown kind %u", n->number, notice->kind);
    }
}

/* ---- submission ---------------------------------------------------------------------------- */

int world_submit(struct world *w, uint32_t client, uint32_t context,
                 const struct submit_record *record, const void *lid, const void *rid,
                 const void *payload)
{
    struct world_client *c = &w->clients[client];
    struct world_node *n = &w->nodes[c->node];
    int rc = channel_submit(&c->contexts[context].channel, record, lid, rid, payload);

    if (rc < 0)
        return rc;
    if (n->alive && n->armed && !n->rung && rc != 1)
        world_fail(w, "node %u sleeps and client %u was not told to ring", c->node, client);
    n->rung |= rc == 1;
    w->idle = 0;
    return 0;
}
