/* The tree, its vectors, and the serial sum that checks them; see sums.h. */
#include "examples/apps/sums.h"

#include <stdio.h>

uint64_t sums_bytes(uint32_t count)
{
    return (SUMS_ARITY + 1ull) * count * sizeof(double);
}

void sums_open(struct sums *sums, uint32_t rank, uint32_t ranks, uint32_t count, double *memory)
{
    uint32_t first = rank * SUMS_ARITY + 1, left = first < ranks ? ranks - first : 0;

    *sums = (struct sums){.rank = rank,
                          .ranks = ranks,
                          .count = count,
                          .parent = rank == 0 ? 0 : (rank - 1) / SUMS_ARITY,
                          .first = first,
                          .children = left < SUMS_ARITY ? left : SUMS_ARITY,
                          .place = rank == 0 ? 0 : (rank - 1) % SUMS_ARITY,
                          .inbox = memory,
                          .own = memory + (uint64_t)SUMS_ARITY * count};
}

/* A whole number, so that sums are exact in any order; another one in each round. */
static double contribution(uint32_t rank, uint32_t round, uint32_t i)
{
    return (double)(rank + 1) * (round % 1000 + 1) + i;
}

void sums_contribute(struct sums *sums, uint32_t round)
{
    for (uint32_t i = 0; i < sums->count; i++)
        sums->own[i] = contribution(sums->rank, round, i);
}

void sums_add(struct sums *sums)
{
    for (uint32_t child = 0; child < sums->children; child++)
        for (uint32_t i = 0; i < sums->count; i++)
            sums->own[i] += sums->inbox[(uint64_t)child * sums->count + i];
}

bool sums_check(const struct sums *sums, uint32_t round)
{
    for (uint32_t i = 0; i < sums->count; i++) {
        double wanted = 0;

        for (uint32_t rank = 0; rank < sums->ranks; rank++)
            wanted += contribution(rank, round, i);
        if (sums->own[i] != wanted) {
            fprintf(stderr, "tree: round %u, number %u: %g instead of %g\n", round, i, sums->own[i],
                    wanted);
            return false;
        }
    }
    return true;
}
