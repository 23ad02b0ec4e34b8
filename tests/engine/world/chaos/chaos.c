/* One random run (chaos.h). Thread: one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/engine/world/chaos/chaos_state.h"
#include "tests/engine/world/model/model_counters.h"
#include "tests/engine/world/model/model_counts.h"

/* ---- operations ---------------------------------------------------------------------------- */

/* Whether a slot's last operation is over. It is not over while bytes or events may still come: the
 * operation of a dead client may still land, and the event of an operation whose outcome its origin
 * does not know may still come, and be compared with the data. */
static bool slot_over(const struct chaos *c, uint32_t taken)
{
    const struct model_op *op;

    if (taken == 0)
        return true;
    op = &c->model.ops[taken - 1];
    if (op->local_status == -ECONNABORTED && !op->remote_seen && !c->model.ends[op->to].dead)
        return false;
    if (op->shaken && op->flags & PWC_LCE_SOURCE && !op->remote_seen && !(op->flags & PWC_NO_RCE) &&
        !c->model.ends[op->to].dead)
        return false; /* the model does not wait for the event, but it may come */
    return !c->model.ends[op->from].dead && !model_busy(&c->model, taken - 1);
}

static uint32_t free_slot(struct chaos *c, uint32_t end, uint32_t half)
{
    uint32_t first = below(c, SLOTS);

    for (uint32_t i = 0; i < SLOTS; i++) {
        uint32_t slot = (first + i) % SLOTS;

        if (half == 0 && slot == COUNTERS_SLOT)
            continue;
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
                                     PWC_UNORDERED,
                                     PWC_NOTIFY,
                                     PWC_NOTIFY | PWC_NO_LCE};
    static const uint32_t limits[] = {1, 9, 257, SLOT_BYTES + 1};
    static const enum path_kind kinds[] = {PATH_PUT, PATH_PUT, PATH_GET, PATH_SIGNAL};

    struct model_op op = {
        .from = from,
        .to = to,
        .kind = kinds[below(c, sizeof kinds / sizeof *kinds)],
        .flags = flags[below(c, sizeof flags / sizeof *flags)],
        .length = below(c, limits[below(c, 4)]),
        .lid_len = some_id_length(c),
        .rid_len = some_id_length(c),
        .pieces = below(c, 3) ? 0 : 2 + below(c, 8),
    };

    /* A put with a signal has no remote event. So it must not have PWC_LCE_SOURCE: nothing would
     * say when its payload has been placed, and other operations use the place later. */
    if (op.kind == PATH_SIGNAL) {
        op.flags &= PWC_NO_LCE | PWC_FENCE | PWC_UNORDERED;
        op.pieces = 0;
    }
    return op;
}

/* Returns the remote from one end to another, which is bound first if needed; NULL while it is not
 * bound. */
const struct chaos_remote *chaos_remote_of(struct chaos *c, uint32_t from, uint32_t to)
{
    struct chaos_remote *r = &c->remotes[from][to];
    const struct engine_key *key = &context_of(c, to)->key;
    struct world_request *request;

    if (r->state == CHAOS_NONE && end_lives(c, to)) {
        r->key = *key;
        r->request = world_bind(c->world, from % c->clients, context_number(c, from),
                                to % c->clients, context_number(c, to), key);
        r->state = r->request < 0 ? CHAOS_FAILED : CHAOS_ASKED;
    }
    if (r->state == CHAOS_ASKED) {
        request = &c->world->requests[r->request];
        if (!request->done)
            return NULL;
        r->state = request->status == 0 ? CHAOS_BOUND : CHAOS_FAILED;
        r->handle = request->handle;
        world_request_free(c->world, r->request);
        if (request->status != 0 && request->status != -EHOSTDOWN &&
            request->status != -EHOSTUNREACH && request->status != -EKEYREJECTED &&
            request->status != -ECONNABORTED)
            world_fail(c->world, "bind %u->%u: %s", from, to, strerror(-request->status));
        if (memcmp(&r->key, key, sizeof *key) != 0)
            r->state = CHAOS_NONE; /* the key was withdrawn meanwhile */
        else if (request->status == -EKEYREJECTED && end_lives(c, to))
            world_fail(c->world, "bind %u->%u: a good key is rejected", from, to);
    }
    return r->state == CHAOS_BOUND ? r : NULL;
}

/* Submits some atomics in a row, which the engine may make a batch of. */
static void submit_atomics(struct chaos *c, uint32_t from, uint32_t to, uint32_t remote)
{
    struct model_op op = some_op(c, from, to);
    uint32_t count = 1 + below(c, 6);

    op.kind = PATH_ATOMIC;
    op.flags &= ~PWC_LCE_SOURCE;
    op.length = 8;
    op.fetch = below(c, 2);
    op.pieces = 0;
    if (op.flags & PWC_NOTIFY || count > 1)
        op.lid_len = op.rid_len = 0;
    if (c->model.ends[to].dead) {
        op.status = -EHOSTDOWN;
        op.shaken = true;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint8_t lid[MODEL_ID_MAX], rid[MODEL_ID_MAX];
        uint32_t number;
        struct path_op p;

        op.remote_offset = COUNTERS_SLOT * SLOT_BYTES + UINT64_C(8) * below(c, MODEL_COUNTERS);
        number = model_submit(&c->model, &op);
        p = (struct path_op){.kind = op.kind,
                             .from = from,
                             .remote = remote,
                             .flags = op.flags,
                             .remote_offset = op.remote_offset,
                             .length = op.length,
                             .fetch = op.fetch,
                             .lid = model_lid(&c->model, number, lid),
                             .rid = model_rid(&c->model, number, rid)};
        if (c->path.path.calls->submit(&c->path, &p) != 0) {
            model_refused(&c->model, number);
            return;
        }
        model_accepted(&c->model, number);
        world_log(c->world, "operation %u %u->%u adds to %llu flags %x fetch %d", number, from, to,
                  (unsigned long long)op.remote_offset, op.flags, op.fetch);
        c->counters->operations++;
        c->counters->atomics++;
    }
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

    if (!end_lives(c, from) || !node_lives(c, from))
        return;
    remote = chaos_remote_of(c, from, to);
    if (!remote)
        return;
    if (!crowd && below(c, 6) == 0) {
        submit_atomics(c, from, to, remote->handle);
        return;
    }
    op = some_op(c, from, to);
    if (op.flags & PWC_NOTIFY)
        op.rid_len = 0;
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
    if (op.length && op.kind != PATH_GET)
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
        .pieces = op.pieces,
        .lid = model_lid(&c->model, number, lid),
        .rid = model_rid(&c->model, number, rid),
        .signal = model_signal(&c->model, number),
    };
    if (c->path.path.calls->submit(&c->path, &p) != 0) {
        model_refused(&c->model, number);
        return;
    }
    model_accepted(&c->model, number);
    world_log(c->world,
              "operation %u %u->%u kind %d flags %x remote %u: %llu bytes in %u, %llu to %llu",
              number, from, to, op.kind, op.flags, p.remote, (unsigned long long)op.length,
              op.pieces, (unsigned long long)op.local_offset, (unsigned long long)op.remote_offset);
    if (op.length) {
        c->slots[from][1][own] = number + 1;
        c->slots[to][0][other] = number + 1;
    }
    c->counters->operations++;
    c->counters->signals += op.kind == PATH_SIGNAL;
    c->counters->striped +=
        c->world->options.sim.rails > 1 && op.kind != PATH_GET && op.length > PACKED_MAX;
}

static uint32_t probe_end(struct chaos *c, uint32_t end)
{
    struct world_context *x = context_of(c, end);
    struct pwc_event event;
    uint32_t count = 0;

    if (!end_lives(c, end))
        return 0;
    while (!c->world->failed && channel_probe(&x->channel, PWC_ANY, PATH_EVENTS, &event) == 1) {
        count++;
        c->counters->events++;
        c->counters->errors += event.status != 0;
        world_log(c->world, "end %u: event %d from %u.%u id %llx status %d", end, event.kind,
                  pwc_peer_rank(event.peer), pwc_peer_context(event.peer),
                  (unsigned long long)event.id, event.status);
        if (pwc_peer_rank(event.peer) >= c->clients && event.kind != PWC_LOCAL)
            continue; /* an event that a hostile client has caused */
        if (!model_event(&c->model, end, &event))
            world_fail(c->world, "%s", c->model.failure);
    }
    chaos_flushes_look(c, end);
    if (channel_idle(&x->channel) && !c->world->failed && !model_idle(&c->model, end))
        world_fail(c->world, "%s", c->model.failure);
    if (!model_signals_look(&c->model))
        world_fail(c->world, "%s", c->model.failure);
    return count;
}

/* ---- random failures ------------------------------------------------------------------------ */

void chaos_end_dies(struct chaos *c, uint32_t end)
{
    if (!c->opened[end] || c->model.ends[end].dead)
        return;
    model_dead(&c->model, end);
    c->counters->deaths++;
}

static void lose(struct chaos *c, uint32_t a, uint32_t b)
{
    for (uint32_t x = 0; x < c->ends; x++)
        for (uint32_t y = 0; y < c->ends; y++)
            if (client_of(c, x)->node == a && client_of(c, y)->node == b) {
                model_shake(&c->model, x, y);
                c->remotes[x][y].state = c->remotes[y][x].state = CHAOS_NONE;
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

    for (uint32_t end = 0; end < c->ends; end++)
        if (fresh && client_of(c, end)->node == node)
            chaos_end_dies(c, end);
    c->counters->states_lost += fresh;
    world_node_reopen(c->world, node, fresh);
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
    if (a != b && !sim_is_cut(c->world->sim, a, b) && chance(c, c->plan.blackouts)) {
        world_link_blackout(c->world, a, b);
        c->restore_at[a][b] = c->world->rounds + 1 + below(c, 300);
        c->counters->blackouts++;
    }
    if (a != b && c->world->nodes[a].alive && c->world->nodes[b].alive &&
        chance(c, c->plan.link_losses))
        lose(c, a, b);
    if (chance(c, c->plan.crashes))
        crash(c, a);
    if (chance(c, c->plan.deaths) && client_of(c, end)->live &&
        c->world->nodes[client_of(c, end)->node].alive) {
        for (uint32_t i = end % c->clients; i < c->ends; i += c->clients)
            chaos_end_dies(c, i);
        world_client_close(c->world, end % c->clients);
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
        chaos_hostile_turn(c, i);
    chaos_lives_turn(c);
}

/* ---- the run ------------------------------------------------------------------------------- */

static bool all_over(const struct chaos *c)
{
    for (uint32_t i = 0; i < c->model.op_count; i++)
        if (model_busy(&c->model, i))
            return false;
    return c->model.flush_count == 0;
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

/* Checks the counts of an end to which no hostile client has put. */
static void check_counts(struct chaos *c, uint32_t end)
{
    const struct world_context *x = context_of(c, end);
    struct path_counts counts;
    char wrong[300];

    if (c->world->failed || c->model.ends[end].dead || !x->channel_open)
        return;
    counts = model_counts_of(&x->channel);
    if (model_counts_check(&c->model, end, &counts, wrong))
        world_fail(c->world, "%s", wrong);
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
        if (c->model.flush_count > 0)
            world_fail(c->world, "a flush of end %u does not end", c->model.flushes[0].from);
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
    for (uint32_t end = 0; end < c->ends && c->plan.hostile == 0; end++)
        check_counts(c, end);
}

static void count(struct chaos *c)
{
    struct counters_session session;
    struct counters_peer peer;

    for (uint32_t node = 0; node < c->nodes; node++) {
        struct engine *e = c->world->nodes[node].engine;
        uint32_t from = 0;

        while (engine_view_sessions(e, 0, &from, &session, 1) == 1)
            c->counters->spills += session.spilled;
        from = 0;
        while (engine_view_peers(e, &from, &peer, 1) == 1) {
            c->counters->starved += peer.starved;
            c->counters->grown += peer.grown;
        }
    }
    for (uint32_t i = 0; i < c->world->link_count; i++) {
        c->counters->asks += c->world->links[i].asks;
        c->counters->silences += c->world->links[i].silences;
        if (c->world->links[i].gone > 0)
            world_fail(c->world, "a peer was given up long before its deadline");
    }
    c->counters->overtaken += sim_counters(c->world->sim)->overtaken;
    c->counters->rounds += c->world->rounds;
    for (uint32_t i = 0; i < c->world->client_count; i++)
        c->counters->quarantines += c->world->clients[i].quarantined;
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
    p->blackouts = c->keepalive ? 60 : 0;
    p->link_losses = below(c, 5) == 0 ? 30 : 0;
    p->crashes = below(c, 3) == 0 ? 60 : 0;
    p->states_lost = below(c, 5) == 0 ? 3000 : 0;
    p->deaths = below(c, 4) == 0 ? 40 : 0;
    p->contexts_open = below(c, 2) * 200;
    p->contexts_close = below(c, 3) == 0 ? 40 : 0;
    p->withdrawals = below(c, 3) == 0 ? 60 : 0;
    p->unbinds = below(c, 3) == 0 ? 300 : 0;
    p->flushes = below(c, 2) * 400;
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
        .second_contexts = WORLD_SECOND_LATER,
        .segment_bytes = 2 * SLOTS * SLOT_BYTES + PATH_WORDS_BYTES,
        .limits = {.stripe_min = PACKED_MAX,
                   .piece_bytes = 64u << 2 * below(c, 3),
                   .window_bytes = 128u << 4 * below(c, 2),
                   .ledger_start = 4096,
                   .ledger_max = 4096u << 2 * below(c, 2),
                   .ledger_bytes = 256 * 1024,
                   .packed_max = PACKED_MAX,
                   .chunks_max = 64,
                   .remotes_max = 512,
                   .flows_max = 128,
                   .ops_max = 4 + below(c, 60),
                   .keepalive_ns = c->keepalive ? KEEPALIVE_NS : 0,
                   .peer_deadline_ns = c->keepalive ? DEADLINE_NS : 0,
                   .spill_max = 512 + below(c, 4000)},
        .trace = trace,
        .sim = {.ordered_write_max = ordered_max,
                .rails = ordered_max == 0 ? 1u << below(c, 3) : 1,
                .message_max = 1u << 20,
                .refuse_per_mille = below(c, 2) * 100,
                .silent_per_mille = below(c, 2) * 400,
                .outstanding_max = 2 + below(c, 30),
                .delay_max_ns = 500 + below(c, 10000),
                .call_ns = below(c, 2) * 50},
    };
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
    c->keepalive = seed % 3 == 0;
    make_plan(c);
    options = options_of(c, seed, trace);
    c->nodes = options.nodes;
    c->clients = 2 * options.nodes;
    c->ends = 2 * c->clients;
    for (uint32_t end = 0; end < c->ends; end++) {
        c->opened[end] = end < c->clients;
        c->withdrawal[end] = -1;
    }
    if (world_path_open(&c->path, &options, c->ends, failure) != 0)
        return failure;
    c->world = c->path.world;
    if (model_open(&c->model, &c->path.path) != 0) {
        world_path_close(&c->path);
        return "no memory for the model";
    }
    model_counters(&c->model, COUNTERS_SLOT * SLOT_BYTES);
    for (uint32_t end = c->clients; end < c->ends; end++)
        c->model.ends[end].dead = true;
    chaos_hostiles_open(c);
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
    if (!c->world->failed)
        world_leave(c->world);
    if (c->world->failed)
        memcpy(failure, c->world->failure, sizeof c->world->failure);
    model_close(&c->model);
    target = c->world->failed;
    world_path_close(&c->path);
    return target ? failure : NULL;
}
