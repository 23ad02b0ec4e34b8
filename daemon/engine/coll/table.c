/* Owns nothing: the table of algorithms (table.h). Thread: any. */
#include "daemon/engine/coll/table.h"

#include <errno.h>
#include <string.h>

#define ANY_BYTES        0, UINT64_MAX
#define ANY_PARTICIPANTS 1, COLL_PARTICIPANTS

static const struct coll_row rows[] = {
    {TEAM_BARRIER, ANY_BYTES, ANY_PARTICIPANTS, &coll_dissemination},
    {TEAM_BCAST, ANY_BYTES, ANY_PARTICIPANTS, &coll_bcast_binomial},
    {TEAM_REDUCE, ANY_BYTES, ANY_PARTICIPANTS, &coll_reduce_binomial},
    {TEAM_ALLREDUCE, ANY_BYTES, ANY_PARTICIPANTS, &coll_doubling},
    {TEAM_SCAN, ANY_BYTES, ANY_PARTICIPANTS, &coll_scan_doubling},
    {TEAM_EXSCAN, ANY_BYTES, ANY_PARTICIPANTS, &coll_scan_doubling},
    {TEAM_REDUCE_SCATTER, ANY_BYTES, ANY_PARTICIPANTS, &coll_halving},
    {TEAM_GATHER, ANY_BYTES, ANY_PARTICIPANTS, &coll_gather_binomial},
    {TEAM_SCATTER, ANY_BYTES, ANY_PARTICIPANTS, &coll_scatter_binomial},
    {TEAM_ALLGATHER, ANY_BYTES, ANY_PARTICIPANTS, &coll_allgather_bruck},
    {TEAM_ALLTOALL, ANY_BYTES, ANY_PARTICIPANTS, &coll_alltoall_bruck},
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
