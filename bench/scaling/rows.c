/* The table of rows (row.h). Thread: one. */
#include "bench/scaling/row.h"

#include <string.h>

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

static const struct row rows[] = {
    {"neighbours", "8 bytes to each of 2 neighbours, and theirs", 1024, row_exchange, 2, 0, 0},
    {"peers-8", "the same with 8 peers", 1024, row_exchange, 8, 0, 0},
    {"peers-64", "the same with 64 peers", 1024, row_exchange, 64, 0, 0},
    {"all-to-all", "the same with all others", 256, row_exchange, 0, 0, 0},
    {"hub", "8 bytes to each of all others by one node, and theirs", 1024, row_hub, 0, 0, 0},
    {"pairs-64", "64 ranks a node, all pairs", 8, row_pairs, 64, 0, 0},
    {"pairs-128", "128 ranks a node, all pairs", 8, row_pairs, 128, 0, 0},
    {"pairs-256", "256 ranks a node, all pairs", 4, row_pairs, 256, 0, 0},
    {"attach-1", "a job attaches, 1 rank a node", 1024, row_attach, 1, 0, 0},
    {"attach-64", "a job attaches, 64 ranks a node", 1024, row_attach, 64, 0, 0},
    {"memory-1024", "a node linked to N of 1,024 peers", 512, row_memory, 1024, 0, 0},
    {"memory-16384", "a node linked to N of 16,384 peers", 512, row_memory, 16384, 0, 0},
    {"team-barrier-1", "barrier by engines, 1 rank a node", 1024, row_team, 1, TEAM_BARRIER, 0},
    {"team-barrier-64", "barrier by engines, 64 ranks a node", 1024, row_team, 64, TEAM_BARRIER, 0},
    {"team-allreduce-1", "allreduce of 8 bytes by engines, 1 rank a node", 1024, row_team, 1,
     TEAM_ALLREDUCE, 8},
    {"team-allreduce-64", "allreduce of 8 bytes by engines, 64 ranks a node", 1024, row_team, 64,
     TEAM_ALLREDUCE, 8},
    {"team-allreduce-64k", "allreduce of 64 KiB by engines, 1 rank a node", 128, row_team, 1,
     TEAM_ALLREDUCE, 64 * KIB},
    {"team-allreduce-1m", "allreduce of 1 MiB by engines, 1 rank a node", 64, row_team, 1,
     TEAM_ALLREDUCE, MIB},
    {"barrier-1", "barrier, 1 rank a node", 1024, row_collective, 1, TEAM_BARRIER, 0},
    {"barrier-64", "barrier, 64 ranks a node", 1024, row_collective, 64, TEAM_BARRIER, 0},
    {"allreduce-8-1", "allreduce of 8 bytes, 1 rank a node", 1024, row_collective, 1,
     TEAM_ALLREDUCE, 8},
    {"allreduce-8-64", "allreduce of 8 bytes, 64 ranks a node", 1024, row_collective, 64,
     TEAM_ALLREDUCE, 8},
    {"allreduce-1m-1", "allreduce of 1 MiB, 1 rank a node", 1024, row_collective, 1, TEAM_ALLREDUCE,
     MIB},
    {"allreduce-1m-64", "allreduce of 1 MiB, 64 ranks a node", 1024, row_collective, 64,
     TEAM_ALLREDUCE, MIB},
#ifdef FORWARD_OBJECT /* there is a compiler of handlers */
    {"forward-8", "broadcast of 8 bytes, by handlers", 1024, row_forward, 0, TEAM_BCAST, 8},
    {"forward-64k", "broadcast of 64 KiB, by handlers", 1024, row_forward, 0, TEAM_BCAST, 64 * KIB},
    {"outlive-8", "broadcast of 8 bytes past log2 N - 1 dead nodes, by handlers", 1024, row_outlive,
     0, TEAM_BCAST, 8},
    {"product-16", "products of 16 bytes of all at one node, by handlers", 1024, row_product, 0,
     TEAM_REDUCE, 16},
    {"product-4k", "products of 4 KiB of all at one node, by handlers", 1024, row_product, 0,
     TEAM_REDUCE, 4 * KIB},
#endif
    {"alltoall-1", "alltoall of 8 bytes, 1 rank a node", 1024, row_collective, 1, TEAM_ALLTOALL, 8},
    {"alltoall-64", "alltoall of 8 bytes, 64 ranks a node", 2, row_collective, 64, TEAM_ALLTOALL,
     8},
};

const struct row *rows_all(uint32_t *count)
{
    *count = sizeof rows / sizeof rows[0];
    return rows;
}

const struct row *row_named(const char *name)
{
    for (const struct row *row = rows; row < rows + sizeof rows / sizeof rows[0]; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

void figure_add(struct figures *figures, const char *name, double value)
{
    if (figures->count < FIGURES_MAX)
        figures->of[figures->count++] = (struct figure){name, value};
}

double figure_of(const struct figures *figures, const char *name)
{
    for (uint32_t i = 0; i < figures->count; i++)
        if (strcmp(figures->of[i].name, name) == 0)
            return figures->of[i].value;
    return 0;
}
