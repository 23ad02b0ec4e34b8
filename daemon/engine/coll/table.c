/* Owns nothing: the table of algorithms (table.h). Thread: any. */
#include "daemon/engine/coll/table.h"

#include <errno.h>
#include <string.h>

#define KIB  UINT64_C(1024)
#define MANY COLL_PARTICIPANTS

/*
 * An instance has up to 124 KiB of data (TEAM_DATA_BYTES). The rounds of trees, doubling, halving
 * and Bruck's schedules grow with the logarithm of the participants. Pairwise exchanges, and direct
 * ones with the root, take a round for every eight participants and move each byte once; a ring and
 * a chain take a round for every participant. So these are for few participants, or much data.
 * Halving takes two more rounds, of all data, if the number of participants is no power of two; a
 * ring takes no more. Two participants never cut their data, and three only for the ring and the
 * chain: without a cut all data travel in one or two letters after each other, and pieces are the
 * same bytes in more letters. docs/collectives.md has the times.
 */
static const struct coll_row rows[] = {
    {TEAM_BARRIER, 0, 1, MANY, false, &coll_barrier_dissemination},
    {TEAM_BCAST, 16 * KIB, 4, MANY, false, &coll_bcast_tree},
    {TEAM_BCAST, 0, 1, MANY, false, &coll_bcast_binomial},
    {TEAM_REDUCE, 32 * KIB, 4, MANY, false, &coll_reduce_halving},
    {TEAM_REDUCE, 0, 1, MANY, false, &coll_reduce_binomial},
    {TEAM_ALLREDUCE, 32 * KIB, 3, 9, true, &coll_allreduce_ring},
    {TEAM_ALLREDUCE, 16 * KIB, 4, MANY, false, &coll_allreduce_halving},
    {TEAM_ALLREDUCE, 0, 1, MANY, false, &coll_allreduce_doubling},
    {TEAM_SCAN, 32 * KIB, 3, 4, false, &coll_scan_chain},
    {TEAM_SCAN, 0, 1, MANY, false, &coll_scan_doubling},
    {TEAM_EXSCAN, 32 * KIB, 3, 4, false, &coll_scan_chain},
    {TEAM_EXSCAN, 0, 1, MANY, false, &coll_scan_doubling},
    {TEAM_REDUCE_SCATTER, 32 * KIB, 1, 32, false, &coll_reduce_scatter_pairwise},
    {TEAM_REDUCE_SCATTER, KIB, 1, 16, false, &coll_reduce_scatter_pairwise},
    {TEAM_REDUCE_SCATTER, 0, 1, MANY, false, &coll_reduce_scatter_halving},
    {TEAM_GATHER, KIB, 1, 64, false, &coll_gather_direct},
    {TEAM_GATHER, 0, 1, MANY, false, &coll_gather_binomial},
    {TEAM_SCATTER, KIB, 1, 64, false, &coll_scatter_direct},
    {TEAM_SCATTER, 0, 1, MANY, false, &coll_scatter_binomial},
    {TEAM_ALLGATHER, 0, 1, MANY, false, &coll_allgather_bruck},
    {TEAM_ALLTOALL, 32 * KIB, 1, 48, false, &coll_alltoall_pairwise},
    {TEAM_ALLTOALL, KIB, 1, 24, false, &coll_alltoall_pairwise},
    {TEAM_ALLTOALL, 0, 1, MANY, false, &coll_alltoall_bruck},
};
static_assert(sizeof(rows) / sizeof(rows[0]) == COLL_ROWS, "as many rows as the table has");
static_assert(COLL_ROWS < UINT8_MAX, "a choice is a byte");

const struct coll_row *coll_row(uint32_t number)
{
    return number < COLL_ROWS ? &rows[number] : NULL;
}

int coll_replace(struct coll_choices *choices, enum team_kind kind, const char *name)
{
    for (uint8_t i = 0; i < COLL_ROWS; i++)
        if (rows[i].kind == kind && strcmp(rows[i].algorithm->name, name) == 0) {
            choices->by_kind[kind] = i + 1;
            return 0;
        }
    return -ENOENT;
}

bool coll_choices_valid(const struct coll_choices *choices)
{
    for (uint32_t kind = 0; kind <= TEAM_ALLTOALL; kind++)
        if (choices->by_kind[kind] > COLL_ROWS ||
            (choices->by_kind[kind] > 0 && rows[choices->by_kind[kind] - 1].kind != kind))
            return false;
    return true;
}

static bool is_for(const struct coll_row *row, uint32_t participants)
{
    return participants >= row->participants_least && participants <= row->participants_most &&
           !(row->uneven && (participants & (participants - 1)) == 0);
}

uint32_t coll_choose(const struct coll_choices *choices, uint32_t kind, uint64_t bytes,
                     uint32_t participants)
{
    if (kind > TEAM_ALLTOALL)
        return COLL_ROWS;
    if (choices->by_kind[kind] > 0)
        return choices->by_kind[kind] - 1u;
    for (uint32_t i = 0; i < COLL_ROWS; i++)
        if (rows[i].kind == kind && bytes >= rows[i].bytes_least && is_for(&rows[i], participants))
            return i;
    return COLL_ROWS;
}

bool coll_reach(const struct coll_choices *choices, uint32_t number, uint32_t participants,
                uint64_t *first, uint64_t *last)
{
    const struct coll_row *row = &rows[number];
    uint8_t chosen = choices->by_kind[row->kind];

    *first = chosen > 0 ? 0 : row->bytes_least;
    *last = UINT64_MAX;
    if (chosen > 0)
        return chosen == number + 1;
    for (uint32_t i = 0; i < number; i++)
        if (rows[i].kind == row->kind && is_for(&rows[i], participants) &&
            rows[i].bytes_least <= *last)
            *last = rows[i].bytes_least - 1;
    return is_for(row, participants) && *first <= *last;
}
