/* Owns nothing: the table of algorithms (table.h). Thread: any. */
#include "daemon/engine/coll/table.h"

#include <errno.h>
#include <string.h>

#define LARGE            (UINT64_C(16) << 10)
#define HUGE             (UINT64_C(1) << 20)
#define ANY_PARTICIPANTS 1, COLL_PARTICIPANTS

static const struct coll_row rows[] = {
    {TEAM_BARRIER, 0, UINT64_MAX, ANY_PARTICIPANTS, &coll_barrier_dissemination},
    {TEAM_BCAST, 0, LARGE - 1, ANY_PARTICIPANTS, &coll_bcast_binomial},
    {TEAM_BCAST, LARGE, UINT64_MAX, ANY_PARTICIPANTS, &coll_bcast_tree},
    {TEAM_REDUCE, 0, LARGE - 1, ANY_PARTICIPANTS, &coll_reduce_binomial},
    {TEAM_REDUCE, LARGE, UINT64_MAX, ANY_PARTICIPANTS, &coll_reduce_halving},
    {TEAM_ALLREDUCE, 0, LARGE - 1, ANY_PARTICIPANTS, &coll_allreduce_doubling},
    {TEAM_ALLREDUCE, LARGE, HUGE - 1, ANY_PARTICIPANTS, &coll_allreduce_halving},
    {TEAM_ALLREDUCE, HUGE, UINT64_MAX, ANY_PARTICIPANTS, &coll_allreduce_ring},
    {TEAM_SCAN, 0, LARGE - 1, ANY_PARTICIPANTS, &coll_scan_doubling},
    {TEAM_SCAN, LARGE, UINT64_MAX, ANY_PARTICIPANTS, &coll_scan_chain},
    {TEAM_EXSCAN, 0, LARGE - 1, ANY_PARTICIPANTS, &coll_scan_doubling},
    {TEAM_EXSCAN, LARGE, UINT64_MAX, ANY_PARTICIPANTS, &coll_scan_chain},
    {TEAM_REDUCE_SCATTER, 0, LARGE - 1, ANY_PARTICIPANTS, &coll_reduce_scatter_halving},
    {TEAM_REDUCE_SCATTER, LARGE, UINT64_MAX, ANY_PARTICIPANTS, &coll_reduce_scatter_pairwise},
    {TEAM_GATHER, 0, LARGE - 1, ANY_PARTICIPANTS, &coll_gather_binomial},
    {TEAM_GATHER, LARGE, UINT64_MAX, ANY_PARTICIPANTS, &coll_gather_direct},
    {TEAM_SCATTER, 0, LARGE - 1, ANY_PARTICIPANTS, &coll_scatter_binomial},
    {TEAM_SCATTER, LARGE, UINT64_MAX, ANY_PARTICIPANTS, &coll_scatter_direct},
    {TEAM_ALLGATHER, 0, LARGE - 1, ANY_PARTICIPANTS, &coll_allgather_bruck},
    {TEAM_ALLGATHER, LARGE, UINT64_MAX, ANY_PARTICIPANTS, &coll_allgather_ring},
    {TEAM_ALLTOALL, 0, LARGE - 1, ANY_PARTICIPANTS, &coll_alltoall_bruck},
    {TEAM_ALLTOALL, LARGE, UINT64_MAX, ANY_PARTICIPANTS, &coll_alltoall_pairwise},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static const char *const kind_names[TEAM_KINDS] = {
    [TEAM_BARRIER] = "barrier",
    [TEAM_BCAST] = "bcast",
    [TEAM_REDUCE] = "reduce",
    [TEAM_ALLREDUCE] = "allreduce",
    [TEAM_SCAN] = "scan",
    [TEAM_EXSCAN] = "exscan",
    [TEAM_REDUCE_SCATTER] = "reduce_scatter",
    [TEAM_GATHER] = "gather",
    [TEAM_SCATTER] = "scatter",
    [TEAM_ALLGATHER] = "allgather",
    [TEAM_ALLTOALL] = "alltoall",
    [TEAM_GATHERV] = "gatherv",
    [TEAM_SCATTERV] = "scatterv",
    [TEAM_ALLGATHERV] = "allgatherv",
    [TEAM_ALLTOALLV] = "alltoallv",
    [TEAM_USER] = "user",
};

const struct coll_row *coll_row(size_t number)
{
    return number < ROWS ? &rows[number] : NULL;
}

const char *coll_kind_name(uint32_t kind)
{
    return kind < TEAM_KINDS ? kind_names[kind] : NULL;
}

int coll_replace(struct coll_choices *choices, enum team_kind kind, const char *name)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].kind == kind && strcmp(rows[i].algorithm->name, name) == 0) {
            choices->by_kind[kind] = rows[i].algorithm;
            return 0;
        }
    return -ENOENT;
}

const struct coll_algorithm *coll_choose(const struct coll_choices *choices, enum team_kind kind,
                                         uint64_t bytes, uint32_t participants)
{
    if (kind >= TEAM_KINDS)
        return NULL;
    if (choices->by_kind[kind])
        return choices->by_kind[kind];
    for (int i = 0; i < ROWS; i++)
        if (rows[i].kind == kind && bytes >= rows[i].bytes_from && bytes <= rows[i].bytes_to &&
            participants >= rows[i].participants_from && participants <= rows[i].participants_to)
            return rows[i].algorithm;
    return NULL;
}

static uint32_t rounds_of(const struct coll_algorithm *a, uint64_t bytes, uint32_t participants)
{
    struct coll_shape shape = {participants, 0, coll_blocks(a, participants, bytes)};

    return a->rounds(&shape);
}

uint32_t coll_rounds_most(const struct coll_choices *choices, uint64_t bytes, uint32_t participants)
{
    uint32_t most = 0;

    for (int i = 0; i < ROWS; i++) {
        const struct coll_algorithm *chosen = choices->by_kind[rows[i].kind];
        uint64_t longest = chosen || bytes < rows[i].bytes_to ? bytes : rows[i].bytes_to;
        uint32_t rounds = 0;

        if (chosen || rows[i].bytes_from <= bytes)
            rounds = rounds_of(chosen ? chosen : rows[i].algorithm, longest, participants);
        if (rounds > most)
            most = rounds;
    }
    return most;
}
