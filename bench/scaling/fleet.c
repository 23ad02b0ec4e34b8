/* The fleet's engines and its time (fleet.h). Thread: one. */
#include "bench/scaling/fleet.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define STEP_BUDGET     256   /* as a progress thread has */
#define OUTSTANDING_MAX 4096u /* posts to one peer that a card's queue holds */

void fleet_fail(struct fleet *f, const char *format, ...)
{
    va_list args;

    if (f->failed)
        return;
    f->failed = true;
    va_start(args, format);
    vsnprintf(f->failure, sizeof f->failure, format, args);
    va_end(args);
}

/* ---- engines --------------------------------------------------------------------------------- */

/* Does nothing: clients here never sleep, but look whenever the engine has worked. */
static void host_wake(void *context, uint32_t session, uint32_t mode)
{
}

static void host_random(void *context, void *to, size_t size)
{
    struct fleet_node *n = context;

    sim_random_fill(&n->random, to, size);
}

/* Maps memory; only touched pages take room. */
static void *pages(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (at == MAP_FAILED)
        return NULL;
    madvise(at, bytes, MADV_NOHUGEPAGE);
    return at;
}

static int node_open(struct fleet *f, uint32_t number)
{
    struct fleet_node *n = &f->nodes[number];
    int rc;

    n->fleet = f;
    n->due = UINT64_MAX;
    n->random.state = number;
    n->config = (struct engine_config){.self = number,
                                       .peers = f->options.peers,
                                       .flows_max = f->options.pairs,
                                       .remotes_max = f->options.pairs,
                                       .binds_user = UINT32_MAX, /* one user has all */
                                       .pairs_user = UINT32_MAX,
                                       .chunks_user = UINT32_MAX,
                                       .binds_client = UINT32_MAX,
                                       .pairs_client = UINT32_MAX,
                                       .keepalive_ns = ENGINE_NO_KEEPALIVE};
    rc = engine_config_check(&n->config);
    if (rc != 0)
        return rc;
    n->host = (struct engine_host){.context = n, .wake = host_wake, .random = host_random};
    n->arena_bytes = engine_arena_bytes(&n->config);
    n->memory_bytes = engine_private_bytes(&n->config);
    n->arena = pages(n->arena_bytes);
    n->memory = pages(n->memory_bytes);
    if (!n->arena || !n->memory)
        return -ENOMEM;
    rc = sim_fabric_open(f->sim, number, &n->fabric);
    if (rc == 0)
        rc = engine_open(&n->config, n->arena, n->memory, n->fabric, &n->host, 0, &n->engine);
    return rc;
}

int fleet_open(const struct fleet_options *options, struct fleet **out)
{
    struct sim_options sim = {.nodes = options->nodes,
                              .ordered_write_max = UINT64_MAX,
                              .outstanding_max = OUTSTANDING_MAX,
                              .loggp = options->loggp};
    struct fleet *f = calloc(1, sizeof *f);
    int rc;

    if (!f)
        return -ENOMEM;
    f->options = *options;
    if (f->options.peers == 0)
        f->options.peers = options->nodes;
    f->nodes = calloc(options->nodes, sizeof *f->nodes);
    f->queue = calloc(options->nodes, sizeof *f->queue);
    f->up = calloc((size_t)options->nodes * options->nodes, 1);
    rc = f->nodes && f->queue && f->up ? sim_world_open(&sim, &f->sim) : -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < options->nodes; i++)
        rc = node_open(f, i);
    if (rc == 0)
        *out = f;
    else
        fleet_close(f);
    return rc;
}

void fleet_close(struct fleet *f)
{
    for (uint32_t i = 0; f->nodes && i < f->options.nodes; i++) {
        if (f->nodes[i].arena)
            munmap(f->nodes[i].arena, f->nodes[i].arena_bytes);
        if (f->nodes[i].memory)
            munmap(f->nodes[i].memory, f->nodes[i].memory_bytes);
    }
    if (f->sim)
        sim_world_close(f->sim);
    sim_timeline_free(&f->agenda);
    free(f->nodes);
    free(f->queue);
    free(f->up);
    free(f);
}

static uint64_t resident(void *at, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = (bytes + page - 1) / page, there = 0;
    unsigned char *map = malloc(count);

    if (map && mincore(at, bytes, map) == 0)
        for (size_t i = 0; i < count; i++)
            there += map[i] & 1;
    free(map);
    return there * page;
}

uint64_t fleet_resident(const struct fleet *f, uint32_t node)
{
    const struct fleet_node *n = &f->nodes[node];

    return resident(n->arena, n->arena_bytes) + resident(n->memory, n->memory_bytes);
}

/* ---- time ------------------------------------------------------------------------------------ */

static uint64_t real_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

void fleet_rouse(struct fleet *f, uint32_t node)
{
    if (f->nodes[node].queued)
        return;
    f->nodes[node].queued = true;
    f->queue[(f->queue_head + f->queue_count++) % f->options.nodes] = node;
}

static void step(struct fleet *f, uint32_t node)
{
    struct fleet_node *n = &f->nodes[node];
    struct engine_notice notice;
    uint64_t deadline, start = real_ns();
    int work = engine_step(n->engine, sim_now(f->sim), STEP_BUDGET, &deadline);

    f->count.real_ns += real_ns() - start;
    if (work < 0)
        fleet_fail(f, "engine_step of node %u: %s", node, strerror(-work));
    f->count.steps += work > 0;
    while (!f->failed && engine_notice(n->engine, &notice) == 1)
        fleet_notice(f, node, &notice);
    if ((work > 0 || engine_published(n->engine)) && f->options.hooks.look)
        f->options.hooks.look(f->options.hooks.context, f, node);
    if (work > 0) {
        fleet_rouse(f, node);
    } else if (deadline != UINT64_MAX && deadline != n->due) {
        struct sim_entry due = {.time = deadline, .what = FLEET_DUE, .subject = node};

        n->due = deadline;
        if (sim_timeline_add(&f->agenda, &due) != 0)
            fleet_fail(f, "out of memory for the agenda");
    }
}

static void perform(struct fleet *f, const struct sim_entry *entry)
{
    struct fleet_node *n = &f->nodes[entry->subject];

    if (entry->what != FLEET_DUE) {
        fleet_link_step(f, entry);
    } else if (n->due == entry->time) { /* else the node has another deadline by now */
        n->due = UINT64_MAX;
        fleet_rouse(f, entry->subject);
    }
}

/* Advances the clock to the next event. False: there is none. */
static bool pass_time(struct fleet *f)
{
    uint64_t next = sim_next(f->sim), agenda = sim_timeline_next(&f->agenda);
    struct sim_entry entry;

    next = agenda < next ? agenda : next;
    if (next == UINT64_MAX)
        return false;
    sim_advance(f->sim, next);
    while (sim_timeline_take(&f->agenda, sim_now(f->sim), &entry))
        perform(f, &entry);
    return true;
}

bool fleet_run(struct fleet *f, bool (*over)(void *context), void *context)
{
    uint32_t node;

    while (!f->failed && !(over && over(context))) {
        while (sim_roused(f->sim, &node))
            fleet_rouse(f, node);
        if (f->queue_count == 0) {
            if (pass_time(f))
                continue;
            break;
        }
        node = f->queue[f->queue_head];
        f->queue_head = (f->queue_head + 1) % f->options.nodes;
        f->queue_count--;
        f->nodes[node].queued = false;
        step(f, node);
        if (sim_fault(f->sim))
            fleet_fail(f, "fabric: %s", sim_fault(f->sim));
    }
    return !f->failed && (!over || over(context));
}

struct fleet_count fleet_counted(const struct fleet *f)
{
    const struct sim_counters *c = sim_counters(f->sim);
    struct fleet_count count = f->count;

    count.ns = sim_now(f->sim);
    count.messages = c->writes + c->reads;
    count.bytes = c->bytes;
    return count;
}

struct fleet_count fleet_between(const struct fleet_count *from, const struct fleet_count *to)
{
    return (struct fleet_count){.ns = to->ns - from->ns,
                                .messages = to->messages - from->messages,
                                .bytes = to->bytes - from->bytes,
                                .frames = to->frames - from->frames,
                                .steps = to->steps - from->steps,
                                .real_ns = to->real_ns - from->real_ns};
}
