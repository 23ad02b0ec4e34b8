/* The world's clients: how they begin and end, and what survives a death of their daemon (world.h).
 * Thread: one. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "tests/engine/world/pages.h"
#include "tests/engine/world/teams.h"
#include "tests/engine/world/world.h"

#define RIGHTS_ALL (ENGINE_REMOTE_READ | ENGINE_REMOTE_WRITE)

/* Maps private memory, so that in a test that forks the child has a copy of its clients' memory. */
static void *map(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

struct world_client *world_client_by_handle(struct world *w, uint32_t node, uint32_t handle)
{
    for (uint32_t i = 0; i < w->client_count; i++) {
        struct world_client *c = &w->clients[i];

        if (c->open && c->node == node && c->handle == handle)
            return c;
    }
    return NULL;
}

/* ---- opening --------------------------------------------------------------------------------- */

static uint32_t or_default(uint32_t asked)
{
    return asked ? asked : SESSION_RING_MIN;
}

int world_region_open(struct world *w, uint32_t client, uint32_t context, unsigned rights,
                      struct engine_key *out)
{
    struct world_client *c = &w->clients[client];
    struct world_command command = {.kind = WORLD_REGION_OPEN,
                                    .client = c->handle,
                                    .handle = c->segments[WORLD_MAIN].handle,
                                    .offset = c->contexts[context].offset,
                                    .length = c->contexts[context].length,
                                    .rights = rights};
    int rc = world_insist(w, c->node, &command);

    *out = command.key;
    return rc < 0 ? rc : 0;
}

int world_context_open(struct world *w, uint32_t client, uint32_t number)
{
    struct world_client *c = &w->clients[client];
    struct world_context *x = &c->contexts[number];
    const struct world_options *o = &w->options;
    struct world_command command = {.kind = WORLD_SESSION_OPEN,
                                    .client = c->handle,
                                    .context = number,
                                    .sizes = {.submit = or_default(o->submit_bytes),
                                              .local = or_default(o->local_bytes),
                                              .remote = or_default(o->remote_bytes),
                                              .reply_submit = or_default(o->answer_bytes),
                                              .reply_event = or_default(o->reply_bytes)}};
    int rc;

    x->size = session_bytes(&command.sizes);
    command.base = x->base = map(x->size);
    if (!x->base)
        return -ENOMEM;
    rc = world_insist(w, c->node, &command);
    if (rc < 0) {
        world_context_gone(x);
        return rc;
    }
    x->session = (uint32_t)rc;
    x->open = true;
    rc = channel_init(&x->channel, x->base, x->size);
    x->channel_open = rc == 0;
    if (rc == 0)
        rc = pending_open(&x->channel.pending, x->channel.local.limit);
    if (rc == 0)
        rc = world_region_open(w, client, number, RIGHTS_ALL, &x->key);
    x->region_open = rc == 0;
    return rc;
}

static int segment_open(struct world *w, uint32_t client, enum world_segment_use use,
                        uint64_t length)
{
    struct world_client *c = &w->clients[client];
    struct world_segment *s = &c->segments[use];
    struct world_command command = {
        .kind = WORLD_SEGMENT_OPEN, .client = c->handle, .length = length};
    int rc;

    *s = (struct world_segment){.length = length, .memory = pages_take(length)};
    command.base = s->memory;
    if (!s->memory)
        return -ENOMEM;
    rc = world_insist(w, c->node, &command);
    s->open = rc >= 0;
    s->handle = (uint32_t)rc;
    return rc < 0 ? rc : 0;
}

int world_spare_open(struct world *w, uint32_t client)
{
    return segment_open(w, client, WORLD_SPARE, 4096);
}

int world_spare_close(struct world *w, uint32_t client)
{
    struct world_client *c = &w->clients[client];
    struct world_segment *s = &c->segments[WORLD_SPARE];
    struct world_command command = {
        .kind = WORLD_SEGMENT_CLOSE, .client = c->handle, .handle = s->handle};

    s->closing = true;
    return world_insist(w, c->node, &command);
}

int world_client_open(struct world *w, uint32_t node, uint32_t rank, uint32_t contexts)
{
    struct world_command command = {.kind = WORLD_CLIENT_OPEN,
                                    .info = {.uid = 1000,
                                             .pid = 100 + rank,
                                             .rank = rank,
                                             .size = WORLD_CLIENTS_MAX,
                                             .job = WORLD_JOB}};
    uint64_t part = w->options.segment_bytes ? w->options.segment_bytes : 65536;
    uint32_t index = w->client_count;
    struct world_client *c;
    int rc;

    if (index == WORLD_CLIENTS_MAX) {
        world_fail(w, "more than %u clients", WORLD_CLIENTS_MAX);
        return -ENOSPC;
    }
    c = &w->clients[index];
    *c = (struct world_client){.node = node, .rank = rank};
    rc = world_insist(w, node, &command);
    if (rc < 0)
        goto fail;
    c->handle = (uint32_t)rc;
    c->live = c->open = true;
    w->client_count++;
    rc = segment_open(w, index, WORLD_MAIN, WORLD_CONTEXTS_MAX * part);
    for (uint32_t i = 0; i < WORLD_CONTEXTS_MAX; i++) {
        c->contexts[i].offset = i * part;
        c->contexts[i].length = part;
        c->contexts[i].memory = c->segments[WORLD_MAIN].memory + i * part;
    }
    for (uint32_t i = 0; rc == 0 && i < contexts; i++)
        rc = world_context_open(w, index, i);
    if (rc < 0)
        goto fail;
    world_log(w, "client %u: rank %u on node %u", index, rank, node);
    return (int)index;
fail:
    world_fail(w, "client of rank %u on node %u does not open: %s", rank, node, strerror(-rc));
    return rc;
}

/* ---- closing --------------------------------------------------------------------------------- */

/* Where the node is dead, its next process ends the client. */
void world_client_close(struct world *w, uint32_t client)
{
    struct world_client *c = &w->clients[client];
    struct world_command command = {.kind = WORLD_CLIENT_CLOSE, .client = c->handle};

    if (!c->live)
        return;
    world_log(w, "client %u ends", client);
    c->live = false;
    world_requests_drop(w, client, WORLD_CONTEXTS_MAX);
    world_command(w, c->node, &command);
}

void world_context_close(struct world *w, uint32_t client, uint32_t context)
{
    struct world_client *c = &w->clients[client];
    struct world_context *x = &c->contexts[context];
    struct world_command command = {.kind = WORLD_SESSION_CLOSE, .handle = x->session};

    if (!x->open || x->closing)
        return;
    world_log(w, "context %u of client %u ends", context, client);
    x->closing = true;
    world_requests_drop(w, client, context);
    world_command(w, c->node, &command);
}

/* From here on the session's memory faults when the engine or the fabric still touches it. */
void world_context_gone(struct world_context *x)
{
    if (x->channel_open)
        channel_destroy(&x->channel);
    x->channel_open = x->open = x->closing = false;
    if (x->base)
        munmap(x->base, x->size);
    x->base = NULL;
}

void world_segment_gone(struct world_segment *s)
{
    pages_give(s->memory, s->length);
    *s = (struct world_segment){0};
}

void world_client_gone(struct world_client *c)
{
    for (uint32_t i = 0; i < WORLD_CONTEXTS_MAX; i++) {
        world_context_gone(&c->contexts[i]);
        c->contexts[i].region_open = false;
    }
    for (uint32_t i = 0; i < WORLD_SEGMENTS; i++)
        world_segment_gone(&c->segments[i]);
    c->live = c->open = false;
}

void world_clients_forget(struct world *w, uint32_t node)
{
    for (uint32_t i = 0; i < w->client_count; i++)
        if (w->clients[i].node == node) {
            world_requests_drop(w, i, WORLD_CONTEXTS_MAX);
            world_client_gone(&w->clients[i]);
        }
}

void world_clients_free(struct world *w)
{
    for (uint32_t i = 0; i < w->client_count; i++)
        world_client_gone(&w->clients[i]);
}

/* ---- taking over ----------------------------------------------------------------------------- */

/* Attaches a context again. A handle that the arena does not know any more had ended; only its
 * notice was lost. */
static void attach_context(struct world *w, struct world_client *c, struct world_context *x)
{
    struct world_command attach = {
        .kind = WORLD_SESSION_ATTACH, .handle = x->session, .base = x->base};
    struct world_command close = {.kind = WORLD_SESSION_CLOSE, .handle = x->session};

    if (!world_command(w, c->node, &attach))
        return;
    if (attach.result == 0) {
        if (x->closing)
            world_command(w, c->node, &close);
        return;
    }
    if (c->live && !c->hostile && !x->closing)
        world_fail(w, "session %u of the client of rank %u is lost", x->session, c->rank);
    world_context_gone(x);
}

static void attach_segment(struct world *w, struct world_client *c, struct world_segment *s)
{
    struct world_command attach = {
        .kind = WORLD_SEGMENT_ATTACH, .handle = s->handle, .base = s->memory};

    s->ready = false;
    if (!world_command(w, c->node, &attach) || attach.result == 0)
        return;
    if (c->live && !s->closing)
        world_fail(w, "segment %u of the client of rank %u is lost", s->handle, c->rank);
    world_segment_gone(s);
}

static bool client_exists(const struct world *w, const struct world_client *c)
{
    struct view_client view;
    uint32_t from = 0;

    while (engine_view_clients(w->nodes[c->node].engine, &from, &view, 1) == 1)
        if (view.client == c->handle)
            return true;
    return false;
}

/* Closes clients and regions that the old process had opened, but not reported when it died. */
static void end_strangers(struct world *w, uint32_t node)
{
    struct engine *e = w->nodes[node].engine;
    struct view_client client;
    struct view_region region;

    for (uint32_t from = 0; w->nodes[node].alive && engine_view_clients(e, &from, &client, 1);) {
        struct world_command close = {.kind = WORLD_CLIENT_CLOSE, .client = client.client};

        if (!world_client_by_handle(w, node, client.client))
            world_command(w, node, &close);
    }
    for (uint32_t from = 0; w->nodes[node].alive && engine_view_regions(e, &from, &region, 1);) {
        struct world_command close = {
            .kind = WORLD_REGION_CLOSE,
            .client = region.client,
            .key = {.slot = region.slot, .generation = region.generation}};
        const struct world_client *c = world_client_by_handle(w, node, region.client);
        bool known = !c;

        for (uint32_t i = 0; c && i < WORLD_CONTEXTS_MAX; i++)
            known |= c->contexts[i].key.slot == region.slot &&
                     c->contexts[i].key.generation == region.generation;
        if (!known)
            world_command(w, node, &close);
    }
}

void world_clients_attach(struct world *w, uint32_t node)
{
    const struct world_node *n = &w->nodes[node];

    for (uint32_t i = 0; i < w->client_count && n->alive; i++) {
        struct world_client *c = &w->clients[i];
        struct world_command close = {.kind = WORLD_CLIENT_CLOSE, .client = c->handle};

        if (!c->open || c->node != node)
            continue;
        if (!client_exists(w, c)) {
            if (c->live)
                world_fail(w, "the client of rank %u is lost", c->rank);
            world_client_gone(c);
            continue;
        }
        for (uint32_t k = 0; k < WORLD_CONTEXTS_MAX && n->alive; k++)
            if (c->contexts[k].open)
                attach_context(w, c, &c->contexts[k]);
        for (uint32_t k = 0; k < WORLD_SEGMENTS && n->alive; k++)
            if (c->segments[k].open)
                attach_segment(w, c, &c->segments[k]);
        /* Ends a client that had hung up meanwhile, as control does. */
        if (!c->live && n->alive)
            world_command(w, node, &close);
    }
    if (n->alive && w->teams)
        teams_attach(w->teams, node);
    if (n->alive)
        end_strangers(w, node);
    if (n->alive)
        world_requests_resume(w, node);
}

/* ---- submission ------------------------------------------------------------------------------ */

int world_submit(struct world *w, uint32_t client, uint32_t context,
                 const struct submit_record *record, const void *lid, const void *rid,
                 const void *payload)
{
    int rc =
        channel_submit(&w->clients[client].contexts[context].channel, record, lid, rid, payload);

    return rc < 0 ? rc : world_submitted(w, client, rc);
}

int world_submit_at_once(struct world *w, uint32_t client, const struct submit_record *record)
{
    int rc = channel_note(&w->clients[client].contexts[0].channel, record);

    return rc < 0 ? rc : world_submitted(w, client, rc);
}

bool world_has_room(struct world *w, uint32_t client)
{
    return channel_note_room(&w->clients[client].contexts[0].channel) == 0;
}

int world_submitted(struct world *w, uint32_t client, int rc)
{
    struct world_client *c = &w->clients[client];
    struct world_node *n = &w->nodes[c->node];

    if (n->alive && n->armed && !n->rung && rc != CHANNEL_WAKES)
        world_fail(w, "node %u sleeps and client %u was not asked to ring", c->node, client);
    n->rung |= rc == CHANNEL_WAKES;
    w->idle = 0;
    return 0;
}

bool world_taken(const struct world *w, uint32_t client, uint32_t context)
{
    const struct session_shared *shared = w->clients[client].contexts[context].base;

    return shared->submit.head == shared->submit.tail;
}
