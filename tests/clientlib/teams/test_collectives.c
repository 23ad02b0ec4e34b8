/*
 * Collectives through the public calls, against plain loops: every kind and root, 1 to 33 ranks on
 * 1 to 9 engines, lengths around each threshold, members in any order.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/clientlib/teams/team_hall.h"
#include "tests/suite.h"

enum { GUARD = 0x5a, BYTES = HALL_RANKS * TEAM_DATA_BYTES };

/* One collective call of all ranks, with its parameters. */
struct trial {
    struct hall *h;
    uint8_t kind;
    uint32_t root;
    uint64_t count; /* 64-bit elements of an operand or of a block */
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

/* The number of blocks in a member's input, and in its output. */
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

/* The element that a rank's output must have at index `at`. */
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
        return true; /* also the root, whose data stays */
    case TEAM_REDUCE:
    case TEAM_GATHER:
        return rank == x->root;
    case TEAM_EXSCAN:
        return rank > 0;
    default:
        return true;
    }
}

/* Whether this rank calls in place in this trial: not every kind and rank can. */
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

/* Reports only the first wrong element. */
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

typedef bool right(const struct trial *x, uint32_t rank);

/* Lets engines and ranks take turns until every rank has seen the end of its call, and checks the
 * ends. */
static void expect_ends(const struct trial *x, const uint32_t *ranks, right *is_so)
{
    bool ended[HALL_RANKS] = {false};
    struct pwc_event event;
    uint32_t left = x->h->size;

    for (unsigned rounds = 0; left > 0 && rounds < 10000; rounds++) {
        hall_run(x->h);
        for (uint32_t i = 0; i < x->h->size; i++) {
            int rc = hall_probe(x->h, ranks[i], &event);

            if (rc == 0)
                continue;
            CU_ASSERT_EQUAL_FATAL(rc, 1);
            CU_ASSERT_FALSE(ended[i]);
            CU_ASSERT_EQUAL(event.op, PWC_OP_COLLECTIVE);
            CU_ASSERT_EQUAL(event.status, 0);
            CU_ASSERT_EQUAL(event.id, x->kind);
            CU_ASSERT_TRUE(is_so(x, ranks[i]));
            ended[i] = true;
            left--;
        }
    }
    CU_ASSERT_EQUAL_FATAL(left, 0);
}

/* All ranks call, in random order, and get the right results. */
static void run(const struct trial *x, unsigned *seed)
{
    uint32_t ranks[HALL_RANKS];

    for (uint32_t r = 0; r < x->h->size; r++)
        set_memory(x, r);
    shuffle(ranks, x->h->size, seed);
    for (uint32_t i = 0; i < x->h->size; i++)
        CU_ASSERT_EQUAL_FATAL(call(x, ranks[i], pwc_cid_u64(x->kind)), 0);
    shuffle(ranks, x->h->size, seed);
    expect_ends(x, ranks, is_right);
}

static bool has_root(uint8_t kind)
{
    return kind == TEAM_BCAST || kind == TEAM_REDUCE || kind == TEAM_GATHER || kind == TEAM_SCATTER;
}

static void run_kinds(struct hall *h, unsigned *seed)
{
    static const uint64_t counts[] = {0,  1,  2,   5,   6,   7,   20,   63,
                                      64, 65, 256, 511, 512, 513, 1500, 9000};
    bool few = h->size > 9;

    for (uint8_t kind = TEAM_BARRIER; kind <= TEAM_ALLTOALL; kind++)
        for (uint32_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
            for (uint32_t root = 0; root < (has_root(kind) ? h->size : 1); root++) {
                struct trial x = {h, kind, root, counts[c], (c + root) % 2 == 1};

                if (few && root % 7 != 0 && root + 1 != h->size && c > 4)
                    continue;
                if (few && counts[c] > 600 && h->size * counts[c] > 20000)
                    continue;
                run(&x, seed);
            }
}

static void every_kind(void)
{
    static const uint32_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 33};
    static const uint32_t engines[] = {1, 2, 3, 5, 9};
    unsigned seed = 1;

    for (uint32_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (uint32_t e = 0; e < sizeof(engines) / sizeof(engines[0]); e++)
            for (unsigned layout = HALL_BLOCKS; layout <= HALL_ROUND; layout++) {
                struct hall *h;

                if (engines[e] > sizes[s] || (layout == HALL_ROUND && engines[e] == 1))
                    continue;
                h = hall_new(sizes[s], engines[e], (enum hall_layout)layout, 4);
                run_kinds(h, &seed);
                hall_free(h);
            }
}

/* ---- blocks of different lengths ------------------------------------------------------------- */

/* Length of the block from one rank to another; 0 for many pairs. */
static size_t block_bytes(const struct trial *x, uint32_t from, uint32_t to)
{
    unsigned mix = (from * 7 + to * 13 + x->root) % 11;
    bool to_all = x->kind == TEAM_GATHERV || x->kind == TEAM_ALLGATHERV;

    if (to_all)
        mix = (from * 7 + x->root) % 11;
    if (x->kind == TEAM_SCATTERV)
        mix = (to * 13 + x->root) % 11;
    return mix < 3 ? 0 : mix * x->count;
}

static uint8_t byte_of(uint32_t from, uint32_t to, size_t at)
{
    return (uint8_t)(from * 31 + to * 17 + at * 5 + (at >> 8));
}

/* Places of blocks in memory, in the order of ranks, with gaps. */
struct blocks {
    size_t lens[HALL_RANKS], offsets[HALL_RANKS];
};

static void place(struct blocks *b, uint32_t rank, size_t len)
{
    b->lens[rank] = len;
    b->offsets[rank] = rank == 0 ? 3 : b->offsets[rank - 1] + b->lens[rank - 1] + rank % 4;
}

static struct blocks in_blocks[HALL_RANKS], out_blocks[HALL_RANKS];

static void set_blocks(const struct trial *x, uint32_t rank)
{
    uint8_t *in = (uint8_t *)in_memory[rank];
    bool one = x->kind == TEAM_GATHERV || x->kind == TEAM_ALLGATHERV;

    memset(out_memory[rank], GUARD, 200000);
    for (uint32_t r = 0; r < x->h->size; r++) {
        size_t len = block_bytes(x, rank, r);

        place(&in_blocks[rank], r, len);
        place(&out_blocks[rank], r, block_bytes(x, r, rank));
        for (size_t i = 0; i < len; i++)
            in[(one ? 0 : in_blocks[rank].offsets[r]) + i] = byte_of(rank, one ? 0 : r, i);
    }
}

static int call_varying(const struct trial *x, uint32_t rank, pwc_cid lid)
{
    const struct blocks *in = &in_blocks[rank], *out = &out_blocks[rank];
    pwc_team *t = hall_team(x->h, rank);
    bool root = rank == x->root;

    switch (x->kind) {
    case TEAM_GATHERV:
        return pwc_team_gatherv(t, in_memory[rank], in->lens[rank], out_memory[rank],
                                root ? out->lens : NULL, root ? out->offsets : NULL, x->root, lid,
                                0);
    case TEAM_SCATTERV:
        return pwc_team_scatterv(t, in_memory[rank], root ? in->lens : NULL,
                                 root ? in->offsets : NULL, out_memory[rank],
                                 block_bytes(x, x->root, rank), x->root, lid, 0);
    case TEAM_ALLGATHERV:
        return pwc_team_allgatherv(t, in_memory[rank], in->lens[rank], out_memory[rank], out->lens,
                                   out->offsets, lid, 0);
    default:
        return pwc_team_alltoallv(t, in_memory[rank], in->lens, in->offsets, out_memory[rank],
                                  out->lens, out->offsets, lid, 0);
    }
}

static bool block_is_right(const struct trial *x, uint32_t rank, uint32_t from, const uint8_t *at)
{
    bool one = x->kind == TEAM_GATHERV || x->kind == TEAM_ALLGATHERV;
    size_t len = block_bytes(x, from, rank);

    for (size_t i = 0; i < len; i++)
        if (at[i] != byte_of(from, one ? 0 : rank, i))
            return false;
    return true;
}

static bool varying_is_right(const struct trial *x, uint32_t rank)
{
    const uint8_t *out = (const uint8_t *)out_memory[rank];
    const struct blocks *b = &out_blocks[rank];

    if (x->kind == TEAM_GATHERV && rank != x->root)
        return out[0] == GUARD;
    if (x->kind == TEAM_SCATTERV)
        return block_is_right(x, rank, x->root, out) && out[block_bytes(x, x->root, rank)] == GUARD;
    for (uint32_t from = 0; from < x->h->size; from++)
        if (!block_is_right(x, rank, from, out + b->offsets[from]) ||
            (from > 0 && b->offsets[from] > b->offsets[from - 1] + b->lens[from - 1] &&
             out[b->offsets[from] - 1] != GUARD))
            return false;
    return out[0] == GUARD;
}

static void run_varying(const struct trial *x, unsigned *seed)
{
    uint32_t ranks[HALL_RANKS];

    for (uint32_t r = 0; r < x->h->size; r++)
        set_blocks(x, r);
    shuffle(ranks, x->h->size, seed);
    for (uint32_t i = 0; i < x->h->size; i++)
        CU_ASSERT_EQUAL_FATAL(call_varying(x, ranks[i], pwc_cid_u64(x->kind)), 0);
    expect_ends(x, ranks, varying_is_right);
}

static void lengths_that_differ(void)
{
    static const uint64_t counts[] = {0, 1, 4, 40, 900};
    static const uint32_t sizes[][2] = {{1, 1}, {2, 1}, {2, 2}, {5, 1}, {5, 2}, {8, 3}, {13, 4}};
    unsigned seed = 5;

    for (uint32_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (unsigned layout = HALL_BLOCKS; layout <= HALL_ROUND; layout++) {
            struct hall *h = hall_new(sizes[s][0], sizes[s][1], (enum hall_layout)layout, 4);

            for (uint8_t kind = TEAM_GATHERV; kind <= TEAM_ALLTOALLV; kind++)
                for (uint32_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
                    for (uint32_t root = 0; root < h->size; root += 3) {
                        struct trial x = {h, kind, root, counts[c], false};

                        run_varying(&x, &seed);
                    }
            hall_free(h);
        }
}

/* ---- several under way ----------------------------------------------------------------------- */

enum { CALLS = 12, WORDS = 66000 }; /* WORDS take more slices than there are data rows */

/* Calls after long calls begin when it is their turn, and all end in the order of calls. */
static void behind_long_ones(uint32_t engines)
{
    struct hall *h = hall_new(6, engines, HALL_BLOCKS, 16);
    static uint64_t in[6][CALLS][WORDS], out[6][CALLS][WORDS];
    uint32_t seen[6] = {0}, left = 6;
    struct pwc_event event;

    for (uint32_t rank = 0; rank < 6; rank++)
        for (uint32_t c = 0; c < CALLS; c++) {
            uint64_t n = c % 3 == 0 ? WORDS : c % 3 == 1 ? 1 : 100;

            fill(in[rank][c], rank + c, n);
            CU_ASSERT_EQUAL_FATAL(pwc_team_allreduce(hall_team(h, rank), in[rank][c], out[rank][c],
                                                     n, PWC_U64, PWC_ADD, pwc_cid_u64(c), 0),
                                  0);
        }
    for (unsigned round = 0; left > 0 && round < 10000; round++) {
        uint32_t rank = round % 6;

        hall_run(h);
        if (hall_probe(h, rank, &event) != 1)
            continue;
        CU_ASSERT_EQUAL(event.id, seen[rank]);
        CU_ASSERT_EQUAL(event.length, 8 * (event.id % 3 == 0   ? WORDS
                                           : event.id % 3 == 1 ? 1
                                                               : 100));
        CU_ASSERT_EQUAL(out[rank][event.id][0], sum((uint32_t)event.id, (uint32_t)event.id + 6, 0));
        if (event.id % 3 == 0)
            CU_ASSERT_EQUAL(out[rank][event.id][WORDS - 1],
                            sum((uint32_t)event.id, (uint32_t)event.id + 6, WORDS - 1));
        left -= ++seen[rank] == CALLS;
    }
    CU_ASSERT_EQUAL(left, 0);
    hall_free(h);
}

static void several(void)
{
    behind_long_ones(1);
    behind_long_ones(2);
    behind_long_ones(6);
}

int main(void)
{
    CU_TestInfo tests[] = {{"every kind", every_kind},
                           {"lengths that differ", lengths_that_differ},
                           {"several", several},
                           CU_TEST_INFO_NULL};

    for (uint32_t r = 0; r < HALL_RANKS; r++) {
        in_memory[r] = malloc(BYTES);
        out_memory[r] = malloc(2 * BYTES);
        if (!in_memory[r] || !out_memory[r])
            return 1;
    }
    return suite_run("collectives", tests);
}
