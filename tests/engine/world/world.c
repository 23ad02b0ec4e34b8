/* The world's nodes and its time (world.h). Thread: one. */
#include "tests/engine/world/world.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "tests/engine/bench/peek.h"
#include "tests/engine/world/pages.h"

#define ROUND_NS        400u  /* time that passes in a busy round, at most */
#define IDLE_ROUNDS_MAX 5000u /* the most idle rounds in a row */

void world_fail(struct world *w, const char *format, ...)
{
    va_list args;

    if (w->failed)
        return;
    w->failed = true;
    va_start(args, format);
    vsnprintf(w->failure, sizeof w->failure, format, args);
    va_end(args);
    world_log(w, "FAILURE %s", w->failure);
}

void world_log(struct world *w, const char *format, ...)
{
    va_list args;

    if (!w->options.trace)
        return;
    fprintf(w->options.trace, "%12llu ", (unsigned long long)sim_now(w->sim));
    va_start(args, format);
    vfprintf(w->options.trace, format, args);
    va_end(args);
    fputc('\n', w->options.trace);
}

/* ---- nodes --------------------------------------------------------------------------------- */

static void meddle(struct world_node *n)
{
    if (n->world->meddle)
        n->world->meddle(n->world->meddle_context, n->world, n->number);
}

static void host_wake(void *context, uint32_t session, uint32_t mode)
{
    /* Clients here never sleep: they look at their rings in each round. */
    meddle(context);
}

static void host_random(void *context, void *to, size_t size)
{
    struct world_node *n = context;

    sim_random_fill(&n->random, to, size);
}

static bool host_faulted(void *context, uint32_t handle)
{
    struct world_node *n = context;
    struct world *w = n->world;

    meddle(n);
    for (uint32_t i = 0; i < w->client_count; i++) {
        struct world_client *c = &w->clients[i];

        if (c->node == n->number && c->handle == handle && c->live && c->faulted) {
            c->faulted = false;
            return true;
        }
    }
    return false;
}

static uint32_t limit(uint32_t asked, uint32_t ours)
{
    return asked ? asked : ours;
}

static struct engine_config config_of(const struct world_options *o, uint32_t node)
{
    const struct engine_config *l = &o->limits;

    return (struct engine_config){
        .self = node,
        .peers = o->nodes,
        .clients_max = limit(l->clients_max, 8),
        .sessions_max = limit(l->sessions_max, 16),
        .segments_max = limit(l->segments_max, 16),
        .regions_max = limit(l->regions_max, 32),
        .remotes_max = limit(l->remotes_max, 128),
        .flows_max = limit(l->flows_max, 64),
        .chunks_max = limit(l->chunks_max, 64),
        .team_bytes = l->team_bytes,
        .ledger_bytes = l->ledger_bytes ? l->ledger_bytes : 1u << 20,
        .ledger_start = limit(l->ledger_start, 16384),
        .ledger_max = limit(l->ledger_max, 65536),
        .packed_max = limit(node == 0 ? o->first_packed_max : 0, limit(l->packed_max, 1024)),
        .spill_max = limit(l->spill_max, 32768),
        .ops_max = limit(l->ops_max, 4096),
        .binds_client = l->binds_client,
        .binds_user = limit(l->binds_user, UINT32_MAX), /* all clients are of one user */
        .pairs_client = l->pairs_client,
        .pairs_user = limit(l->pairs_user, UINT32_MAX),
        .chunks_client = l->chunks_client,
        .chunks_user = limit(l->chunks_user, UINT32_MAX),
        .protocol = o->protocol,
        .stripe_min = l->stripe_min,
        .piece_bytes = l->piece_bytes,
        .window_bytes = l->window_bytes,
        .collectives = l->collectives,
        .handler_us = l->handler_us,
        .handler_turn = l->handler_turn,
        .handler_share = l->handler_share,
        .keepalive_ns = l->keepalive_ns ? l->keepalive_ns : ENGINE_NO_KEEPALIVE,
        .peer_deadline_ns = l->peer_deadline_ns,
    };
}

bool world_call(struct world *w, struct world_node *n, void (*call)(void *), void *argument)
{
    if (!n->alive)
        return false;
    if (!w->guard) {
        call(argument);
    } else if (!w->guard(w->guard_context, n, call, argument)) {
        world_node_crash(w, n->number);
        n->reopen_at = w->rounds + w->reopen_rounds;
    }
    return n->alive;
}

struct open_call {
    struct world_node *node;
    uint64_t now;
    int result;
};

static void call_open(void *argument)
{
    struct open_call *c = argument;
    struct world_node *n = c->node;

    c->result =
        engine_open(&n->config, n->arena, n->memory, n->fabric, &n->host, c->now, &n->engine);
}

/* Starts a process. Returns 0 also when it has died while it opened the arena. */
static int node_start(struct world *w, struct world_node *n)
{
    struct open_call c = {.node = n, .now = sim_now(w->sim)};
    int rc;

    n->memory = pages_take(n->memory_bytes);
    if (!n->memory)
        return -ENOMEM;
    rc = sim_fabric_open(w->sim, n->number, &n->fabric);
    if (rc != 0)
        return rc;
    if (w->options.owner)
        poke_owner(n->memory, w->options.owner);
    n->alive = true;
    n->armed = false;
    n->deadline = 0;
    n->reopen_at = 0;
    if (!world_call(w, n, call_open, &c))
        return 0;
    n->alive = c.result == 0;
    return c.result;
}

static int node_open(struct world *w, uint32_t number)
{
    struct world_node *n = &w->nodes[number];
    int rc;

    n->world = w;
    n->number = number;
    n->budget_max = 64;
    n->config = config_of(&w->options, number);
    rc = engine_config_check(&n->config);
    if (rc != 0)
        return rc;
    n->random.state = sim_random_next(&w->random);
    n->host = (struct engine_host){
        .context = n, .wake = host_wake, .random = host_random, .faulted = host_faulted};
    n->arena_bytes = engine_arena_bytes(&n->config);
    n->memory_bytes = engine_private_bytes(&n->config);
    n->arena = pages_take(n->arena_bytes);
    if (!n->arena)
        return -ENOMEM;
    return node_start(w, n);
}

void world_node_crash(struct world *w, uint32_t node)
{
    struct world_node *n = &w->nodes[node];

    if (!n->alive)
        return;
    world_log(w, "node %u dies", node);
    n->alive = false;
    n->deaths++;
    fabric_close(n->fabric);
    pages_give(n->memory, n->memory_bytes);
    n->memory = NULL;
    n->engine = NULL;
    world_link_node_gone(w, node);
}

void world_node_reopen(struct world *w, uint32_t node, bool fresh)
{
    struct world_node *n = &w->nodes[node];
    int rc;

    world_log(w, "node %u opens again%s", node, fresh ? ", its state lost" : "");
    if (fresh) {
        world_clients_forget(w, node);
        pages_give(n->arena, n->arena_bytes);
        n->arena = pages_take(n->arena_bytes);
    }
    rc = n->arena ? node_start(w, n) : -ENOMEM;
    if (rc != 0)
        world_fail(w, "node %u does not open again: %s", node, strerror(-rc));
    else if (n->alive)
        world_clients_attach(w, node);
    if (n->alive)
        world_links_resume(w, node);
}

/* ---- time ---------------------------------------------------------------------------------- */

struct step_call {
    struct world_node *node;
    uint64_t now;
    int budget;
    int work;
};

static void call_step(void *argument)
{
    struct step_call *c = argument;

    c->work = engine_step(c->node->engine, c->now, c->budget, &c->node->deadline);
}

static uint32_t take_notices(struct world *w, struct world_node *n)
{
    struct engine_notice notice;
    uint32_t count = 0;

    while (n->alive && engine_notice(n->engine, &notice) == 1) {
        world_notice(w, n, &notice);
        count++;
    }
    return count;
}

/* Makes a step of the node. Returns the work done, control's included. */
static uint32_t node_step(struct world *w, struct world_node *n)
{
    struct step_call c = {
        .node = n,
        .now = sim_now(w->sim),
        .budget = (int)sim_random_range(&w->random, 1, n->budget_max),
    };

    if (n->armed)
        engine_disarm(n->engine);
    n->armed = false;
    n->steps++;
    if (!world_call(w, n, call_step, &c))
        return 1;
    if (c.work < 0)
        world_fail(w, "engine_step of node %u: %s", n->number, strerror(-c.work));
    if (peek_flow_ahead(n->engine) != NONE)
        world_fail(w, "flow %u of node %u: an operation has left that is to be staged again",
                   peek_flow_ahead(n->engine), n->number);
    n->work += (uint64_t)(c.work > 0 ? c.work : 0);
    return (uint32_t)c.work + take_notices(w, n);
}

/* Lets time pass. Returns how many things control had to do. */
static uint32_t pass_to(struct world *w, uint64_t time)
{
    struct sim_entry entry;
    uint32_t count = 0;

    sim_advance(w->sim, time);
    for (; !w->failed && sim_timeline_take(&w->agenda, sim_now(w->sim), &entry); count++)
        world_link_step(w, &entry);
    return count;
}

/* Called when no node has anything to do: all nodes arm, as before they sleep, and time jumps to
 * what comes next. */
static bool sleep_until_next(struct world *w)
{
    uint64_t next = sim_next(w->sim);
    uint64_t agenda = sim_timeline_next(&w->agenda);

    next = agenda < next ? agenda : next;
    for (uint32_t i = 0; i < w->options.nodes; i++) {
        struct world_node *n = &w->nodes[i];

        if (!n->alive)
            continue;
        if (!n->armed && engine_arm(n->engine) != 0)
            return true;
        if (!n->armed)
            n->rung = false;
        n->armed = true;
        next = n->deadline < next ? n->deadline : next;
    }
    if (next == UINT64_MAX)
        return false;
    pass_to(w, next > sim_now(w->sim) ? next : sim_now(w->sim) + 1);
    return true;
}

bool world_round(struct world *w)
{
    uint32_t order[WORLD_NODES_MAX] = {0}, work = 0, skipped = 0;
    bool reopening = false;

    if (w->failed)
        return false;
    w->rounds++;
    for (uint32_t i = 0; i < w->options.nodes; i++) {
        struct world_node *n = &w->nodes[i];

        if (n->alive || !n->reopen_at)
            continue;
        reopening = true;
        if (w->rounds >= n->reopen_at)
            world_node_reopen(w, i, false);
    }
    for (uint32_t i = 0; i < w->options.nodes; i++) {
        uint32_t at = (uint32_t)sim_random_below(&w->random, i + 1);

        order[i] = order[at];
        order[at] = i;
    }
    for (uint32_t i = 0; i < w->options.nodes; i++) {
        struct world_node *n = &w->nodes[order[i]];

        if (!n->alive)
            continue;
        if (w->idle == 0 && sim_random_below(&w->random, 8) == 0)
            skipped++;
        else
            work += node_step(w, n);
        work += pass_to(w, sim_now(w->sim) + sim_random_below(&w->random, ROUND_NS));
    }
    for (uint32_t i = 0; i < w->options.nodes; i++)
        work += w->nodes[i].alive && sim_waiting(w->sim, i) > 0;
    if (sim_fault(w->sim))
        world_fail(w, "fabric: %s", sim_fault(w->sim));
    w->idle = work || skipped ? 0 : w->idle + 1;
    if (w->idle == 0)
        return !w->failed;
    if (w->idle > IDLE_ROUNDS_MAX) /* only timers come, again and again, and nothing else moves */
        return false;
    return (sleep_until_next(w) || reopening) && !w->failed;
}

bool world_settle(struct world *w, uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++)
        if (!world_round(w))
            return !w->failed;
    return false;
}

int world_open(const struct world_options *options, struct world **out)
{
    struct world *w = calloc(1, sizeof *w);
    struct sim_options sim = options->sim;
    int rc;

    if (!w)
        return -ENOMEM;
    w->options = *options;
    w->random.state = options->seed * 2 + 1;
    sim.seed = options->seed;
    sim.nodes = options->nodes;
    rc = options->nodes >= 1 && options->nodes <= WORLD_NODES_MAX ? sim_world_open(&sim, &w->sim)
                                                                  : -EINVAL;
    if (rc != 0)
        goto fail;
    sim_trace(w->sim, options->trace);
    world_links_open(w);
    for (uint32_t i = 0; i < options->nodes; i++) {
        rc = node_open(w, i);
        if (rc != 0)
            goto fail;
    }
    *out = w;
    return 0;
fail:
    world_close(w);
    return rc;
}

void world_close(struct world *w)
{
    for (uint32_t i = 0; i < w->options.nodes && i < WORLD_NODES_MAX; i++) {
        struct world_node *n = &w->nodes[i];

        pages_give(n->memory, n->memory_bytes);
        pages_give(n->arena, n->arena_bytes);
    }
    world_clients_free(w);
    if (w->sim)
        sim_world_close(w->sim);
    sim_timeline_free(&w->agenda);
    free(w);
}
