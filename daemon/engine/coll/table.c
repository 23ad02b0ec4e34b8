/* Owns nothing: the table of algorithms (table.h). Thread: any. */
#include "daemon/engine/coll/table.h"

#include <errno.h>
#include <string.h>

#define LARGE  (UINT64_C(16) << 10)
#define LARGER (UINT64_C(256) << 10)
#define HUGE   (UINT64_C(1) << 20)
#define HUGER  (UINT64_C(16) << 20)
#define ANY    COLL_PARTICIPANTS

/*
 * Rings, chains and pairwise exchanges move each byte once, and take a round for each participant,
 * or for eight of them. The rounds of all others grow with the logarithm. So the former pay where
 * each participant has much of the data (docs/scale.md has the times).
 */
static const struct coll_row rows[] = {
    {TEAM_BARRIER, 0, ANY, &coll_barrier_dissemination},
    {TEAM_BCAST, LARGE, ANY, &coll_bcast_tree},
    {TEAM_BCAST, 0, ANY, &coll_bcast_binomial},
    {TEAM_REDUCE, LARGE, ANY, &coll_reduce_halving},
    {TEAM_REDUCE, 0, ANY, &coll_reduce_binomial},
    {TEAM_ALLREDUCE, HUGER, 256, &coll_allreduce_ring},
    {TEAM_ALLREDUCE, HUGE, 64, &coll_allreduce_ring},
    {TEAM_ALLREDUCE, LARGE, ANY, &coll_allreduce_halving},
    {TEAM_ALLREDUCE, 0, ANY, &coll_allreduce_doubling},
    {TEAM_SCAN, HUGER, 256, &coll_scan_chain},
    {TEAM_SCAN, HUGE, 32, &coll_scan_chain},
    {TEAM_SCAN, 0, ANY, &coll_scan_doubling},
    {TEAM_EXSCAN, HUGER, 256, &coll_scan_chain},
    {TEAM_EXSCAN, HUGE, 32, &coll_scan_chain},
    {TEAM_EXSCAN, 0, ANY, &coll_scan_doubling},
    {TEAM_REDUCE_SCATTER, HUGE, 256, &coll_reduce_scatter_pairwise},
    {TEAM_REDUCE_SCATTER, LARGE, 32, &coll_reduce_scatter_pairwise},
    {TEAM_REDUCE_SCATTER, 0, ANY, &coll_reduce_scatter_halving},
    {TEAM_GATHER, HUGE, 256, &coll_gather_direct},
    {TEAM_GATHER, LARGER, 64, &coll_gather_direct},
    {TEAM_GATHER, LARGE, 8, &coll_gather_direct},
    {TEAM_GATHER, 0, ANY, &coll_gather_binomial},
    {TEAM_SCATTER, HUGE, 256, &coll_scatter_direct},
    {TEAM_SCATTER, LARGER, 64, &coll_scatter_direct},
    {TEAM_SCATTER, LARGE, 8, &coll_scatter_direct},
    {TEAM_SCATTER, 0, ANY, &coll_scatter_binomial},
    {TEAM_ALLGATHER, LARGE, 32, &coll_allgather_ring},
    {TEAM_ALLGATHER, 0, ANY, &coll_allgather_bruck},
    {TEAM_ALLTOALL, HUGE, 1024, &coll_alltoall_pairwise},
    {TEAM_ALLTOALL, LARGER, 256, &coll_alltoall_pairwise},
    {TEAM_ALLTOALL, LARGE, 32, &coll_alltoall_pairwise},
    {TEAM_ALLTOALL, 0, ANY, &coll_alltoall_bruck},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

const struct coll_row *coll_row(size_t number)
{
    return number < ROWS ? &rows[number] : NULL;
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

static bool is_for(const struct coll_row *row, uint64_t bytes, uint32_t participants)
{
    return bytes >= row->bytes_least && participants <= row->participants_most;
}

const struct coll_algorithm *coll_choose(const struct coll_choices *choices, enum team_kind kind,
                                         uint64_t bytes, uint32_t participants)
{
    if (kind >= TEAM_KINDS)
        return NULL;
    if (choices->by_kind[kind])
        return choices->by_kind[kind];
    for (int i = 0; i < ROWS; i++)
        if (rows[i].kind == kind && is_for(&rows[i], bytes, participants))
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
        uint32_t rounds = 0;

        if (chosen || is_for(&rows[i], bytes, participants))
            rounds = rounds_of(chosen ? chosen : rows[i].algorithm, bytes, participants);
        if (rounds > most)
            most = rounds;
    }
    return most;
}
