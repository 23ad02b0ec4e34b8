/*
 * All pairs: each rank binds all ranks of all other nodes, puts 8 bytes to each, and waits for a
 * put of each. Figures: the time of a bind, for the first ranks and for the last, and a node's
 * memory after each phase.
 *
 * Thread: one.
 */
#include "bench/scaling/row.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bench/scaling/fleet.h"

#define PARTS 8u /* of the ranks: the first part's binds are compared with the last's */

struct pairs {
    struct fleet *fleet;
    struct fleet_rank *ranks;
    struct fleet_bind *binds; /* of the rank that binds now */
    uint32_t *remotes;        /* of all ranks, by rank and by target */
    uint32_t *next;           /* by rank: the target that it puts to next */
    uint32_t *came;           /* by rank: puts that have arrived */
    uint32_t each, count;     /* ranks: of a node, of all */
    uint32_t others;          /* ranks of all other nodes */
    uint32_t bound;           /* how many of `binds` are done, from the first on */
};

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static void put_some(struct pairs *x, uint32_t rank)
{
    static const uint64_t payload = 1;
    struct channel *channel = &x->ranks[rank].channel;
    int rc = 0;

    for (; rc >= 0 && x->next[rank] < x->others; x->next[rank] += rc >= 0)
        rc = channel_put(channel, x->remotes[(uint64_t)rank * x->others + x->next[rank]], 0,
                         &payload, sizeof payload, 0, rank, SUBMIT_NO_LCE);
    if (rc < 0 && rc != -EAGAIN)
        fleet_fail(x->fleet, "put of rank %u: %s", rank, strerror(-rc));
    fleet_rouse(x->fleet, x->ranks[rank].node);
}

static void look(void *context, struct fleet *f, uint32_t node)
{
    struct pairs *x = context;
    struct pwc_event event;

    for (uint32_t rank = node * x->each; rank < (node + 1) * x->each; rank++) {
        if (!x->ranks[rank].channel.shared)
            continue;
        while (channel_probe(&x->ranks[rank].channel, PWC_ANY, PWC_REMOTE, &event) == 1)
            x->came[rank]++;
        if (x->next[rank] > 0 && x->next[rank] < x->others)
            put_some(x, rank);
    }
}

static bool all_bound(void *context)
{
    struct pairs *x = context;

    while (x->bound < x->others && x->binds[x->bound].done)
        x->bound++;
    return x->bound == x->others;
}

static int bind_all(struct pairs *x, uint32_t rank)
{
    int rc = 0;

    x->bound = 0;
    for (uint32_t i = 0; rc == 0 && i < x->others; i++) {
        uint32_t to = ((x->ranks[rank].node + 1) * x->each + i) % x->count;

        rc = fleet_bind(x->fleet, &x->ranks[rank], &x->ranks[to], &x->binds[i]);
    }
    if (rc == 0 && !fleet_run(x->fleet, all_bound, x))
        rc = -EPROTO;
    for (uint32_t i = 0; rc == 0 && i < x->others; i++) {
        rc = x->binds[i].status;
        x->remotes[(uint64_t)rank * x->others + i] = x->binds[i].remote;
    }
    return rc;
}

static double kib(const struct pairs *x)
{
    return (double)fleet_resident(x->fleet, 0) / 1024;
}

/* The ranks bind, one after another and node by node, so that all nodes fill alike. */
static int bind_ranks(struct pairs *x, struct figures *out)
{
    uint32_t nodes = x->count / x->each, part = x->count / PARTS;
    uint64_t began = cpu_ns();
    double before = kib(x);
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < x->count; i++) {
        if (i % part == 0 && (i == part || i == x->count - part))
            began = cpu_ns();
        rc = bind_all(x, i % nodes * x->each + i / nodes);
        if (i + 1 == 2 * part || i + 1 == x->count)
            figure_add(out, i + 1 == x->count ? "cpu_us_a_bind_last" : "cpu_us_a_bind_second",
                       (double)(cpu_ns() - began) / 1e3 / part / x->others);
    }
    if (rc == 0 && !fleet_run(x->fleet, NULL, NULL))
        rc = -EPROTO;
    figure_add(out, "bytes_a_pair", (kib(x) - before) * 1024 / x->each / x->others);
    return rc;
}

static int talk(struct pairs *x, struct figures *out)
{
    uint64_t began = cpu_ns(), virtual = sim_now(x->fleet->sim);
    double pairs = (double)x->count * x->others;

    for (uint32_t rank = 0; rank < x->count; rank++)
        put_some(x, rank);
    if (!fleet_run(x->fleet, NULL, NULL))
        return -EPROTO;
    for (uint32_t rank = 0; rank < x->count; rank++)
        if (x->came[rank] != x->others)
            fleet_fail(x->fleet, "rank %u has got %u of %u puts", rank, x->came[rank], x->others);
    figure_add(out, "us", (double)(sim_now(x->fleet->sim) - virtual) / 1e3);
    figure_add(out, "cpu_us_a_put", (double)(cpu_ns() - began) / 1e3 / pairs);
    figure_add(out, "kib_a_node", kib(x));
    return x->fleet->failed ? -EPROTO : 0;
}

static int open_ranks(struct pairs *x)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < x->count; i++) {
        rc = fleet_rank_open(x->fleet, i / x->each, i, x->count, &x->ranks[i]);
        if (rc == 0)
            rc = fleet_rank_talks(&x->ranks[i]);
    }
    return rc == 0 && !fleet_run(x->fleet, NULL, NULL) ? -EPROTO : rc;
}

int row_pairs(const struct row_run *run, struct figures *out)
{
    struct pairs x = {.each = run->row->parameter, .count = run->nodes * run->row->parameter};
    struct fleet_options options = {.nodes = run->nodes,
                                    .pairs = x.each * x.count,
                                    .loggp = run->loggp,
                                    .hooks = {.context = &x, .look = look}};
    int rc;

    x.others = x.count - x.each;
    x.ranks = calloc(x.count, sizeof *x.ranks);
    x.binds = calloc(x.count, sizeof *x.binds);
    x.remotes = calloc((size_t)x.count * x.others, sizeof *x.remotes);
    x.next = calloc(x.count, sizeof *x.next);
    x.came = calloc(x.count, sizeof *x.came);
    rc = x.ranks && x.binds && x.remotes && x.next && x.came ? fleet_open(&options, &x.fleet)
                                                             : -ENOMEM;
    if (rc == 0)
        rc = open_ranks(&x);
    if (rc == 0)
        rc = bind_ranks(&x, out);
    if (rc == 0)
        rc = talk(&x, out);
    if (x.fleet && x.fleet->failed)
        snprintf(out->failure, sizeof out->failure, "%s", x.fleet->failure);
    for (uint32_t i = 0; x.ranks && i < x.count; i++)
        fleet_rank_close(&x.ranks[i]);
    if (x.fleet)
        fleet_close(x.fleet);
    free(x.ranks);
    free(x.binds);
    free(x.remotes);
    free(x.next);
    free(x.came);
    return rc;
}
