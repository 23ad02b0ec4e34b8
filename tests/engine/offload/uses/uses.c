/* Runs of the uses: clients, offloads, binds, time (uses.h). Thread: one. */
#include "tests/engine/offload/uses/uses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/engine/bench/peek.h"

#define ROUNDS_MAX 100000u
#define COOKIE     UINT64_C(0xc00c1e)

/* ---- offloads and binds ---------------------------------------------------------------------- */

static struct engine *engine_of(const struct uses *u, uint32_t client)
{
    return u->world->nodes[u->world->clients[client].node].engine;
}

static uint32_t program(struct uses *u, uint32_t client)
{
    int rc = engine_program_load(engine_of(u, client), u->world->clients[client].handle, u->image,
                                 (uint32_t)u->image_bytes);

    if (rc < 0)
        world_fail(u->world, "client %u: no program: %s", client, strerror(-rc));
    return (uint32_t)rc;
}

/* Makes a region of the client's other memory too: an offload's state is a part of it. */
static void open_state(struct uses *u, uint32_t client)
{
    struct engine_key *key = &u->world->clients[client].contexts[1].key;

    if (key->generation == 0 &&
        world_region_open(u->world, client, 1, ENGINE_REMOTE_READ | ENGINE_REMOTE_WRITE, key) < 0)
        world_fail(u->world, "client %u: no region of its state", client);
}

void uses_offload(struct uses *u, uint32_t client, bool puts, uint32_t state_bytes)
{
    struct use_client *c = &u->client[client];
    const struct world_client *w = &u->world->clients[client];
    uint32_t remotes[WORLD_NODES_MAX], session = w->contexts[0].session;
    struct engine_offload_info info = {.index = USES_INDEX,
                                       .flags = u->flags | u->more_flags,
                                       .target_count = c->targets,
                                       .targets = remotes,
                                       .cookie = COOKIE,
                                       .takes = puts ? OFFLOAD_PUTS : OFFLOAD_MESSAGES};

    open_state(u, client);
    info.host = (struct engine_range){w->contexts[0].key.slot, w->contexts[0].key.generation, 0,
                                      w->contexts[0].length};
    info.state = (struct engine_range){w->contexts[1].key.slot, w->contexts[1].key.generation, 0,
                                       (state_bytes + 7u) & ~7u};
    info.program = program(u, client);
    for (uint32_t i = 0; i < c->targets; i++)
        remotes[i] = c->remote[c->target[i]];
    if (u->world->failed)
        return;
    c->offload = engine_offload_create(engine_of(u, client), session, &info, 1);
    if (c->offload < 0) {
        world_fail(u->world, "client %u: no offload: %s", client, strerror(-c->offload));
        return;
    }
    for (uint32_t i = 0; i < ROUNDS_MAX && !u->world->failed; i++) {
        if (peek_offload(engine_of(u, client), (uint32_t)c->offload).state == OFFLOAD_OPEN)
            return;
        world_round(u->world);
    }
    world_fail(u->world, "client %u: its offload never opens", client);
}

void uses_offload_end(struct uses *u, uint32_t client)
{
    uint32_t session = u->world->clients[client].contexts[0].session;
    int rc = -EAGAIN;

    for (uint32_t i = 0; i < ROUNDS_MAX && rc == -EAGAIN && !u->world->failed; i++) {
        rc = engine_offload_destroy(engine_of(u, client), session,
                                    (uint32_t)u->client[client].offload);
        world_round(u->world);
    }
    if (rc < 0)
        world_fail(u->world, "client %u: its offload does not end: %s", client, strerror(-rc));
    u->client[client].offload = -1;
}

void uses_bind(struct uses *u, const struct uses_pair *pairs, uint32_t count, bool key)
{
    int request[WORLD_REQUESTS_MAX];

    for (uint32_t i = 0; i < count && !u->world->failed; i++)
        request[i] = world_bind(u->world, pairs[i].from, 0, pairs[i].to, 0,
                                key ? &u->world->clients[pairs[i].to].contexts[0].key : NULL);
    for (uint32_t i = 0; i < count && !u->world->failed; i++) {
        int rc = world_await(u->world, request[i]);

        if (rc < 0)
            world_fail(u->world, "client %u is not bound to client %u: %s", pairs[i].from,
                       pairs[i].to, strerror(-rc));
        u->client[pairs[i].from].remote[pairs[i].to] = u->world->requests[request[i]].handle;
        world_request_free(u->world, request[i]);
    }
}

void uses_kill(struct uses *u, uint32_t client)
{
    u->client[client].dead = true;
    u->counters->ends++;
    world_client_close(u->world, client);
}

/* ---- counts ---------------------------------------------------------------------------------- */

uint64_t uses_counted(const struct uses *u, uint32_t client, enum handler_stage stage)
{
    return peek_offload(engine_of(u, client), (uint32_t)u->client[client].offload).counters[stage];
}

uint64_t uses_sent(const struct uses *u, uint32_t client)
{
    return peek_offload(engine_of(u, client), (uint32_t)u->client[client].offload).sends;
}

uint64_t uses_sends_failed(const struct uses *u, uint32_t client)
{
    return peek_offload(engine_of(u, client), (uint32_t)u->client[client].offload).sends_failed;
}

void uses_expect(struct uses *u, uint32_t client, uint64_t headers, uint64_t payloads)
{
    uint64_t found[] = {uses_counted(u, client, HANDLER_HEADER),
                        uses_counted(u, client, HANDLER_PAYLOAD)};

    if (found[0] != headers || found[1] != payloads)
        world_fail(u->world,
                   "client %u: its header handler has run %llu times, not %llu; the payload "
                   "handler %llu times, not %llu",
                   client, (unsigned long long)found[0], (unsigned long long)headers,
                   (unsigned long long)found[1], (unsigned long long)payloads);
}

void uses_expect_events(struct uses *u, uint32_t client, uint32_t event, uint32_t count)
{
    if (u->client[client].events[event] != count)
        world_fail(u->world, "client %u: %u events of kind %u, not %u", client,
                   u->client[client].events[event], event, count);
}

static void add_runs(struct uses *u)
{
    for (uint32_t i = 0; i < u->nodes; i++) {
        struct engine_offloads_view view;

        engine_view_offload_sums(u->world->nodes[i].engine, &view);
        for (uint32_t stage = 0; stage < HANDLER_STAGES; stage++) {
            uint64_t count =
                u->client[i].offload >= 0 && !u->client[i].dead ? uses_counted(u, i, stage) : 0;

            u->counters->runs += count;
            view.runs -= count < view.runs ? count : view.runs;
        }
        if (view.faults > 0)
            world_fail(u->world, "client %u: a handler has failed", i);
        for (uint32_t k = 0; k < u->count; k++) /* the run that failed the operation */
            view.runs -= u->op[k].to == i && u->op[k].status == -EREMOTEIO && view.runs > 0;
        u->counters->reruns += u->world->nodes[i].deaths == 0 && !u->client[i].dead ? view.runs : 0;
    }
}

/* ---- a run ----------------------------------------------------------------------------------- */

static bool turn(struct uses *u)
{
    bool moves = world_round(u->world), found = uses_look(u);

    if (u->use->turn)
        u->use->turn(u);
    return (moves || found) && !u->world->failed;
}

static void submit_all(struct uses *u)
{
    for (uint32_t i = 0; i < 4000 && u->count < u->wanted && !u->world->failed; i++) {
        for (uint32_t burst = uses_below(u, 2 + u->nodes); burst > 0 && u->count < u->wanted;
             burst--)
            if (!u->use->submit(u))
                break;
        turn(u);
        uses_trouble(u);
    }
}

/* Ends a run: troubles go on for a while after the last submission. */
static void finish(struct uses *u)
{
    uint32_t rounds = 0;

    for (uint32_t i = uses_below(u, 300); i > 0 && !u->world->failed; i--) {
        turn(u);
        uses_trouble(u);
    }
    uses_heal(u);
    while (turn(u) && rounds < ROUNDS_MAX)
        rounds++;
    if (rounds == ROUNDS_MAX)
        world_fail(u->world, "it never ends");
    for (uint32_t i = 0; i < u->nodes && !u->world->failed; i++)
        if (!u->client[i].dead && !message_at_rest(&u->client[i].channel))
            world_fail(u->world, "the event space of client %u is not back", i);
}

static struct world_options draw(struct uses *u, uint64_t seed, FILE *trace)
{
    static const uint64_t ordered[] = {0, 4096, UINT64_MAX};
    uint32_t packed = uses_below(u, 2) ? 512 : 1024;
    /* With few flows, handlers find no room for what they send. */
    uint32_t few = uses_below(u, 2) * (u->use->flows + uses_below(u, 2));

    u->packet = packed;
    return (struct world_options){.seed = seed,
                                  .nodes = u->nodes,
                                  .segment_bytes = USES_PART,
                                  .limits = {.remotes_max = 512,
                                             .flows_max = 512,
                                             .ledger_start = 16384,
                                             .ledger_max = 16384u << uses_below(u, 2),
                                             .ledger_bytes = 8u << 20,
                                             .packed_max = packed,
                                             .chunks_max = 256u << uses_below(u, 2),
                                             .chunks_client = few,
                                             .spill_max = 512 + uses_below(u, 8000),
                                             .handler_us = 1000000,
                                             .handler_turn = 64u << uses_below(u, 6)},
                                  .trace = trace,
                                  .sim = {.ordered_write_max = ordered[uses_below(u, 3)],
                                          .message_max = 1u << 20,
                                          .refuse_per_mille = uses_below(u, 2) * 100,
                                          .silent_per_mille = uses_below(u, 2) * 400,
                                          .delay_max_ns = 500 + uses_below(u, 10000)}};
}

/* Draws the number of nodes: few, or many, between 2 and 2, 4, ... 64. */
static uint32_t draw_nodes(struct uses *u)
{
    uint32_t most = 2u << uses_below(u, 6), nodes = most / 2 + 1 + uses_below(u, most / 2);

    return nodes < u->use->least ? u->use->least : nodes;
}

static bool open_clients(struct uses *u)
{
    for (uint32_t i = 0; i < u->nodes && !u->world->failed; i++) {
        if (world_client_open(u->world, i, i, 1) < 0)
            break;
        u->client[i].offload = -1;
        u->client[i].source_at = USES_STATE;
        memset(u->client[i].remote, 0xff, sizeof(u->client[i].remote));
    }
    world_settle(u->world, ROUNDS_MAX);
    for (uint32_t i = 0; i < u->nodes && !u->world->failed; i++) {
        message_client_open(&u->client[i].channel, u->world, i);
        message_handlers(&u->client[i].channel, true);
    }
    return !u->world->failed;
}

static void count_operations(struct uses *u)
{
    u->counters->operations += u->count;
    for (uint32_t i = 0; i < u->count; i++) {
        u->counters->failed += u->op[i].status < 0;
        u->counters->deferred += u->op[i].deferred;
    }
}

const char *uses_begin(struct uses *u, const struct world_options *options, const char *folder)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s.o", folder, u->use->object);
    u->image = uses_image(path, &u->image_bytes);
    if (!u->image)
        return "no image";
    if (world_open(options, &u->world) != 0) {
        free(u->image);
        return "the world does not open";
    }
    if (open_clients(u))
        u->use->open(u);
    return NULL;
}

void uses_work(struct uses *u)
{
    submit_all(u);
    if (!u->world->failed)
        finish(u);
}

void uses_check(struct uses *u)
{
    if (!u->world->failed)
        u->use->check(u);
    if (!u->world->failed)
        add_runs(u);
    count_operations(u);
    if (!u->world->failed)
        world_leave(u->world);
}

const char *uses_end(struct uses *u, char failure[400])
{
    bool failed = u->world->failed;

    snprintf(failure, 400, "%s, %u nodes: %.340s", u->use->name, u->nodes, u->world->failure);
    world_close(u->world);
    free(u->image);
    return failed ? failure : NULL;
}

const char *uses_run(const struct use *use, uint64_t seed, const char *folder, FILE *trace,
                     struct uses_counters *counters, char failure[400])
{
    static struct uses uses;
    struct uses *u = &uses;
    struct world_options options;
    const char *wrong;

    memset(u, 0, sizeof(*u));
    u->use = use;
    u->counters = counters;
    u->random.state = seed ^ UINT64_C(0x05e5);
    u->nodes = draw_nodes(u);
    u->wanted = 10 + uses_below(u, 300);
    options = draw(u, seed, trace);
    wrong = uses_begin(u, &options, folder);
    if (wrong)
        return wrong;
    uses_troubles_draw(u);
    uses_work(u);
    uses_check(u);
    return uses_end(u, failure);
}
