/* The census: counts the entries in a node's tables, and checks that no entry is left in the end
 * (world.h). Thread: one. */
#include <stdio.h>
#include <string.h>
#include "tests/engine/bench/peek.h"
#include "tests/engine/world/world.h"

#define ROUNDS_MAX 40000u

/* Whether all tables are as empty as when the node was opened. */
static bool is_empty(const struct peek_census *c)
{
    static const struct peek_census nothing;

    return memcmp(c, &nothing, sizeof *c) == 0;
}

static bool all_empty(struct world *w)
{
    struct peek_census c;

    for (uint32_t i = 0; i < w->client_count; i++)
        if (w->clients[i].open)
            return false;
    for (uint32_t node = 0; node < w->options.nodes; node++) {
        if (!w->nodes[node].alive || peek_in_use(w->nodes[node].engine))
            return false;
        c = peek_census(w->nodes[node].engine);
        if (!is_empty(&c))
            return false;
    }
    return true;
}

static void print_census(struct world *w, uint32_t node)
{
    struct peek_census c;

    if (!w->nodes[node].alive) {
        world_fail(w, "node %u is dead in the end", node);
        return;
    }
    c = peek_census(w->nodes[node].engine);
    if (!is_empty(&c))
        world_fail(w,
                   "node %u is left with %u clients, %u sessions, %u segments, %u regions, %u "
                   "grants, %u remotes, %u flows, %u inflows, %u notes, %u records sent, %u "
                   "chunks, %u teams, %u letters, %u operations, %u entries lost, %u counts wrong",
                   node, c.clients, c.sessions, c.segments, c.regions, c.grants, c.remotes, c.flows,
                   c.inflows, c.notes, c.sent, c.chunks, c.teams, c.letters, c.busy, c.lost,
                   c.miscounted);
}

void world_check_counts(struct world *w)
{
    for (uint32_t node = 0; node < w->options.nodes; node++)
        if (w->nodes[node].alive && peek_census(w->nodes[node].engine).miscounted > 0)
            world_fail(w, "node %u has miscounted", node);
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
        print_census(w, node);
}
