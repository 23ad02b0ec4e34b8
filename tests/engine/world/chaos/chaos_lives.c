/* Contexts, binds, flushes and withdrawals of a random run (chaos_state.h). Thread: one. */
#include "tests/engine/world/chaos/chaos_state.h"

static void context_opens(struct chaos *c, uint32_t end)
{
    if (c->opened[end] || !client_of(c, end)->live || !node_lives(c, end))
        return;
    if (world_context_open(c->world, end % c->clients, context_number(c, end)) != 0) {
        world_fail(c->world, "end %u does not open", end);
        return;
    }
    c->opened[end] = true;
    model_again(&c->model, end);
    c->counters->contexts_opened++;
}

static void context_closes(struct chaos *c, uint32_t end)
{
    if (!end_lives(c, end) || !node_lives(c, end))
        return;
    chaos_end_dies(c, end);
    world_context_close(c->world, end % c->clients, context_number(c, end));
    c->counters->contexts_closed++;
}

/* Replaces the end's key: ranks that knew the old one bind again. */
static void withdraw(struct chaos *c, uint32_t end)
{
    struct world_context *x = context_of(c, end);
    int request = c->withdrawal[end];

    if (!end_lives(c, end) || !node_lives(c, end))
        return;
    if (request >= 0 && !c->world->requests[request].done)
        return;
    if (request >= 0)
        world_request_free(c->world, request);
    c->withdrawal[end] = world_withdraw(c->world, end % c->clients, context_number(c, end));
    model_withdrawn(&c->model, end);
    if (world_region_open(c->world, end % c->clients, context_number(c, end),
                          ENGINE_REMOTE_READ | ENGINE_REMOTE_WRITE, &x->key) != 0)
        world_fail(c->world, "end %u has no new region", end);
    x->region_open = true;
    for (uint32_t from = 0; from < c->ends; from++)
        if (c->remotes[from][end].state == CHAOS_BOUND)
            c->remotes[from][end].state = CHAOS_NONE;
    world_log(c->world, "end %u withdraws", end);
    c->counters->withdrawals++;
}

static void unbind(struct chaos *c, uint32_t from, uint32_t to)
{
    struct chaos_remote *r = &c->remotes[from][to];

    if (!end_lives(c, from) || !node_lives(c, from) || r->state != CHAOS_BOUND ||
        !world_taken(c->world, from % c->clients, context_number(c, from)))
        return;
    if (world_unbind(c->world, from % c->clients, context_number(c, from), r->handle) != 0)
        world_fail(c->world, "unbind %u->%u", from, to);
    r->state = CHAOS_NONE;
    c->counters->unbinds++;
}

static void flush(struct chaos *c, uint32_t from, uint32_t to)
{
    const struct chaos_remote *r;

    if (!end_lives(c, from) || !node_lives(c, from) || model_flushing(&c->model, from))
        return;
    r = chaos_remote_of(c, from, to);
    if (!r)
        return;
    if (c->path.path.calls->flush(&c->path, from, r->handle, model_flush(&c->model, from, to)) !=
        0) {
        c->model.flush_count--; /* there was no room: forget the flush just counted */
        return;
    }
    c->counters->flushes++;
}

void chaos_flushes_look(struct chaos *c, uint32_t end)
{
    if (!c->world->failed && model_flushing(&c->model, end) &&
        !model_flushed(&c->model, end, context_of(c, end)->channel.flushed))
        world_fail(c->world, "%s", c->model.failure);
}

void chaos_lives_turn(struct chaos *c)
{
    uint32_t end = below(c, c->ends), other = below(c, c->ends);

    if (chance(c, c->plan.contexts_open))
        context_opens(c, end);
    if (chance(c, c->plan.contexts_close))
        context_closes(c, end);
    if (chance(c, c->plan.withdrawals))
        withdraw(c, end);
    if (chance(c, c->plan.unbinds))
        unbind(c, end, other);
    if (chance(c, c->plan.flushes))
        flush(c, end, other);
}
