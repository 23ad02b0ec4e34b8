/*
 * Collectives through the public calls, against plain loops: every kind and root, 1 to 33 ranks on
 * 1 to 9 engines, lengths around each threshold, members in any order.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/clientlib/team_hall.h"
#include "tests/suite.h"

enum { GUARD = 0x5a, BYTES = HALL_RANKS * TEAM_DATA_BYTES };

/* A collective that the test makes, with its memory by rank. */
struct trial {
    struct hall *h;
    uint8_t kind;
    uint32_t root;
    uint64_t count; /* 64-bit elements of an operand or block */
    bool in_place;
};

static uint64_t *in_memory[HALL_RANKS], *out_memory[HALL_RANKS];

static uint64_t value(uint32_t rank, uint64_t at)
{
    return (rank + 1) * UINT64_C(0x9e3779b97f4a7c15) + at * UINT64_C(0xc2b2ae3d27d4eb4f);
}

static void fill(uint64_t *to, uint32_t rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        to[i] = value(rank, i);
}

/* Blocks that a member gives, and gets. */
static uint32_t blocks_in(const struct trial *x)
{
    return x->kind == TEAM_REDUCE_SCATTER || x->kind == TEAM_SCATTER || x->kind == TEAM_ALLTOALL
               ? x->h->size
               : 1;
}

static uint32_t blocks_out(const struct trial *x)
{
    return x->kind == TEAM_GATHER || x->kind == TEAM_ALLGATHER || x->kind == TEAM_ALLTOALL
               ? x->h->size
               : 1;
}

static uint64_t sum(uint32_t from, uint32_t to, uint64_t at)
{
    uint64_t total = 0;

    for (uint32_t r = from; r < to; r++)
        total += value(r, at);
    return total;
}

/* The element of a rank's output that has to stand there. */
static uint64_t wanted(const struct trial *x, uint32_t rank, uint64_t at)
{
    uint32_t block = (uint32_t)(at / x->count);
    uint64_t within = at % x->count;

    switch (x->kind) {
    case TEAM_BCAST:
        return value(x->root, at);
    case TEAM_REDUCE:
    case TEAM_ALLREDUCE:
        return sum(0, x->h->size, at);
    case TEAM_SCAN:
        return sum(0, rank + 1, at);
    case TEAM_EXSCAN:
        return sum(0, rank, at);
    case TEAM_REDUCE_SCATTER:
        return sum(0, x->h->size, rank * x->count + at);
    case TEAM_GATHER:
    case TEAM_ALLGATHER:
        return value(block, within);
    case TEAM_SCATTER:
        return value(x->root, rank * x->count + at);
    case TEAM_ALLTOALL:
        return value(block, rank * x->count + within);
    default:
        return 0;
    }
}

static bool gets(const struct trial *x, uint32_t rank)
{
    switch (x->kind) {
    case TEAM_BARRIER:
        return false;
    case TEAM_BCAST:
        return true; /* the root's own data stays */
    case TEAM_REDUCE:
    case TEAM_GATHER:
        return rank == x->root;
    case TEAM_EXSCAN:
        return rank > 0;
    default:
        return true;
    }
}

/* In memory of the trial: whether this rank can, and does. */
static bool is_in_place(const struct trial *x, uint32_t rank)
{
    switch (x->kind) {
    case TEAM_REDUCE:
    case TEAM_GATHER:
        return x->in_place && rank == x->root;
    case TEAM_ALLREDUCE:
    case TEAM_SCAN:
    case TEAM_EXSCAN:
    case TEAM_REDUCE_SCATTER:
    case TEAM_ALLGATHER:
        return x->in_place;
    default:
        return false;
    }
}

static void set_memory(const struct trial *x, uint32_t rank)
{
    uint64_t given = blocks_in(x) * x->count, got = blocks_out(x) * x->count;
    uint64_t *out = out_memory[rank];

    fill(in_memory[rank], rank, given);
    memset(out, GUARD, (got + given + 1) * 8);
    if (x->kind == TEAM_BCAST && rank == x->root)
        fill(out, rank, x->count);
    if (is_in_place(x, rank)) {
        bool mine = x->kind == TEAM_GATHER || x->kind == TEAM_ALLGATHER;

        fill(out + (mine ? rank * x->count : 0), rank, given);
    }
}

static int call(const struct trial *x, uint32_t rank, pwc_cid lid)
{
    pwc_team *t = hall_team(x->h, rank);
    const uint64_t *in = is_in_place(x, rank) ? NULL : in_memory[rank];
    uint64_t *out = out_memory[rank];
    uint64_t n = x->count, len = n * 8;

    switch (x->kind) {
    case TEAM_BARRIER:
        return pwc_team_barrier(t, lid, 0);
    case TEAM_BCAST:
        return pwc_team_bcast(t, out, len, x->root, lid, 0);
    case TEAM_REDUCE:
        return pwc_team_reduce(t, in, out, n, PWC_U64, PWC_ADD, x->root, lid, 0);
    case TEAM_ALLREDUCE:
        return pwc_team_allreduce(t, in, out, n, PWC_U64, PWC_ADD, lid, 0);
    case TEAM_SCAN:
        return pwc_team_scan(t, in, out, n, PWC_U64, PWC_ADD, lid, 0);
    case TEAM_EXSCAN:
        return pwc_team_exscan(t, in, out, n, PWC_U64, PWC_ADD, lid, 0);
    case TEAM_REDUCE_SCATTER:
        return pwc_team_reduce_scatter(t, in, out, n, PWC_U64, PWC_ADD, lid, 0);
    case TEAM_GATHER:
        return pwc_team_gather(t, in, out, len, x->root, lid, 0);
    case TEAM_SCATTER:
        return pwc_team_scatter(t, in, out, len, x->root, lid, 0);
    case TEAM_ALLGATHER:
        return pwc_team_allgather(t, in, out, len, lid, 0);
    default:
        return pwc_team_alltoall(t, in, out, len, lid, 0);
    }
}

/* One wrong element is enough to report. */
static bool is_right(const struct trial *x, uint32_t rank)
{
    uint64_t got = gets(x, rank) ? blocks_out(x) * x->count : 0;
    const uint64_t *out = out_memory[rank];
    uint64_t given = is_in_place(x, rank) ? blocks_in(x) * x->count : 0;
    uint64_t guard;

    memset(&guard, GUARD, 8);
    for (uint64_t i = 0; i < got; i++)
        if (out[i] != wanted(x, rank, i)) {
            printf("kind %u, root %u, %u ranks, %u engines, count %llu, in place %d: rank %u at "
                   "%llu: %llx, not %llx\n",
                   x->kind, x->root, x->h->size, x->h->engines, (unsigned long long)x->count,
                   x->in_place, rank, (unsigned long long)i, (unsigned long long)out[i],
                   (unsigned long long)wanted(x, rank, i));
            return false;
        }
    return out[got + given] == guard || (given > 0 && out[given > got ? given : got] == guard);
}

static void shuffle(uint32_t *ranks, uint32_t n, unsigned *seed)
{
    for (uint32_t i = 0; i < n; i++)
        ranks[i] = i;
    for (uint32_t i = n - 1; i > 0; i--) {
        uint32_t j = (uint32_t)rand_r(seed) % (i + 1), keep = ranks[i];

        ranks[i] = ranks[j];
        ranks[j] = keep;
    }
}

/* All ranks call, in any order, and all get what they have to. 0, or -ENOTSUP at all. */
static int run(const struct trial *x, unsigned *seed)
{
    uint32_t ranks[HALL_RANKS];
    struct pwc_event event;
    int first = 0;

    for (uint32_t r = 0; r < x->h->size; r++)
        set_memory(x, r);
    shuffle(ranks, x->h->size, seed);
    for (uint32_t i = 0; i < x->h->size; i++) {
        int rc = call(x, ranks[i], pwc_cid_u64(x->kind));

        if (i == 0)
            first = rc;
        CU_ASSERT_EQUAL_FATAL(rc, first);
    }
    if (first < 0) {
        CU_ASSERT_EQUAL(first, -ENOTSUP);
        return first;
    }
    hall_run(x->h);
    shuffle(ranks, x->h->size, seed);
    for (uint32_t i = 0; i < x->h->size; i++) {
        CU_ASSERT_EQUAL_FATAL(hall_probe(x->h, ranks[i], &event), 1);
        CU_ASSERT_EQUAL(event.op, PWC_OP_COLLECTIVE);
        CU_ASSERT_EQUAL(event.status, 0);
        CU_ASSERT_EQUAL(event.id, x->kind);
        CU_ASSERT_TRUE(is_right(x, ranks[i]));
        CU_ASSERT_EQUAL(hall_probe(x->h, ranks[i], &event), 0);
    }
    return 0;
}

static bool has_root(uint8_t kind)
{
    return kind == TEAM_BCAST || kind == TEAM_REDUCE || kind == TEAM_GATHER || kind == TEAM_SCATTER;
}

static void run_kinds(struct hall *h, unsigned *seed, unsigned *small)
{
    static const uint64_t counts[] = {0, 1, 2, 5, 6, 7, 20, 63, 64, 65, 256, 511, 512, 513};
    bool few = h->size > 9;

    for (uint8_t kind = TEAM_BARRIER; kind <= TEAM_ALLTOALL; kind++)
        for (uint32_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
            for (uint32_t root = 0; root < (has_root(kind) ? h->size : 1); root++) {
                struct trial x = {h, kind, root, counts[c], (c + root) % 2 == 1};

                if (few && root % 7 != 0 && root + 1 != h->size && c > 4)
                    continue;
                small[kind] += run(&x, seed) == 0;
            }
}

static void every_kind(void)
{
    static const uint32_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 33};
    static const uint32_t engines[] = {1, 2, 3, 5, 9};
    unsigned small[TEAM_KINDS] = {0};
    unsigned seed = 1;

    for (uint32_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (uint32_t e = 0; e < sizeof(engines) / sizeof(engines[0]); e++)
            for (unsigned layout = HALL_BLOCKS; layout <= HALL_ROUND; layout++) {
                struct hall *h;

                if (engines[e] > sizes[s] || (layout == HALL_ROUND && engines[e] == 1))
                    continue;
                h = hall_new(sizes[s], engines[e], (enum hall_layout)layout, 4);
                run_kinds(h, &seed, small);
                hall_free(h);
            }
    for (uint8_t kind = TEAM_BARRIER; kind <= TEAM_ALLTOALL; kind++)
        CU_ASSERT_TRUE(small[kind] > 200);
}

int main(void)
{
    CU_TestInfo tests[] = {{"every kind", every_kind}, CU_TEST_INFO_NULL};

    for (uint32_t r = 0; r < HALL_RANKS; r++) {
        in_memory[r] = malloc(BYTES);
        out_memory[r] = malloc(2 * BYTES);
        if (!in_memory[r] || !out_memory[r])
            return 1;
    }
    return suite_run("collectives", tests);
}
