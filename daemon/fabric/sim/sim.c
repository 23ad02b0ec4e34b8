/*
 * Owns the world of the simulated fabric (sim.h), its clock, and the connections between its nodes.
 * sim_operation.c has the life of an operation, sim_network.c its life with the LogGP clock, and
 * sim_memory.c registered memory.
 *
 * Thread: the owner of the sim_world.
 */
#include "daemon/fabric/sim/sim_state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void sim_fail(struct sim_world *w, const char *format, ...)
{
    va_list args;

    if (w->faulted)
        return;
    w->faulted = true;
    va_start(args, format);
    vsnprintf(w->fault, sizeof w->fault, format, args);
    va_end(args);
    if (w->trace)
        fprintf(w->trace, "%12llu sim FAULT %s\n", (unsigned long long)w->now, w->fault);
}

void sim_log(struct sim_world *w, const char *format, ...)
{
    va_list args;

    if (!w->trace)
        return;
    fprintf(w->trace, "%12llu sim ", (unsigned long long)w->now);
    va_start(args, format);
    vfprintf(w->trace, format, args);
    va_end(args);
    fputc('\n', w->trace);
}

uint64_t sim_some_delay(struct sim_world *w)
{
    uint64_t delay;

    if (sim_has_loggp(w))
        return 0;
    delay = sim_random_range(&w->random, w->options.delay_min_ns, w->options.delay_max_ns);

    return sim_random_below(&w->random, 16) == 0 ? delay * sim_random_range(&w->random, 2, 8)
                                                 : delay;
}

void sim_schedule(struct sim_world *w, uint64_t time, enum step what, uint32_t subject, uint64_t a,
                  uint64_t b)
{
    struct sim_entry entry = {.time = time, .what = what, .subject = subject, .a = a, .b = b};

    if (sim_timeline_add(&w->timeline, &entry) != 0)
        sim_fail(w, "out of memory for the timeline (%u entries)", w->timeline.count);
}

void sim_push(struct sim_world *w, uint32_t node, const struct fabric_event *event)
{
    struct sim_node *n = &w->nodes[node];

    if (n->queue_count == n->queue_room) {
        uint32_t room = n->queue_room ? 2 * n->queue_room : 64;
        struct fabric_event *grown = malloc(room * sizeof *grown);

        if (!grown) {
            sim_fail(w, "out of memory for %u events", room);
            return;
        }
        for (uint32_t i = 0; i < n->queue_count; i++)
            grown[i] = n->queue[(n->queue_head + i) % n->queue_room];
        free(n->queue);
        n->queue = grown;
        n->queue_room = room;
        n->queue_head = 0;
    }
    n->queue[(n->queue_head + n->queue_count++) % n->queue_room] = *event;
    if (!n->roused)
        w->roused[w->roused_count++] = node;
    n->roused = true;
}

/* ---- connections --------------------------------------------------------------------------- */

/* Breaks one side of a connection: from now on its posts are lost, and it gets FABRIC_BROKEN later,
 * or never. */
static void sever(struct sim_world *w, uint32_t node, uint32_t peer)
{
    struct sim_side *side = sim_side(w, node, peer);

    if (!w->nodes[node].open || !side->connected || side->severed)
        return;
    side->severed = true;
    w->counters.breaks++;
    if (!sim_random_chance(&w->random, w->options.silent_per_mille))
        sim_schedule(w, w->now + 10 * sim_some_delay(w), STEP_BREAK, node, peer, side->generation);
}

static void broken(struct sim_world *w, uint32_t node, uint32_t peer, uint64_t generation)
{
    struct sim_side *side = sim_side(w, node, peer);
    struct fabric_event event = {.kind = FABRIC_BROKEN, .status = -ECONNRESET, .peer = peer};

    if (!w->nodes[node].open || !side->connected || side->generation != generation)
        return;
    sim_log(w, "%u sees its connection to %u broken", node, peer);
    sim_end_flight(w, node, peer, -ECONNRESET, 500);
    sim_push(w, node, &event);
}

static void forget_broken(struct sim_node *n, uint32_t peer)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < n->queue_count; i++) {
        struct fabric_event *e = &n->queue[(n->queue_head + i) % n->queue_room];

        if (e->kind != FABRIC_BROKEN || e->peer != peer)
            n->queue[(n->queue_head + kept++) % n->queue_room] = *e;
    }
    n->queue_count = kept;
}

static int sim_disconnect(struct fabric *fabric, uint32_t peer)
{
    uint32_t node;
    struct sim_world *w = sim_world_of(fabric, &node);
    struct sim_side *side;

    if (peer >= w->options.nodes)
        return -EINVAL;
    side = sim_side(w, node, peer);
    sim_log(w, "%u disconnects from %u", node, peer);
    sim_release_flight(w, node, peer);
    sim_doom_flight(w, peer, node, 1000);
    w->counters.cancelled += sim_end_flight(w, node, peer, -ECANCELED, 1000);
    side->connected = false;
    side->severed = false;
    forget_broken(&w->nodes[node], peer);
    if (peer != node)
        sever(w, peer, node);
    return 0;
}

static int sim_connect(struct fabric *fabric, uint32_t peer, const struct fabric_address *address)
{
    uint32_t node;
    struct sim_world *w = sim_world_of(fabric, &node);
    struct sim_address to;
    struct sim_side *side;
    bool dead;

    if (peer >= w->options.nodes || address->size != sizeof to)
        return -EINVAL;
    memcpy(&to, address->bytes, sizeof to);
    if (to.node != peer) {
        sim_fail(w, "node %u connects to %u with the address of %u", node, peer, to.node);
        return -EINVAL;
    }
    side = sim_side(w, node, peer);
    if (side->connected)
        sim_disconnect(fabric, peer);
    dead =
        sim_is_cut(w, node, peer) || !w->nodes[peer].open || w->nodes[peer].instance != to.instance;
    side->connected = true;
    side->severed = false;
    side->generation++;
    sim_log(w, "%u connects to %u%s", node, peer, dead ? ", in vain" : "");
    if (dead)
        sever(w, node, peer);
    return 0;
}

static int sim_address(struct fabric *fabric, struct fabric_address *out)
{
    uint32_t node;
    struct sim_world *w = sim_world_of(fabric, &node);
    struct sim_address mine = {.node = node, .instance = w->nodes[node].instance};

    *out = (struct fabric_address){.size = sizeof mine};
    memcpy(out->bytes, &mine, sizeof mine);
    return 0;
}

static void sim_close(struct fabric *fabric)
{
    uint32_t node;
    struct sim_world *w = sim_world_of(fabric, &node);
    struct sim_node *n = &w->nodes[node];

    sim_log(w, "%u closes", node);
    for (uint32_t peer = 0; peer < w->options.nodes; peer++) {
        sim_release_flight(w, node, peer);
        sim_doom_flight(w, peer, node, 1000);
    }
    sim_orphan_flight(w, node);
    n->open = false;
    for (uint32_t peer = 0; peer < w->options.nodes; peer++) {
        uint64_t generation = n->sides[peer].generation;

        n->sides[peer] = (struct sim_side){.generation = generation};
        sever(w, peer, node);
    }
    n->queue_count = 0;
    for (uint32_t i = 0; i < n->memory_room; i++)
        n->memories[i].used = n->memories[i].live = false;
}

/* ---- polling and time ----------------------------------------------------------------------- */

static void perform(struct sim_world *w, const struct sim_entry *entry)
{
    switch (entry->what) {
    case STEP_ADDED:
    case STEP_DROPPED:
        sim_memory_step(w, entry);
        break;
    case STEP_BREAK:
        broken(w, entry->subject, (uint32_t)entry->a, entry->b);
        break;
    default:
        sim_operation_step(w, entry);
    }
}

void sim_pass_time(struct sim_world *w)
{
    if (w->options.call_ns)
        sim_advance(w, w->now + sim_random_below(&w->random, w->options.call_ns + 1));
}

static int sim_poll(struct fabric *fabric, struct fabric_event *events, int room)
{
    uint32_t node;
    struct sim_world *w = sim_world_of(fabric, &node);
    struct sim_node *n = &w->nodes[node];
    int count = 0;

    sim_pass_time(w);
    for (; count < room && n->queue_count; count++) {
        events[count] = n->queue[n->queue_head];
        n->queue_head = (n->queue_head + 1) % n->queue_room;
        n->queue_count--;
    }
    return count;
}

/* Nobody sleeps in virtual time: the test looks at sim_waiting. */
static int sim_arm(struct fabric *fabric, int *descriptor)
{
    uint32_t node;
    struct sim_world *w = sim_world_of(fabric, &node);

    return w->nodes[node].queue_count ? -EAGAIN : -ENOTSUP;
}

static const struct fabric_ops sim_ops = {
    .name = "sim",
    .close = sim_close,
    .address = sim_address,
    .connect = sim_connect,
    .disconnect = sim_disconnect,
    .mem_add = sim_mem_add,
    .mem_drop = sim_mem_drop,
    .write = sim_write,
    .read = sim_read,
    .poll = sim_poll,
    .arm = sim_arm,
};

int sim_fabric_open(struct sim_world *w, uint32_t node, struct fabric **out)
{
    struct sim_node *n;

    if (node >= w->options.nodes)
        return -EINVAL;
    n = &w->nodes[node];
    if (n->open)
        return -EBUSY;
    n->open = true;
    n->instance++;
    n->handle = (struct sim_fabric){
        .fabric = {.ops = &sim_ops,
                   .traits = {.message_max = w->options.message_max,
                              .ordered_write_max = w->options.ordered_write_max,
                              .rails = w->options.rails}},
        .world = w,
        .node = node,
    };
    *out = &n->handle.fabric;
    return 0;
}

/* ---- the world ----------------------------------------------------------------------------- */

static void fill_defaults(struct sim_options *o)
{
    if (!o->nodes)
        o->nodes = 2;
    if (!o->pieces_max)
        o->pieces_max = 4;
    if (!o->delay_min_ns)
        o->delay_min_ns = 200;
    if (!o->delay_max_ns)
        o->delay_max_ns = 5000;
    if (!o->message_max)
        o->message_max = UINT64_C(1) << 30;
    if (!o->outstanding_max)
        o->outstanding_max = 64;
    if (!o->rails)
        o->rails = 1;
    if (o->rails > 1)
        o->ordered_write_max = 0;
}

int sim_world_open(const struct sim_options *options, struct sim_world **out)
{
    struct sim_world *w = calloc(1, sizeof *w);
    uint32_t nodes;

    if (!w)
        return -ENOMEM;
    w->options = *options;
    fill_defaults(&w->options);
    nodes = w->options.nodes;
    if (nodes > SIM_NODES_MAX || w->options.delay_min_ns > w->options.delay_max_ns) {
        free(w);
        return -EINVAL;
    }
    w->random.state = w->options.seed;
    w->op_free = SIM_NO_OP;
    w->nodes = calloc(nodes, sizeof *w->nodes);
    w->cut = calloc((size_t)nodes * nodes, sizeof *w->cut);
    w->roused = calloc(nodes, sizeof *w->roused);
    for (uint32_t i = 0; w->nodes && i < nodes; i++) {
        w->nodes[i].sides = calloc(nodes, sizeof *w->nodes[i].sides);
        if (!w->nodes[i].sides)
            goto no_memory;
    }
    if (!w->nodes || !w->cut || !w->roused)
        goto no_memory;
    *out = w;
    return 0;
no_memory:
    sim_world_close(w);
    return -ENOMEM;
}

void sim_world_close(struct sim_world *w)
{
    for (uint32_t i = 0; w->nodes && i < w->options.nodes; i++) {
        free(w->nodes[i].sides);
        free(w->nodes[i].memories);
        free(w->nodes[i].queue);
    }
    for (uint32_t i = 0; i < w->op_room; i++)
        free(w->ops[i].bytes);
    free(w->ops);
    free(w->nodes);
    free(w->cut);
    free(w->roused);
    sim_timeline_free(&w->timeline);
    free(w);
}

uint64_t sim_now(const struct sim_world *w)
{
    return w->now;
}

uint64_t sim_next(const struct sim_world *w)
{
    return sim_timeline_next(&w->timeline);
}

void sim_advance(struct sim_world *w, uint64_t now)
{
    struct sim_entry entry;

    while (sim_timeline_take(&w->timeline, now, &entry)) {
        if (entry.time > w->now)
            w->now = entry.time;
        perform(w, &entry);
    }
    if (now > w->now)
        w->now = now;
}

const char *sim_fault(const struct sim_world *w)
{
    return w->faulted ? w->fault : NULL;
}

const struct sim_counters *sim_counters(const struct sim_world *w)
{
    return &w->counters;
}

void sim_trace(struct sim_world *w, FILE *to)
{
    w->trace = to;
}

void sim_cut(struct sim_world *w, uint32_t a, uint32_t b)
{
    uint32_t nodes = w->options.nodes;

    sim_log(w, "link %u-%u cut", a, b);
    w->cut[a * nodes + b] = w->cut[b * nodes + a] = true;
    sim_doom_flight(w, a, b, 500);
    sim_doom_flight(w, b, a, 500);
    sever(w, a, b);
    sever(w, b, a);
}

void sim_swallow(struct sim_world *w, uint32_t from, uint32_t to)
{
    sim_log(w, "what %u sends to %u is lost", from, to);
    sim_doom_flight(w, from, to, 500);
    sever(w, from, to);
}

void sim_carry(struct sim_world *w, uint32_t from, uint32_t to)
{
    sim_log(w, "what %u sends to %u comes again", from, to);
    sim_side(w, from, to)->severed = false;
}

void sim_restore(struct sim_world *w, uint32_t a, uint32_t b)
{
    uint32_t nodes = w->options.nodes;

    sim_log(w, "link %u-%u restored", a, b);
    w->cut[a * nodes + b] = w->cut[b * nodes + a] = false;
}

bool sim_is_cut(const struct sim_world *w, uint32_t a, uint32_t b)
{
    return w->cut[a * w->options.nodes + b];
}

uint32_t sim_waiting(const struct sim_world *w, uint32_t node)
{
    return w->nodes[node].queue_count;
}

bool sim_roused(struct sim_world *w, uint32_t *node)
{
    if (w->roused_count == 0)
        return false;
    *node = w->roused[--w->roused_count];
    w->nodes[*node].roused = false;
    return true;
}

uint32_t sim_outstanding(const struct sim_world *w, uint32_t node)
{
    uint32_t count = 0;

    for (uint32_t peer = 0; peer < w->options.nodes; peer++)
        count += w->nodes[node].sides[peer].outstanding;
    return count;
}
