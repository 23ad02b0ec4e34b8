/*
 * The memory of one node that has links to some of the peers that its tables have room for. These
 * peers are engines, too; peers without a link do not exist.
 *
 * Thread: one.
 */
#include "bench/scaling/row.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "bench/scaling/fleet.h"

#define HUB 0u

/* Links the hub to every other node, by binds that are not used. */
static int link_all(struct fleet *f, struct fleet_rank *ranks, struct fleet_bind *binds)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < f->options.nodes; i++)
        rc = fleet_rank_open(f, i, i, f->options.nodes, &ranks[i]);
    for (uint32_t i = 0; rc == 0 && i < f->options.nodes; i++)
        if (i != HUB)
            rc = fleet_bind(f, &ranks[HUB], &ranks[i], &binds[i]);
    if (rc == 0 && !fleet_run(f, NULL, NULL))
        rc = -EPROTO;
    for (uint32_t i = 0; rc == 0 && i < f->options.nodes; i++)
        if (i != HUB)
            rc = binds[i].done ? binds[i].status : -ETIMEDOUT;
    return rc;
}

int row_memory(const struct row_run *run, struct figures *out)
{
    struct fleet_options options = {
        .nodes = run->nodes + 1, .peers = run->row->parameter, .loggp = run->loggp};
    struct fleet_rank *ranks = calloc(options.nodes, sizeof *ranks);
    struct fleet_bind *binds = calloc(options.nodes, sizeof *binds);
    struct fleet *f = NULL;
    uint64_t before, after;
    int rc = ranks && binds ? fleet_open(&options, &f) : -ENOMEM;

    if (rc == 0) {
        before = fleet_resident(f, HUB);
        rc = link_all(f, ranks, binds);
    }
    if (rc == 0) {
        after = fleet_resident(f, HUB);
        figure_add(out, "kib_unlinked", (double)before / 1024);
        figure_add(out, "kib_linked", (double)after / 1024);
        figure_add(out, "kib_a_link", (double)(after - before) / 1024 / run->nodes);
    }
    if (f && f->failed)
        snprintf(out->failure, sizeof out->failure, "%s", f->failure);
    for (uint32_t i = 0; ranks && i < options.nodes; i++)
        fleet_rank_close(&ranks[i]);
    free(ranks);
    free(binds);
    if (f)
        fleet_close(f);
    return rc;
}
