/* One random run of messages (message_run.h). Thread: one. */
#include "tests/engine/world/messages/message_run.h"

#include <string.h>
#include "tests/engine/world/messages/message_flood.h"

struct plan {
    uint32_t messages, burst;
    uint32_t breaks, crashes, losses, deaths, silences; /* chances in a turn, per 10000 */
};

static uint32_t below(struct flood *f, uint32_t limit)
{
    return (uint32_t)sim_random_below(&f->random, limit);
}

static struct world_options options_of(struct flood *f, uint64_t seed, FILE *trace)
{
    static const uint64_t ordered[] = {0, 0, 4096, UINT64_MAX};
    uint64_t ordered_max = ordered[below(f, 4)];

    return (struct world_options){
        .seed = seed,
        .nodes = 1 + below(f, 4),
        .protocol = ordered_max == UINT64_MAX ? below(f, 4)
                    : below(f, 2)             ? ENGINE_PROTOCOL_CHAIN
                                              : ENGINE_PROTOCOL_AUTO,
        .segment_bytes = 4 * FLOOD_CLIENTS * FLOOD_SLOTS * 1024,
        .limits = {.stripe_min = 512,
                   .piece_bytes = 64u << 2 * below(f, 3),
                   .window_bytes = 256u << 4 * below(f, 2),
                   .ledger_start = 4096,
                   .ledger_max = 4096u << 2 * below(f, 2),
                   .ledger_bytes = 256 * 1024,
                   .packed_max = 64u << below(f, 3),
                   .chunks_max = below(f, 2) ? 64 : 256,
                   .ops_max = 2 + below(f, 30),
                   .spill_max = 512 + below(f, 4000)},
        .trace = trace,
        .sim = {.ordered_write_max = ordered_max,
                .rails = 1u << below(f, 3),
                .message_max = 1u << 20,
                .refuse_per_mille = below(f, 2) * 100,
                .silent_per_mille = below(f, 2) * 400,
                .outstanding_max = 2 + below(f, 30),
                .delay_max_ns = 500 + below(f, 10000),
                .call_ns = below(f, 2) * 50},
    };
}

static struct plan plan_of(struct flood *f)
{
    return (struct plan){
        .messages = 100 + below(f, 900),
        .burst = 1 + below(f, 40),
        .breaks = below(f, 3) == 0 ? 100 : 0,
        .crashes = below(f, 3) == 0 ? 60 : 0,
        .losses = below(f, 6) == 0 ? 20 : 0,
        .deaths = below(f, 4) == 0 ? 30 : 0,
        .silences = below(f, 2) * 200,
    };
}

static bool chance(struct flood *f, uint32_t of_10000)
{
    return of_10000 && below(f, 10000) < of_10000;
}

static void disturb(struct flood *f, const struct plan *p, struct message_counters *counters)
{
    struct world *w = f->world;
    uint32_t a = below(f, w->options.nodes), b = below(f, w->options.nodes);
    uint32_t client = below(f, f->clients);

    if (a != b && chance(f, p->breaks)) {
        world_link_break(w, a, b);
        counters->breaks++;
    }
    if (chance(f, p->crashes) && w->nodes[a].alive) {
        world_node_crash(w, a);
        w->nodes[a].reopen_at = w->rounds + 1 + below(f, 200);
        counters->crashes++;
    }
    if (a != b && w->nodes[a].alive && w->nodes[b].alive && chance(f, p->losses)) {
        flood_link_lost(f, a, b);
        counters->losses++;
    }
    if (!f->dead[client] && w->nodes[w->clients[client].node].alive && chance(f, p->deaths)) {
        flood_dies(f, client);
        counters->deaths++;
    }
    if (chance(f, p->silences))
        f->silent ^= 1u << client;
}

static void count(struct flood *f, struct message_counters *counters)
{
    struct counters_session session;
    struct counters_peer peer;

    for (uint32_t node = 0; node < f->world->options.nodes; node++) {
        uint32_t from = 0;

        while (engine_view_sessions(f->world->nodes[node].engine, 0, &from, &session, 1) == 1)
            counters->spilled += session.spilled;
        from = 0;
        while (engine_view_peers(f->world->nodes[node].engine, &from, &peer, 1) == 1)
            counters->starved += peer.starved;
    }
    counters->messages += f->count;
    counters->events += f->events;
    counters->replies += f->replies;
    counters->busy += f->busy;
    counters->errors += f->failed;
    counters->overtaken += sim_counters(f->world->sim)->overtaken;
}

const char *message_run(uint64_t seed, FILE *trace, struct message_counters *counters,
                        char failure[400])
{
    static struct flood flood;
    struct flood *f = &flood;
    struct world_options options;
    struct plan plan;
    struct world *w;
    bool failed;

    memset(f, 0, sizeof *f);
    f->random.state = seed ^ UINT64_C(0x3e55a6e);
    options = options_of(f, seed, trace);
    plan = plan_of(f);
    if (world_open(&options, &w) != 0)
        return "the world does not open";
    for (uint32_t i = 0; i < FLOOD_CLIENTS; i++)
        world_client_open(w, i % options.nodes, i, 1);
    world_settle(w, 10000);
    flood_open(f, w, FLOOD_CLIENTS, seed);
    f->short_of = below(f, 3) * 50;
    for (uint32_t i = 0; f->count < plan.messages && i < 3000 && !w->failed; i++) {
        for (uint32_t burst = below(f, plan.burst + 1); burst > 0; burst--)
            flood_some(f);
        world_round(w);
        disturb(f, &plan, counters);
        if (below(f, 2))
            flood_probe(f);
    }
    for (uint32_t i = 0; i < options.nodes; i++)
        if (!w->nodes[i].alive)
            world_node_reopen(w, i, false);
    flood_finish(f);
    if (!w->failed)
        count(f, counters);
    if (!w->failed)
        world_leave(w);
    failed = w->failed;
    if (failed)
        snprintf(failure, 400, "%u nodes, %.300s", options.nodes, w->failure);
    world_close(w);
    return failed ? failure : NULL;
}
