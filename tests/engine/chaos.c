/* One random run (chaos.h). Thread: one. */
#include "chaos.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "model.h"
#include "world_path.h"

#define SLOTS       8u
#define SLOT_BYTES  1024u
#define HOSTILE_MAX 2u
#define NO_SLOT     UINT32_MAX

enum remote_state { REMOTE_NONE, REMOTE_ASKED, REMOTE_BOUND, REMOTE_FAILED };

struct chaos_remote {
    enum remote_state state;
    int request;
    uint32_t handle;
};

/* What may happen in this run: chances in a turn, of 10000. */
struct chaos_plan {
    uint32_t operations;
    uint32_t link_breaks, link_cuts, link_losses, crashes, states_lost, deaths, silences;
    uint32_t hostile;
    uint32_t crowd; /* most operations are notifications towards this end, plus 1 */
};

struct chaos {
    struct world_path path;
    struct world *world;
    struct model model;
    struct sim_random random;
    struct chaos_plan plan;
    uint32_t ends, nodes;
    struct chaos_remote remotes[MODEL_ENDS_MAX][MODEL_ENDS_MAX];
    uint32_t slots[MODEL_ENDS_MAX][2][SLOTS]; /* the operation that last took it, plus 1 */
    uint32_t silent;
    uint64_t reopen_at[WORLD_NODES_MAX];
    uint64_t restore_at[WORLD_NODES_MAX][WORLD_NODES_MAX];
    uint32_t hostiles[HOSTILE_MAX];
    struct chaos_counters *counters;
};

static uint32_t below(struct chaos *c, uint32_t limit)
{
    return (uint32_t)sim_random_below(&c->random, limit);
}

static bool chance(struct chaos *c, uint32_t of_10000)
{
    return of_10000 && below(c, 10000) < of_10000;
}

static const struct world_client *client_of(const struct chaos *c, uint32_t end)
{
    return &c->world->clients[end];
}

/* ---- operations ---------------------------------------------------------------------------- */

/* Whether a slot's last operation is over. That of a dead client may still land, and the event of
 * one whose outcome its origin does not know may still come and will be compared with the data. */
static bool slot_over(const struct chaos *c, uint32_t taken)
{
    const struct model_op *op;

    if (taken == 0)
        return true;
    op = &c->model.ops[taken - 1];
    if (op->local_status == -ECONNABORTED && !op->remote_seen && !c->model.ends[op->to].dead)
        return false;
    return !c->model.ends[op->from].dead && !model_busy(&c->model, taken - 1);
}

static uint32_t free_slot(struct chaos *c, uint32_t end, uint32_t half)
{
    uint32_t first = below(c, SLOTS);

    for (uint32_t i = 0; i < SLOTS; i++) {
        uint32_t slot = (first + i) % SLOTS;

        if (slot_over(c, c->slots[end][half][slot]))
            return slot;
    }
    return NO_SLOT;
}

static uint32_t some_id_length(struct chaos *c)
{
    static const uint32_t lengths[] = {0, 0, 0, 0, 2, 7, 8, 9, 100, 255};

    return lengths[below(c, sizeof lengths / sizeof *lengths)];
}

static struct model_op some_op(struct chaos *c, uint32_t from, uint32_t to)
{
    static const unsigned flags[] = {0,
                                     0,
                                     0,
                                     0,
                                     PWC_NO_LCE,
                                     PWC_NO_RCE,
                                     PWC_NO_LCE | PWC_NO_RCE,
                                     PWC_LCE_SOURCE,
                                     PWC_FENCE,
                                     PWC_UNORDERED};
    static const uint32_t limits[] = {1, 9, 257, SLOT_BYTES + 1};

    return (struct model_op){
        .from = from,
        .to = to,
        .kind = below(c, 3) ? PATH_PUT : PATH_GET,
        .flags = flags[below(c, sizeof flags / sizeof *flags)],
        .length = below(c, limits[below(c, 4)]),
        .lid_len = some_id_length(c),
        .rid_len = some_id_length(c),
    };
}

/* The remote from one end to another, asking for it if need be; NULL when it is not there yet. */
static const struct chaos_remote *remote_of(struct chaos *c, uint32_t from, uint32_t to)
{
    struct chaos_remote *r = &c->remotes[from][to];
    struct world_request *request;

    if (r->state == REMOTE_NONE && client_of(c, to)->live) {
        r->request = world_bind(c->world, from, 0, to, 0, &client_of(c, to)->key);
        r->state = r->request < 0 ? REMOTE_FAILED : REMOTE_ASKED;
    }
    if (r->state == REMOTE_ASKED) {
        request = &c->world->requests[r->request];
        if (!request->done)
            return NULL;
        r->state = request->status == 0 ? REMOTE_BOUND : REMOTE_FAILED;
        r->handle = request->handle;
        if (request->status != 0 && request->status != -EHOSTDOWN &&
            request->status != -EHOSTUNREACH && request->status != -EKEYREJECTED &&
            request->status != -ECONNABORTED)
            world_fail(c->world, "bind %u->%u: %s", from, to, strerror(-request->status));
        if (request->status == -EKEYREJECTED && client_of(c, to)->live)
            world_fail(c->world, "bind %u->%u: a good key is rejected", from, to);
    }
    return r->state == REMOTE_BOUND ? r : NULL;
}

static void submit_one(struct chaos *c)
{
    bool crowd = c->plan.crowd && below(c, 8);
    uint32_t from = below(c, c->ends);
    uint32_t to = crowd ? c->plan.crowd - 1 : below(c, c->ends);
    uint32_t number, own = 0, other = 0;
    uint8_t lid[MODEL_ID_MAX], rid[MODEL_ID_MAX];
    const struct chaos_remote *remote;
    struct path_op p;
    struct model_op op;

    if (!client_of(c, from)->live || !c->world->nodes[client_of(c, from)->node].alive)
        return;
    remote = remote_of(c, from, to);
    if (!remote)
        return;
    op = some_op(c, from, to);
    if (crowd)
        op.length = 0;
    if (op.length) {
        own = free_slot(c, from, 1);
        other = free_slot(c, to, 0);
        if (own == NO_SLOT || other == NO_SLOT)
            return;
        op.local_offset = (SLOTS + own) * SLOT_BYTES;
        op.remote_offset = other * SLOT_BYTES + below(c, SLOT_BYTES - (uint32_t)op.length + 1);
    }
    if (c->model.ends[to].dead) {
        op.status = -EHOSTDOWN;
        op.shaken = true;
    }
    if (op.length && op.kind == PATH_PUT)
        model_fill(&c->model, from, op.local_offset, op.length, below(c, 256));
    number = model_submit(&c->model, &op);
    p = (struct path_op){
        .kind = op.kind,
        .from = from,
        .remote = remote->handle,
        .flags = op.flags,
        .remote_offset = op.remote_offset,
        .local_offset = op.local_offset,
        .length = op.length,
        .lid = model_lid(&c->model, number, lid),
        .rid = model_rid(&c->model, number, rid),
    };
    if (c->path.path.calls->submit(&c->path, &p) != 0) {
        model_refused(&c->model, number);
        return;
    }
    model_accepted(&c->model, number);
    if (op.length) {
        c->slots[from][1][own] = number + 1;
        c->slots[to][0][other] = number + 1;
    }
    c->counters->operations++;
}

static uint32_t probe_end(struct chaos *c, uint32_t end)
{
    struct world_context *x = &c->world->clients[end].contexts[0];
    struct pwc_event event;
    uint32_t count = 0;

    if (!client_of(c, end)->live || !x->channel_open)
        return 0;
    while (!c->world->failed && channel_probe(&x->channel, PWC_ANY, 0, &event) == 1) {
        count++;
        c->counters->events++;
        c->counters->errors += event.status != 0;
        if (pwc_peer_rank(event.peer) >= c->ends && event.kind == PWC_REMOTE)
            continue; /* what a hostile client has sent */
        if (!model_event(&c->model, end, &event))
            world_fail(c->world, "%s", c->model.failure);
    }
    if (channel_idle(&x->channel))
        model_idle(&c->model, end);
    return count;
}

/* ---- what goes wrong ----------------------------------------------------------------------- */

static void end_dies(struct chaos *c, uint32_t end)
{
    model_dead(&c->model, end);
    c->counters->deaths++;
}

static void lose(struct chaos *c, uint32_t a, uint32_t b)
{
    for (uint32_t x = 0; x < c->ends; x++)
        for (uint32_t y = 0; y < c->ends; y++)
            if (client_of(c, x)->node == a && client_of(c, y)->node == b) {
                model_shake(&c->model, x, y);
                c->remotes[x][y].state = c->remotes[y][x].state = REMOTE_NONE;
            }
    world_link_lost(c->world, a, b);
    c->counters->losses++;
}

static void crash(struct chaos *c, uint32_t node)
{
    if (!c->world->nodes[node].alive)
        return;
    world_node_crash(c->world, node);
    c->reopen_at[node] = c->world->rounds + 1 + below(c, 200);
    c->counters->crashes++;
}

static void reopen(struct chaos *c, uint32_t node)
{
    bool fresh = chance(c, c->plan.states_lost);

    for (uint32_t end = 0; end < c->ends; end++) {
        if (client_of(c, end)->node != node)
            continue;
        if (fresh && !c->model.ends[end].dead)
            end_dies(c, end);
        for (uint32_t to = 0; to < c->ends; to++)
            if (c->remotes[end][to].state == REMOTE_ASKED)
                c->remotes[end][to].state = REMOTE_NONE;
    }
    c->counters->states_lost += fresh;
    world_node_reopen(c->world, node, fresh);
}

static void meddle_with(struct chaos *c, struct world_client *h)
{
    struct world_context *x = &h->contexts[0];
    uint8_t *bytes = x->base;
    struct session_shared *shared = x->base;

    if (!x->open || !h->live)
        return;
    switch (below(c, 6)) {
    case 0: /* anywhere in the header */
        bytes[below(c, sizeof *shared)] = (uint8_t)below(c, 256);
        break;
    case 1: /* indices, near to what is right */
        if (below(c, 2))
            shared->submit.tail += 8 * below(c, 16);
        else
            shared->answer.tail += 8 * below(c, 16);
        break;
    case 2:
        shared->local.head += 8 * below(c, 4);
        shared->remote.head -= 8 * below(c, 4);
        shared->reply.head += 8 * below(c, 4);
        break;
    case 3: /* records */
        for (uint32_t i = 0; i < 64; i++)
            bytes[SESSION_DATA_OFFSET + below(c, 512)] ^= (uint8_t)(1u << below(c, 8));
        break;
    case 4:
        h->memory[below(c, (uint32_t)h->length)] = (uint8_t)below(c, 256);
        break;
    case 5:
        h->faulted = below(c, 20) == 0;
        break;
    }
}

static void meddle(void *context, struct world *w, uint32_t node)
{
    struct chaos *c = context;

    for (uint32_t i = 0; i < c->plan.hostile; i++) {
        struct world_client *h = &w->clients[c->hostiles[i]];

        if (h->node == node && below(c, 4) == 0)
            meddle_with(c, h);
    }
}

/* A hostile client also submits what looks right, to others of its kind and to honest ends. */
static void hostile_turn(struct chaos *c, uint32_t i)
{
    struct world_client *h = &c->world->clients[c->hostiles[i]];
    struct submit_record record;

    if (!h->live || !c->world->nodes[h->node].alive || !h->contexts[0].channel_open)
        return;
    if (below(c, 3) == 0) {
        meddle_with(c, h);
        return;
    }
    record = (struct submit_record){
        .kind = (uint8_t)below(c, 8),
        .flags = (uint16_t)(below(c, 2) ? below(c, 32) : below(c, 65536)),
        .remote = below(c, 4),
        .offset = below(c, 2) ? below(c, 1000) : sim_random_next(&c->random),
        .length = below(c, 2) ? below(c, 300) : sim_random_next(&c->random),
        .lid_len = (uint16_t)below(c, 20),
        .rid_len = (uint16_t)below(c, 20),
        .segment = below(c, 8) ? h->segment : below(c, 100),
        .local_offset = below(c, 2) ? 0 : sim_random_next(&c->random),
    };
    if (record.length > 300)
        record.flags &= (uint16_t)~SUBMIT_INLINE;
    channel_submit(&h->contexts[0].channel, &record, "twenty bytes of an id",
                   "and twenty of another", h->memory);
    c->world->idle = 0;
}

static void disturb(struct chaos *c)
{
    uint32_t a = below(c, c->nodes), b = below(c, c->nodes), end = below(c, c->ends);

    if (a != b && chance(c, c->plan.link_breaks)) {
        world_link_break(c->world, a, b);
        c->counters->breaks++;
    }
    if (a != b && !sim_is_cut(c->world->sim, a, b) && chance(c, c->plan.link_cuts)) {
        world_link_cut(c->world, a, b);
        c->restore_at[a][b] = c->world->rounds + 1 + below(c, 300);
        c->counters->cuts++;
    }
    if (a != b && c->world->nodes[a].alive && c->world->nodes[b].alive &&
        chance(c, c->plan.link_losses))
        lose(c, a, b);
    if (chance(c, c->plan.crashes))
        crash(c, a);
    if (chance(c, c->plan.deaths) && client_of(c, end)->live &&
        c->world->nodes[client_of(c, end)->node].alive) {
        end_dies(c, end);
        world_client_close(c->world, end);
    }
    if (chance(c, c->plan.silences))
        c->silent ^= 1u << end;
    for (uint32_t node = 0; node < c->nodes; node++)
        if (!c->world->nodes[node].alive && c->world->rounds >= c->reopen_at[node])
            reopen(c, node);
    for (uint32_t x = 0; x < c->nodes; x++)
        for (uint32_t y = 0; y < c->nodes; y++)
            if (c->restore_at[x][y] && c->world->rounds >= c->restore_at[x][y]) {
                c->restore_at[x][y] = 0;
                world_link_restore(c->world, x, y);
            }
    for (uint32_t i = 0; i < c->plan.hostile; i++)
        hostile_turn(c, i);
}

/* ---- the run ------------------------------------------------------------------------------- */

static bool all_over(const struct chaos *c)
{
    for (uint32_t i = 0; i < c->model.op_count; i++)
        if (model_busy(&c->model, i))
            return false;
    return true;
}

static void calm(struct chaos *c)
{
    c->silent = 0;
    c->plan = (struct chaos_plan){0};
    for (uint32_t a = 0; a < c->nodes; a++) {
        if (!c->world->nodes[a].alive)
            reopen(c, a);
        for (uint32_t b = 0; b < a; b++)
            world_link_restore(c->world, a, b);
    }
}

static void wait_for_all(struct chaos *c)
{
    for (uint32_t i = 0; !all_over(c) && !c->world->failed; i++) {
        bool more = world_round(c->world);
        uint32_t events = 0;

        for (uint32_t end = 0; end < c->ends; end++)
            events += probe_end(c, end);
        if ((more || events) && i < 100000)
            continue;
        for (uint32_t n = 0; n < c->model.op_count; n++)
            if (model_busy(&c->model, n))
                world_fail(c->world, "operation %u (%u->%u kind %d flags %x length %llu) is stuck",
                           n, c->model.ops[n].from, c->model.ops[n].to, c->model.ops[n].kind,
                           c->model.ops[n].flags, (unsigned long long)c->model.ops[n].length);
    }
    for (uint32_t i = 0; i < 32; i++) {
        world_round(c->world);
        for (uint32_t end = 0; end < c->ends; end++)
            probe_end(c, end);
    }
    if (!c->world->failed && !model_check(&c->model))
        world_fail(c->world, "%s", c->model.failure);
}

static void count(struct chaos *c)
{
    struct engine_session_view session;
    struct engine_peer_view peer;

    for (uint32_t node = 0; node < c->nodes; node++) {
        struct engine *e = c->world->nodes[node].engine;
        uint32_t from = 0;

        while (engine_view_sessions(e, &from, &session, 1) == 1)
            c->counters->spills += session.spilled;
        from = 0;
        while (engine_view_peers(e, &from, &peer, 1) == 1) {
            c->counters->starved += peer.starved;
            c->counters->grown += peer.grown;
        }
    }
    c->counters->overtaken += sim_counters(c->world->sim)->overtaken;
    c->counters->rounds += c->world->rounds;
    for (uint32_t i = 0; i < c->world->client_count; i++)
        c->counters->quarantines += c->world->clients[i].quarantined;
}

/* All clients leave: each end is confirmed, and nothing is left behind. */
static void leave(struct chaos *c)
{
    struct engine_client_view client;
    struct engine_region_view region;
    bool open = true;

    for (uint32_t i = 0; i < c->world->client_count; i++)
        world_client_close(c->world, i);
    for (uint32_t i = 0; open && !c->world->failed && i < 20000; i++) {
        bool more = world_round(c->world);

        open = false;
        for (uint32_t k = 0; k < c->world->client_count; k++)
            open |= c->world->clients[k].open;
        if (!more)
            break;
    }
    for (uint32_t node = 0; node < c->nodes && !c->world->failed; node++) {
        uint32_t from = 0;

        if (engine_view_clients(c->world->nodes[node].engine, &from, &client, 1) == 1)
            world_fail(c->world, "client of rank %u on node %u never ends", client.rank, node);
        from = 0;
        if (engine_view_regions(c->world->nodes[node].engine, &from, &region, 1) == 1)
            world_fail(c->world, "region %u on node %u is left over", region.slot, node);
    }
}

static void make_plan(struct chaos *c)
{
    struct chaos_plan *p = &c->plan;

    p->operations = 40 + below(c, 80);
    if (below(c, 4) == 0) {
        p->operations = 300 + below(c, 500);
        p->crowd = 1 + below(c, 4);
    }
    p->silences = below(c, 2) * 150;
    p->link_breaks = below(c, 3) == 0 ? 100 : 0;
    p->link_cuts = below(c, 3) == 0 ? 60 : 0;
    p->link_losses = below(c, 5) == 0 ? 30 : 0;
    p->crashes = below(c, 3) == 0 ? 60 : 0;
    p->states_lost = below(c, 5) == 0 ? 3000 : 0;
    p->deaths = below(c, 4) == 0 ? 40 : 0;
    p->hostile = below(c, 3) == 0 ? HOSTILE_MAX : 0;
}

static struct world_options options_of(struct chaos *c, uint64_t seed, FILE *trace)
{
    static const uint64_t ordered[] = {0, 0, 4096, UINT64_MAX};
    uint64_t ordered_max = ordered[below(c, 4)];

    return (struct world_options){
        .seed = seed,
        .nodes = 2 + below(c, 3),
        .protocol = ordered_max == UINT64_MAX ? below(c, 4)
                    : below(c, 2)             ? ENGINE_PROTOCOL_CHAIN
                                              : ENGINE_PROTOCOL_AUTO,
        .segment_bytes = 2 * SLOTS * SLOT_BYTES,
        .limits = {.ledger_start = 4096,
                   .ledger_max = 4096u << 2 * below(c, 2),
                   .ledger_bytes = 256 * 1024,
                   .packed_max = 256,
                   .chunks_max = 64,
                   .ops_max = 4 + below(c, 60),
                   .spill_max = 512 + below(c, 4000)},
        .trace = trace,
        .sim = {.ordered_write_max = ordered_max,
                .message_max = 1u << 20,
                .refuse_per_mille = below(c, 2) * 100,
                .silent_per_mille = below(c, 2) * 400,
                .outstanding_max = 2 + below(c, 30),
                .delay_max_ns = 500 + below(c, 10000),
                .call_ns = below(c, 2) * 50},
    };
}

static void open_hostiles(struct chaos *c)
{
    for (uint32_t i = 0; i < c->plan.hostile && !c->world->failed; i++) {
        int client = world_client_open(c->world, below(c, c->nodes), c->ends + i, 1);

        if (client < 0)
            return;
        c->hostiles[i] = (uint32_t)client;
        c->world->clients[client].hostile = true;
    }
    for (uint32_t i = 0; i < c->plan.hostile && !c->world->failed; i++) {
        uint32_t other = c->hostiles[(i + 1) % HOSTILE_MAX];

        world_bind(c->world, c->hostiles[i], 0, other, 0, &c->world->clients[other].key);
        world_bind(c->world, c->hostiles[i], 0, below(c, c->ends), 0, NULL);
    }
    c->world->meddle = meddle;
    c->world->meddle_context = c;
}

const char *chaos_run(uint64_t seed, FILE *trace, struct chaos_counters *counters,
                      char failure[400])
{
    static struct chaos chaos;
    struct chaos *c = &chaos;
    struct world_options options;
    uint32_t target;

    memset(c, 0, sizeof *c);
    c->counters = counters;
    c->random.state = seed ^ UINT64_C(0xc4a05);
    make_plan(c);
    options = options_of(c, seed, trace);
    c->nodes = options.nodes;
    c->ends = 2 * options.nodes;
    if (world_path_open(&c->path, &options, c->ends, failure) != 0)
        return failure;
    c->world = c->path.world;
    if (model_open(&c->model, &c->path.path) != 0) {
        world_path_close(&c->path);
        return "no memory for the model";
    }
    open_hostiles(c);
    if (c->plan.crowd && c->plan.silences)
        c->silent = 1u << (c->plan.crowd - 1);
    target = c->plan.operations;
    for (uint32_t i = 0; c->model.op_count < target && i < 2000 && !c->world->failed; i++) {
        for (uint32_t burst = below(c, c->plan.crowd ? 40 : 6); burst > 0; burst--)
            submit_one(c);
        world_round(c->world);
        disturb(c);
        for (uint32_t end = 0; end < c->ends; end++)
            if (!(c->silent >> end & 1) && below(c, 2))
                probe_end(c, end);
    }
    calm(c);
    wait_for_all(c);
    if (!c->world->failed)
        count(c);
    leave(c);
    if (c->world->failed)
        memcpy(failure, c->world->failure, sizeof c->world->failure);
    model_close(&c->model);
    target = c->world->failed;
    world_path_close(&c->path);
    return target ? failure : NULL;
}
