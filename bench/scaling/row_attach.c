/*
 * A job attaches: all ranks of all nodes at once. A rank's daemon opens a client, a context, a
 * segment and a region, and claims the rank at the job's home node; the rank is attached when the
 * home has answered. Engines and the home's directory are real; frames between control threads take
 * as long as the network's model says.
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
#include "daemon/peering/directory.h"

/* About as long as these frames of control.proto are with their seal. */
#define CLAIM_BYTES  96u
#define ANSWER_BYTES 48u

enum frame { CLAIM, ANSWER };

static const struct directory_id job = {.uid = 1000, .job = "scale"};

struct attach {
    struct fleet *fleet;
    struct fleet_rank *ranks;
    uint32_t count, a_node, home;
    uint32_t attached;
    struct directory directory;
    uint64_t real_ns; /* real time that the directory took */
};

static void *take(void *context, size_t size)
{
    return calloc(1, size);
}

static void give(void *context, void *memory)
{
    free(memory);
}

static const struct directory_memory memory = {.take = take, .give = give};

static uint64_t real_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static void frame(void *context, struct fleet *f, const struct sim_entry *entry)
{
    struct attach *a = context;
    uint32_t rank = (uint32_t)entry->b, node = rank / a->a_node;
    uint64_t start = real_ns();
    int rc;

    if (entry->a == ANSWER) {
        a->attached++;
        return;
    }
    rc = directory_attach(&a->directory, &job, rank, a->count, node, 0);
    a->real_ns += real_ns() - start;
    if (rc != 0)
        fleet_fail(f, "the home refuses rank %u: %s", rank, strerror(-rc));
    fleet_send(f, a->home, node, ANSWER_BYTES, ANSWER, rank);
}

static int attach_all(struct attach *a, uint64_t *engines_ns)
{
    uint64_t start = real_ns();
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < a->count; i++)
        rc = fleet_rank_open(a->fleet, i / a->a_node, i, a->count, &a->ranks[i]);
    *engines_ns = real_ns() - start;
    for (uint32_t i = 0; rc == 0 && i < a->count; i++)
        fleet_send(a->fleet, i / a->a_node, a->home, CLAIM_BYTES, CLAIM, i);
    if (rc == 0 && !fleet_run(a->fleet, NULL, NULL))
        rc = -EPROTO;
    return rc == 0 && a->attached != a->count ? -ETIMEDOUT : rc;
}

static int measure(struct attach *a, struct figures *out)
{
    uint32_t node = a->fleet->options.nodes - 1;
    uint64_t empty = fleet_resident(a->fleet, node), engines_ns;
    struct fleet_count from = fleet_counted(a->fleet), cost;
    int rc = attach_all(a, &engines_ns);

    if (rc != 0)
        return rc;
    cost = fleet_counted(a->fleet);
    cost = fleet_between(&from, &cost);
    figure_add(out, "us", (double)cost.ns / 1e3);
    figure_add(out, "frames_a_node", (double)cost.frames / a->fleet->options.nodes);
    figure_add(out, "real_us_a_rank", (double)engines_ns / 1e3 / a->count);
    figure_add(out, "real_us_a_claim", (double)a->real_ns / 1e3 / a->count);
    figure_add(out, "kib_empty", (double)empty / 1024);
    figure_add(out, "kib_a_rank",
               (double)(fleet_resident(a->fleet, node) - empty) / 1024 / a->a_node);
    figure_add(out, "home_bytes_a_rank", (double)a->directory.bytes / a->count);
    return 0;
}

int row_attach(const struct row_run *run, struct figures *out)
{
    struct attach *a = calloc(1, sizeof *a);
    struct fleet_options options = {
        .nodes = run->nodes, .loggp = run->loggp, .hooks = {.context = a, .frame = frame}};
    int rc = -ENOMEM;

    if (!a)
        return rc;
    a->a_node = run->row->parameter;
    a->count = run->nodes * run->row->parameter;
    a->home = directory_home(&job, run->nodes);
    a->ranks = calloc(a->count, sizeof *a->ranks);
    directory_init(&a->directory, &memory, run->nodes, &(struct directory_shares){.alone = true});
    if (a->ranks)
        rc = fleet_open(&options, &a->fleet);
    if (rc == 0)
        rc = measure(a, out);
    if (a->fleet && a->fleet->failed)
        snprintf(out->failure, sizeof out->failure, "%s", a->fleet->failure);
    for (uint32_t i = 0; a->ranks && i < a->count; i++)
        fleet_rank_close(&a->ranks[i]);
    free(a->ranks);
    if (a->fleet)
        fleet_close(a->fleet);
    directory_clear(&a->directory);
    free(a);
    return rc;
}
