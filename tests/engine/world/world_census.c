/* What a node's tables hold, and that in the end they hold nothing (world.h). Thread: one. */
#include <stdio.h>
#include <string.h>
#include "daemon/engine/state/state.h"
#include "tests/engine/world/world.h"

#define ROUNDS_MAX 40000u

static void count_tables(const struct engine *e, struct world_census *c)
{
    for (uint32_t i = 0; i < e->config.clients_max; i++)
        c->clients += e->clients[i].state != CLIENT_FREE;
    for (uint32_t i = 0; i < e->config.sessions_max; i++)
        c->sessions += e->sessions[i].state != SESSION_FREE;
    for (uint32_t i = 0; i < e->config.segments_max; i++) {
        c->segments += e->segments[i].state != SEGMENT_FREE;
        c->busy += e->segment_live[i].busy;
    }
    for (uint32_t i = 0; i < e->config.regions_max; i++)
        c->regions += e->regions[i].state != REGION_FREE;
    for (uint32_t i = 0; i < e->config.remotes_max; i++) {
        c->grants += e->grants[i].region != NONE;
        c->remotes += e->remotes[i].state != REMOTE_FREE;
        c->busy += e->remote_busy[i];
    }
    for (uint32_t i = 0; i < e->config.flows_max; i++) {
        c->flows += e->flows[i].state != FLOW_FREE;
        c->busy += e->flow_live[i].outstanding;
    }
    for (uint32_t i = 0; i < e->config.flows_max; i++)
        c->inflows += e->inflows[i].state != INFLOW_FREE;
}

void world_census(struct world *w, uint32_t node, struct world_census *out)
{
    const struct engine *e = w->nodes[node].engine;

    *out = (struct world_census){.chunks = e->pool.state->count - e->pool.state->free};
    count_tables(e, out);
    for (uint32_t i = 0; i < e->config.nodes; i++) {
        for (uint32_t k = 0; k < NOTES_QUEUES; k++)
            out->notes += (uint32_t)queue_count(&e->peers[i].notes[k].queue);
        out->sent += (uint32_t)queue_count(&e->peers[i].sent);
    }
}

/* A node opens with empty tables. */
static bool is_empty(const struct world_census *c)
{
    static const struct world_census nothing;

    return memcmp(c, &nothing, sizeof *c) == 0;
}

static bool all_empty(struct world *w)
{
    struct world_census c;

    for (uint32_t i = 0; i < w->client_count; i++)
        if (w->clients[i].open)
            return false;
    for (uint32_t node = 0; node < w->options.nodes; node++) {
        if (!w->nodes[node].alive)
            return false;
        world_census(w, node, &c);
        if (!is_empty(&c))
            return false;
    }
    return true;
}

static void tell(struct world *w, uint32_t node)
{
    struct world_census c;

    if (!w->nodes[node].alive) {
        world_fail(w, "node %u is dead in the end", node);
        return;
    }
    world_census(w, node, &c);
    if (!is_empty(&c))
        world_fail(w,
                   "node %u is left with %u clients, %u sessions, %u segments, %u regions, %u "
                   "grants, %u remotes, %u flows, %u inflows, %u notes, %u records sent, %u "
                   "chunks, %u operations",
                   node, c.clients, c.sessions, c.segments, c.regions, c.grants, c.remotes, c.flows,
                   c.inflows, c.notes, c.sent, c.chunks, c.busy);
}

void world_leave(struct world *w)
{
    for (uint32_t i = 0; i < w->client_count; i++)
        world_client_close(w, i);
    for (uint32_t i = 0; i < ROUNDS_MAX && !w->failed && !all_empty(w); i++)
        if (!world_round(w))
            break;
    for (uint32_t i = 0; i < w->client_count; i++)
        if (w->clients[i].open)
            world_fail(w, "the client of rank %u on node %u never ends", w->clients[i].rank,
                       w->clients[i].node);
    for (uint32_t node = 0; node < w->options.nodes && !w->failed; node++)
        tell(w, node);
}
