/* Troubles of a run (uses.h). Thread: one. */
#include "tests/engine/bench/peek.h"
#include "tests/engine/offload/uses/uses.h"

void uses_troubles_draw(struct uses *u)
{
    u->trouble.breaks = uses_below(u, 2) * 20;
    u->trouble.cuts = uses_below(u, 2) * 10;
    u->trouble.deaths = uses_below(u, 2) * 5;
    u->trouble.sleeps = uses_below(u, 2) * 30;
    u->trouble.crowded = uses_below(u, 2);
}

static bool happens(struct uses *u, uint32_t per_mille)
{
    return uses_below(u, 1000) < per_mille;
}

/* Draws a link that is up, and gives its ends. Returns false if none was found. */
static bool find_link(struct uses *u, uint32_t ends[2])
{
    for (uint32_t tries = 0; tries < 64; tries++) {
        const struct world_link *l = &u->world->links[uses_below(u, u->world->link_count)];

        ends[0] = l->a;
        ends[1] = l->b;
        if (l->a != l->b && l->up[0] && l->up[1])
            return true;
    }
    return false;
}

static void trouble_links(struct uses *u)
{
    uint32_t ends[2];

    if (happens(u, u->trouble.breaks) && find_link(u, ends)) {
        world_link_break(u->world, ends[0], ends[1]);
        u->counters->breaks++;
    }
    if (u->trouble.cut && u->world->rounds >= u->trouble.restore_at) {
        world_link_restore(u->world, u->trouble.ends[0], u->trouble.ends[1]);
        u->trouble.cut = false;
    }
    if (!u->trouble.cut && happens(u, u->trouble.cuts) && find_link(u, u->trouble.ends)) {
        world_link_cut(u->world, u->trouble.ends[0], u->trouble.ends[1]);
        u->trouble.cut = true;
        u->trouble.restore_at = u->world->rounds + 1 + uses_below(u, 300);
        u->counters->cuts++;
    }
}

/* Lets other clients of all nodes seem to have had other work than handlers just now; handlers then
 * wait for turns. */
static void crowd(struct uses *u)
{
    for (uint32_t i = 0; i < u->nodes; i++)
        if (u->world->nodes[i].alive)
            poke_other_work(u->world->nodes[i].engine);
}

void uses_trouble(struct uses *u)
{
    uint32_t node = uses_below(u, u->nodes), client = uses_below(u, u->nodes);

    if (u->world->failed)
        return;
    trouble_links(u);
    if (u->trouble.crowded)
        crowd(u);
    if (happens(u, u->trouble.deaths) && u->world->nodes[node].alive) {
        world_node_crash(u->world, node);
        u->world->nodes[node].reopen_at = u->world->rounds + 1 + uses_below(u, 50);
        u->counters->deaths++;
    }
    if (happens(u, u->trouble.sleeps)) {
        u->client[client].silent = !u->client[client].silent;
        u->counters->sleeps++;
    }
}

void uses_heal(struct uses *u)
{
    if (u->world->failed)
        return;
    if (u->trouble.cut)
        world_link_restore(u->world, u->trouble.ends[0], u->trouble.ends[1]);
    u->trouble.cut = false;
    for (uint32_t i = 0; i < u->nodes; i++) {
        if (!u->world->nodes[i].alive)
            world_node_reopen(u->world, i, false);
        u->client[i].silent = false;
    }
}
