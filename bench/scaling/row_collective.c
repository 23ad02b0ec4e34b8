/*
 * A collective of a job with a given number of ranks a node, computed from schedules alone: rank by
 * rank, as MPI does it, and node by node, as daemons do it. Both ways take the algorithm from the
 * same table.
 *
 *     rank by rank    each rank is a participant; ranks of a node write to each other's memory
 *     node by node    the ranks of a node meet in the team area, the last one hands over to the
 *                     daemon, daemons are the participants, and the daemon gives out the result
 *
 * In the team area the last rank reads two cache lines of other cores for each rank, one after the
 * other: the rank's arrival at the count, and its contribution. A reduction of more data than a
 * line is combined by the daemon alone, rank after rank, which copies the result out to each rank.
 * Data that goes to other ranks is copied in and out by each rank itself.
 *
 * Thread: one.
 */
#include "bench/scaling/row.h"

#include <errno.h>
#include "bench/scaling/schedule_run.h"
#include "daemon/engine/coll/table.h"

#define LINE 64u

/* Within a node, reading a line of another core takes 100 ns, and a letter 50 ns of each side's
 * processor; data is copied and combined at 10 GB/s. */
static const struct loggp memory = {.latency_ps = 100000, .overhead_ps = 50000, .byte_fs = 100000};

static const struct coll_choices by_table;

/* Returns the bytes of each participant that the schedule cuts into blocks; a participant stands
 * for `ranks` ranks. */
static uint64_t bytes_of(const struct row *row, uint32_t participants, uint32_t ranks)
{
    return row->kind == TEAM_ALLTOALL ? row->bytes * ranks * ranks * participants : row->bytes;
}

/* Returns the time within one node, which is added to that of the daemons' schedule. */
static uint64_t within_node_ps(const struct row *row, uint32_t nodes)
{
    uint64_t ranks = row->parameter, each = row->bytes, copied = 2 * ranks * each;
    uint64_t hops = 2 * (memory.latency_ps + memory.overhead_ps); /* to the daemon and back */

    if (row->kind == TEAM_ALLTOALL) {
        each *= nodes * ranks;
        copied = 2 * each;
    }
    return hops + 2 * (ranks - 1) * memory.latency_ps +
           (each > LINE ? copied * memory.byte_fs / 1000 : 0);
}

static int run_side(const struct row_run *run, uint32_t participants, uint32_t ranks,
                    struct schedule_cost *cost)
{
    uint64_t bytes = bytes_of(run->row, participants, ranks);
    const struct schedule_shape shape = {
        .algorithm =
            coll_row(coll_choose(&by_table, run->row->kind, bytes, participants))->algorithm,
        .nodes = run->nodes,
        .a_node = participants / run->nodes,
        .bytes = bytes,
        .network = run->loggp,
        .memory = memory};

    return schedule_run(&shape, cost);
}

int row_collective(const struct row_run *run, struct figures *out)
{
    struct schedule_cost ranks, nodes;
    uint64_t within;
    int rc = run_side(run, run->nodes, run->row->parameter, &nodes);

    if (rc != 0)
        return rc;
    within = within_node_ps(run->row, run->nodes);
    figure_add(out, "us", (double)(nodes.ps + within) / 1e6);
    figure_add(out, "us_within_node", (double)within / 1e6);
    figure_add(out, "messages_a_node", (double)nodes.messages / run->nodes);
    figure_add(out, "rounds", nodes.rounds);
    rc = run_side(run, run->nodes * run->row->parameter, 1, &ranks);
    if (rc != 0)
        return rc;
    figure_add(out, "us_by_rank", (double)ranks.ps / 1e6);
    figure_add(out, "messages_a_node_by_rank", (double)ranks.messages / run->nodes);
    figure_add(out, "rounds_by_rank", ranks.rounds);
    return 0;
}
