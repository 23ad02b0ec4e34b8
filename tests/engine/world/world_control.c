/*
 * The commands of the world's control to an engine about clients, each a call in which the node may
 * die; and the repetition of a command until it is answered (world.h). Thread: one.
 */
#include <errno.h>
#include "tests/engine/world/world.h"

#define ROUNDS_MAX 100000u

struct command_call {
    struct engine *engine;
    struct world_command *command;
};

static void carry_out(void *argument)
{
    struct command_call *call = argument;
    struct engine *e = call->engine;
    struct world_command *c = call->command;

    switch (c->kind) {
    case WORLD_CLIENT_OPEN:
        c->result = engine_client_open(e, &c->info);
        break;
    case WORLD_CLIENT_CLOSE:
        engine_client_close(e, c->client);
        break;
    case WORLD_SESSION_OPEN:
        c->result = engine_session_open(e, c->client, c->context, c->base, &c->sizes, 0);
        break;
    case WORLD_SESSION_ATTACH:
        c->result = engine_session_inherit(e, c->handle, c->base);
        break;
    case WORLD_SESSION_CLOSE:
        engine_session_close(e, c->handle);
        break;
    case WORLD_SEGMENT_OPEN:
        c->result = engine_segment_open(e, c->client, c->base, c->length);
        break;
    case WORLD_SEGMENT_ATTACH:
        c->result = engine_segment_inherit(e, c->handle, c->base);
        break;
    case WORLD_SEGMENT_CLOSE:
        c->result = engine_segment_close(e, c->client, c->handle);
        break;
    case WORLD_REGION_OPEN:
        c->result =
            engine_region_open(e, c->client, c->handle, c->offset, c->length, c->rights, &c->key);
        break;
    case WORLD_REGION_CLOSE:
        c->result = engine_region_close(e, c->client, c->key.slot, c->key.generation, c->cookie);
        break;
    case WORLD_BIND:
        c->result =
            engine_bind(e, c->handle, c->peer, c->endpoint, c->has_key ? &c->key : NULL, c->cookie);
        break;
    case WORLD_UNBIND:
        c->result = engine_unbind(e, c->handle, c->remote);
        break;
    }
}

bool world_command(struct world *w, uint32_t node, struct world_command *c)
{
    struct world_node *n = &w->nodes[node];
    struct command_call call = {.engine = n->engine, .command = c};

    c->result = 0;
    return world_call(w, n, carry_out, &call);
}

/* Whether the answer to a repeated command means that the first one was carried out. */
static bool is_done(const struct world_command *c)
{
    return c->result == -EINVAL && (c->kind == WORLD_UNBIND || c->kind == WORLD_SEGMENT_CLOSE ||
                                    c->kind == WORLD_REGION_CLOSE);
}

int world_insist(struct world *w, uint32_t node, struct world_command *c)
{
    bool died = false;

    for (uint32_t i = 0; i < ROUNDS_MAX && !w->failed; i++) {
        if (!w->nodes[node].alive) {
            died = true;
        } else if (!world_command(w, node, c)) {
            died = true;
            continue;
        } else if (!died || c->result >= 0) {
            return c->result;
        } else if (is_done(c)) {
            return 0;
        } else if (c->result != -EADDRINUSE) { /* else what the first call opened is ending */
            return c->result;
        }
        world_round(w);
    }
    world_fail(w, "node %u never answers command %u", node, c->kind);
    return -ETIMEDOUT;
}
