/* Schedules of collectives alone, over participants in memory: each letter is awaited by its
 * receiver in the same round, the data that arrive are those that the kind promises, every
 * participant combines in the same grouping and so gets the same bits, and there are as many rounds
 * and letters as theory says. Thread: one. */
#include "daemon/engine/coll/table.h"
#include "tests/engine/coll/scene.h"
#include "tests/suite.h"

#include <errno.h>
#include <string.h>

/* ---- data of each kind, before and after ----------------------------------------------------- */

static uint32_t owner(const struct scene *s, uint32_t me, uint32_t b)
{
    return coll_owner(s->algorithm, &s->shape, me, b);
}

static void start_none(struct scene *s, uint32_t me, uint32_t b)
{
    (void)s, (void)me, (void)b;
}

static void end_none(struct scene *s, uint32_t me, uint32_t b)
{
    (void)s, (void)me, (void)b;
}

static void start_bcast(struct scene *s, uint32_t me, uint32_t b)
{
    if (me == s->shape.root)
        *scene_block(s->in, s, me, b) = symbol_of(me, b);
}

static void end_bcast(struct scene *s, uint32_t me, uint32_t b)
{
    check_set(scene_block(s->out, s, me, b), s->shape.root, s->shape.root + 1, b);
}

static void start_all(struct scene *s, uint32_t me, uint32_t b)
{
    *scene_block(s->in, s, me, b) = symbol_of(me, b);
}

static void end_reduce(struct scene *s, uint32_t me, uint32_t b)
{
    if (me == s->shape.root)
        check_sum(scene_block(s->out, s, me, b), 0, s->shape.participants, b);
}

static void end_allreduce(struct scene *s, uint32_t me, uint32_t b)
{
    const struct symbol *got = scene_block(s->out, s, me, b);

    check_sum(got, 0, s->shape.participants, b);
    CU_ASSERT_EQUAL_FATAL(got->grouping, scene_block(s->out, s, 0, b)->grouping);
    CU_ASSERT_EQUAL_FATAL(memcmp(&got->real, &scene_block(s->out, s, 0, b)->real, sizeof(double)),
                          0);
}

static void end_scan(struct scene *s, uint32_t me, uint32_t b)
{
    if (me > 0)
        check_sum(scene_block(s->out, s, me, s->shape.blocks + b), 0, me, b);
}

static void end_reduce_scatter(struct scene *s, uint32_t me, uint32_t b)
{
    if (b == me)
        check_sum(scene_block(s->out, s, me, b), 0, s->shape.participants, b);
}

static void start_own(struct scene *s, uint32_t me, uint32_t b)
{
    if (owner(s, me, b) == me)
        *scene_block(s->in, s, me, b) = symbol_of(me, 7);
}

static void end_gather(struct scene *s, uint32_t me, uint32_t b)
{
    if (me == s->shape.root)
        check_set(scene_block(s->out, s, me, b), owner(s, me, b), owner(s, me, b) + 1, 7);
}

static void end_allgather(struct scene *s, uint32_t me, uint32_t b)
{
    check_set(scene_block(s->out, s, me, b), owner(s, me, b), owner(s, me, b) + 1, 7);
}

/* The blocks of a scatter are named after the participant that they go to. */
static void start_scatter(struct scene *s, uint32_t me, uint32_t b)
{
    if (me == s->shape.root)
        *scene_block(s->in, s, me, b) = symbol_of(me, owner(s, me, b));
}

static void end_scatter(struct scene *s, uint32_t me, uint32_t b)
{
    if (owner(s, me, b) == me)
        check_set(scene_block(s->out, s, me, b), s->shape.root, s->shape.root + 1, me);
}

static void start_alltoall(struct scene *s, uint32_t me, uint32_t b)
{
    *scene_block(s->in, s, me, b) = symbol_of(me, owner(s, me, b));
}

static void end_alltoall(struct scene *s, uint32_t me, uint32_t b)
{
    uint32_t source = coll_source(s->algorithm, &s->shape, me, b);

    if (source != me)
        check_set(scene_block(s->out, s, me, b), source, source + 1, me);
}

/* ---- theory ---------------------------------------------------------------------------------- */

static uint32_t log_up(uint32_t p)
{
    uint32_t log = 0;

    while (1u << log < p)
        log++;
    return log;
}

static bool is_power(uint32_t p)
{
    return (p & (p - 1)) == 0;
}

static uint32_t rounds_log(uint32_t p, uint32_t blocks)
{
    (void)blocks;
    return log_up(p);
}

/* Rounds for the largest power of two, and two more rounds for the other participants. */
static uint32_t rounds_pairs(uint32_t p, uint32_t blocks)
{
    (void)blocks;
    return is_power(p) ? log_up(p) : log_up(p) + 1;
}

static uint32_t letters_tree(uint32_t p, uint32_t blocks)
{
    (void)blocks;
    return p - 1;
}

static uint32_t letters_all(uint32_t p, uint32_t blocks)
{
    (void)blocks;
    return p * log_up(p);
}

static uint32_t letters_pairs(uint32_t p, uint32_t blocks)
{
    uint32_t log = is_power(p) ? log_up(p) : log_up(p) - 1, speakers = 1u << log;

    (void)blocks;
    return 2 * (p - speakers) + speakers * log;
}

static uint32_t letters_scan(uint32_t p, uint32_t blocks)
{
    uint32_t letters = 0;

    (void)blocks;
    for (uint32_t far = 1; far < p; far *= 2)
        letters += p - far;
    return letters;
}

static uint32_t rounds_twice_around(uint32_t p, uint32_t blocks)
{
    (void)blocks;
    return 2 * (p - 1);
}

static uint32_t rounds_halving(uint32_t p, uint32_t blocks)
{
    (void)blocks;
    return 2 * log_up(p); /* rounds for the largest power of two, and two for the others */
}

/* As for allreduce, but the root needs no round to get the result back. */
static uint32_t rounds_reduce_halving(uint32_t p, uint32_t blocks)
{
    (void)blocks;
    return is_power(p) ? 2 * log_up(p) : 2 * log_up(p) - 1;
}

static uint32_t rounds_tree(uint32_t p, uint32_t blocks)
{
    return p == 1 ? 0 : blocks + (is_power(p) ? log_up(p) : log_up(p) - 1) - 1;
}

static uint32_t rounds_chain(uint32_t p, uint32_t blocks)
{
    return p == 1 ? 0 : blocks + p - 2;
}

static uint32_t rounds_eights(uint32_t p, uint32_t blocks)
{
    (void)blocks;
    return (p - 1 + 7) / 8;
}

static uint32_t letters_each(uint32_t p, uint32_t blocks)
{
    (void)blocks;
    return p * (p - 1);
}

static uint32_t letters_twice_each(uint32_t p, uint32_t blocks)
{
    (void)blocks;
    return 2 * p * (p - 1);
}

static uint32_t letters_slices(uint32_t p, uint32_t blocks)
{
    return blocks * (p - 1);
}

static uint32_t speakers_of(uint32_t p)
{
    return is_power(p) ? p : 1u << (log_up(p) - 1);
}

static uint32_t letters_halving(uint32_t p, uint32_t blocks)
{
    uint32_t speakers = speakers_of(p);

    (void)blocks;
    return 2 * (p - speakers) + 2 * speakers * log_up(speakers);
}

static uint32_t letters_reduce_halving(uint32_t p, uint32_t blocks)
{
    uint32_t speakers = speakers_of(p);

    (void)blocks;
    return p - speakers + speakers * log_up(speakers) + speakers - 1;
}

/* ---- the subjects ---------------------------------------------------------------------------- */

struct subject {
    const char *name;
    const struct coll_algorithm *algorithm;
    bool rooted;
    uint32_t scan; /* 1: twice the blocks */
    void (*start)(struct scene *s, uint32_t me, uint32_t b);
    void (*end)(struct scene *s, uint32_t me, uint32_t b);
    uint32_t (*rounds)(uint32_t p, uint32_t blocks);
    uint32_t (*letters)(uint32_t p, uint32_t blocks);
};

static const struct subject subjects[] = {
    {"barrier", &coll_barrier_dissemination, false, 0, start_none, end_none, rounds_log,
     letters_all},
    {"bcast", &coll_bcast_binomial, true, 0, start_bcast, end_bcast, rounds_log, letters_tree},
    {"reduce", &coll_reduce_binomial, true, 0, start_all, end_reduce, rounds_log, letters_tree},
    {"allreduce", &coll_allreduce_doubling, false, 0, start_all, end_allreduce, rounds_pairs,
     letters_pairs},
    {"scan", &coll_scan_doubling, false, 1, start_all, end_scan, rounds_log, letters_scan},
    {"gather", &coll_gather_binomial, true, 0, start_own, end_gather, rounds_log, letters_tree},
    {"scatter", &coll_scatter_binomial, true, 0, start_scatter, end_scatter, rounds_log,
     letters_tree},
    {"allgather", &coll_allgather_bruck, false, 0, start_own, end_allgather, rounds_log,
     letters_all},
    {"alltoall", &coll_alltoall_bruck, false, 0, start_alltoall, end_alltoall, rounds_log,
     letters_all},
    {"reduce_scatter", &coll_reduce_scatter_halving, false, 0, start_all, end_reduce_scatter,
     rounds_pairs, letters_pairs},
    {"bcast", &coll_bcast_tree, true, 0, start_bcast, end_bcast, rounds_tree, letters_slices},
    {"reduce", &coll_reduce_halving, true, 0, start_all, end_reduce, rounds_reduce_halving,
     letters_reduce_halving},
    {"allreduce", &coll_allreduce_halving, false, 0, start_all, end_allreduce, rounds_halving,
     letters_halving},
    {"allreduce", &coll_allreduce_ring, false, 0, start_all, end_allreduce, rounds_twice_around,
     letters_twice_each},
    {"scan", &coll_scan_chain, false, 1, start_all, end_scan, rounds_chain, letters_slices},
    {"gather", &coll_gather_direct, true, 0, start_own, end_gather, rounds_eights, letters_tree},
    {"scatter", &coll_scatter_direct, true, 0, start_scatter, end_scatter, rounds_eights,
     letters_tree},
    {"alltoall", &coll_alltoall_pairwise, false, 0, start_alltoall, end_alltoall, rounds_eights,
     letters_each},
    {"reduce_scatter", &coll_reduce_scatter_pairwise, false, 0, start_all, end_reduce_scatter,
     rounds_eights, letters_each},
};
enum { SUBJECTS = sizeof(subjects) / sizeof(subjects[0]) };

static bool is_subject(const char *kind, const struct coll_algorithm *a)
{
    if (kind && strcmp(kind, "exscan") == 0)
        kind = "scan";
    for (int i = 0; kind && i < SUBJECTS; i++)
        if (strcmp(subjects[i].name, kind) == 0 && subjects[i].algorithm == a)
            return true;
    return false;
}

/* Opens participants with the data that the kind starts with. */
static void set_out(struct scene *s, const struct subject *of, struct coll_shape shape)
{
    scene_start(s, of->algorithm, shape, shape.blocks << of->scan);
    for (uint32_t me = 0; me < shape.participants; me++)
        for (uint32_t b = 0; b < shape.blocks; b++)
            of->start(s, me, b);
}

static void run_one(const struct subject *of, struct coll_shape shape)
{
    struct scene s;

    set_out(&s, of, shape);
    scene_run(&s);
    for (uint32_t me = 0; me < shape.participants; me++)
        for (uint32_t b = 0; b < shape.blocks; b++)
            of->end(&s, me, b);
    CU_ASSERT_EQUAL_FATAL(of->algorithm->rounds(&shape),
                          of->rounds(shape.participants, shape.blocks));
    CU_ASSERT_EQUAL_FATAL(s.total, of->letters(shape.participants, shape.blocks));
    for (uint32_t me = 0; of->algorithm->times > 0 && me < shape.participants; me++) {
        uint32_t most = coll_times(of->algorithm, &shape) * shape.blocks;

        CU_ASSERT_FATAL(s.sent[me] <= most && s.got[me] <= most);
    }
    scene_end(&s);
}

/* With a sanitizer only some of the large numbers are run, with some of their roots. The release
 * build runs all numbers, and all roots with the smallest size. */
#ifdef __SANITIZE_ADDRESS__
enum { SOME_NUMBERS = 19, SOME_ROOTS = 7 };
#else
enum { SOME_NUMBERS = 1, SOME_ROOTS = 1 };
#endif

static uint32_t next_number(uint32_t p)
{
    return p + (p < 34 || p >= MOST - 3 ? 1 : SOME_NUMBERS);
}

static uint32_t next_root(uint32_t root, uint32_t p, bool smallest)
{
    return root + (p < 20 ? 1 : smallest ? SOME_ROOTS : 7);
}

/* Runs the subject with each root, and with each number of blocks that the algorithm can have. */
static void run_subject(const struct subject *of, uint32_t p)
{
    static const uint64_t bytes[] = {0, 1, COLL_SLICE, COLL_SLICE + 1, 8 * COLL_SLICE};
    uint32_t sizes = of->algorithm->cut == COLL_BY_SLICE ? 5 : 1;

    for (uint32_t i = 0; i < sizes; i++)
        for (uint32_t root = 0; root < (of->rooted ? p : 1); root = next_root(root, p, i == 0))
            run_one(of, (struct coll_shape){p, root, coll_blocks(of->algorithm, p, bytes[i])});
}

static void test_subjects(void)
{
    for (int i = 0; i < SUBJECTS; i++)
        for (uint32_t p = 1; p <= MOST; p = next_number(p))
            run_subject(&subjects[i], p);
}

static const struct subject *subject_of(const struct coll_algorithm *algorithm)
{
    int i = 0;

    while (subjects[i].algorithm != algorithm)
        i++;
    return &subjects[i];
}

/* Guards that a reduce groups each block as the allreduce does, with any root. */
static void check_grouping(const struct coll_algorithm *reduce,
                           const struct coll_algorithm *allreduce, uint32_t p)
{
    struct scene all, one;

    set_out(&all, subject_of(allreduce), (struct coll_shape){p, 0, coll_blocks(allreduce, p, 8)});
    scene_run(&all);
    for (uint32_t root = 0; root < p; root++) {
        set_out(&one, subject_of(reduce), (struct coll_shape){p, root, all.shape.blocks});
        scene_run(&one);
        for (uint32_t b = 0; b < one.shape.blocks; b++)
            CU_ASSERT_EQUAL_FATAL(memcmp(&scene_block(one.out, &one, root, b)->real,
                                         &scene_block(all.out, &all, 0, b)->real, sizeof(double)),
                                  0);
        scene_end(&one);
    }
    scene_end(&all);
}

static void test_reduce_groups_as_allreduce(void)
{
    for (uint32_t p = 1; p <= 70; p++) {
        check_grouping(&coll_reduce_binomial, &coll_allreduce_doubling, p);
        check_grouping(&coll_reduce_halving, &coll_allreduce_halving, p);
    }
}

/* Guards that after a barrier every participant has heard of every other, directly or through
 * others. */
static void test_barrier_holds(void)
{
    for (uint32_t p = 1; p <= MOST; p++) {
        struct coll_shape shape = {p, 0, 1};
        struct symbol heard[MOST];
        struct coll_round out;

        for (uint32_t me = 0; me < p; me++)
            heard[me] = symbol_of(me, 0);
        for (uint32_t r = 0; r < coll_barrier_dissemination.rounds(&shape); r++) {
            struct symbol before[MOST];

            memcpy(before, heard, sizeof(heard));
            for (uint32_t me = 0; me < p; me++) {
                coll_barrier_dissemination.round(&shape, me, r, &out);
                for (uint32_t i = 0; i < out.arrivals; i++)
                    for (int word = 0; word < SET_WORDS; word++)
                        heard[me].set[word] |= before[out.from[i].peer].set[word];
            }
        }
        for (uint32_t me = 0; me < p; me++)
            check_set(&heard[me], 0, p, 0);
    }
}

/* Guards that coll_alltoall_pair names source and target of each block in each round. The engine
 * computes the bytes of a letter from that alone, where blocks have unequal sizes. */
static void test_alltoall_pairs(void)
{
    for (uint32_t p = 1; p <= MOST; p++) {
        struct coll_shape shape = {p, 0, p};
        uint32_t rounds = coll_alltoall_bruck.rounds(&shape);
        struct scene s;

        set_out(&s, subject_of(&coll_alltoall_bruck), shape);
        for (uint32_t r = 0;; r++) {
            for (uint32_t me = 0; me < p; me++)
                for (uint32_t b = 0; b < p; b++) {
                    uint32_t source, target;

                    coll_alltoall_pair(&shape, me, r, b, &source, &target);
                    CU_ASSERT_FATAL(symbol_holds(scene_block(s.in, &s, me, b), source));
                    CU_ASSERT_EQUAL_FATAL(scene_block(s.in, &s, me, b)->what, target);
                }
            if (r == rounds)
                break;
            scene_round(&s, r);
        }
        scene_end(&s);
    }
}

static void test_arithmetic(void)
{
    struct coll_range runs = {2, 2, 4, 9};

    CU_ASSERT_EQUAL(coll_range_blocks(&runs), 2 + 2);
    runs.end = 11;
    CU_ASSERT_EQUAL(coll_range_blocks(&runs), 2 + 2 + 1);
    for (uint32_t n = 1; n <= MOST; n++) {
        CU_ASSERT_EQUAL(coll_log2_up(n), log_up(n));
        CU_ASSERT_EQUAL(coll_log2(n), is_power(n) ? log_up(n) : log_up(n) - 1);
        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = 0; b < n; b++) {
                CU_ASSERT_EQUAL(coll_plus(n, a, b), (a + b) % n);
                CU_ASSERT_EQUAL(coll_minus(n, a, b), (a + n - b) % n);
            }
    }
}

/* Guards that nothing overflows with the highest number of participants. */
static void test_most_participants(void)
{
    for (int i = 0; i < SUBJECTS; i++) {
        const struct coll_algorithm *a = subjects[i].algorithm;
        uint32_t p = COLL_PARTICIPANTS, last = p - 1;
        struct coll_shape shape = {p, subjects[i].rooted ? last : 0, coll_blocks(a, p, 1)};
        uint32_t me[] = {0, 1, p / 2, last - 1, last}, rounds = a->rounds(&shape);

        for (int k = 0; k < 5; k++)
            for (uint32_t r = 0; r < rounds; r = r == 40 && rounds > 80 ? rounds - 40 : r + 1) {
                struct coll_round mine, theirs;
                struct coll_range range = {0};
                uint32_t place;

                a->round(&shape, me[k], r, &mine);
                for (uint32_t n = 0; n < mine.sends; n++) {
                    a->round(&shape, mine.to[n].peer, r, &theirs);
                    CU_ASSERT_EQUAL_FATAL(
                        letters_with(theirs.from, theirs.arrivals, me[k], &range, &place), 1);
                    CU_ASSERT_EQUAL_FATAL(coll_range_blocks(&range),
                                          coll_range_blocks(&mine.to[n].blocks));
                }
            }
    }
}

static const struct coll_choices none;

static const struct coll_algorithm *chosen(const struct coll_choices *choices, uint32_t kind,
                                           uint64_t bytes, uint32_t participants)
{
    const struct coll_row *row = coll_row(coll_choose(choices, kind, bytes, participants));

    return row ? row->algorithm : NULL;
}

/* Guards the table: each call that the engine can get has exactly one algorithm, which ends as its
 * kind promises. */
static void test_table(void)
{
    static const uint64_t bytes[] = {0, 8, 1 << 10, 1 << 14, 1 << 15, (1 << 16) - 1, 1 << 16};
    static const uint32_t participants[] = {1, 2, 3, 17, MOST, COLL_PARTICIPANTS};

    for (uint32_t kind = TEAM_BARRIER; kind <= TEAM_ALLTOALL; kind++)
        for (uint32_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
            for (uint32_t k = 0; k < sizeof(participants) / sizeof(participants[0]); k++)
                CU_ASSERT(is_subject(team_kind_name(kind),
                                     chosen(&none, kind, bytes[i], participants[k])));
    for (uint32_t i = 0; coll_row(i); i++)
        CU_ASSERT(is_subject(team_kind_name(coll_row(i)->kind), coll_row(i)->algorithm));
    CU_ASSERT_PTR_NULL(chosen(&none, TEAM_KINDS, 0, 1));
    CU_ASSERT_PTR_NULL(chosen(&none, 0, 0, 1));
    CU_ASSERT_PTR_NULL(team_kind_name(0));
    CU_ASSERT_PTR_NULL(team_kind_name(TEAM_KINDS));
}

/* Guards coll_reach, which says for a row of the table which lengths choose it; and that each row
 * is chosen by some call that the library makes, up to TEAM_DATA_BYTES. */
static void test_reach(void)
{
    bool reached[COLL_ROWS] = {false};

    for (uint32_t row = 0; row < COLL_ROWS; row++)
        for (uint32_t p = 1; p <= MOST; p++) {
            uint32_t kind = coll_row(row)->kind;
            uint64_t first, last;

            if (!coll_reach(&none, row, p, &first, &last))
                continue;
            reached[row] |= first <= TEAM_DATA_BYTES;
            CU_ASSERT_EQUAL(coll_choose(&none, kind, first, p), row);
            CU_ASSERT_EQUAL(coll_choose(&none, kind, last, p), row);
            CU_ASSERT(first == 0 || coll_choose(&none, kind, first - 1, p) != row);
            CU_ASSERT(last == UINT64_MAX || coll_choose(&none, kind, last + 1, p) != row);
        }
    for (uint32_t row = 0; row < COLL_ROWS; row++)
        CU_ASSERT(reached[row]);
}

/* Guards that an algorithm whose rounds grow with the participants is chosen only where each
 * participant has at least that much data, and that few participants do not cut it. */
static void test_participants(void)
{
    static const struct {
        enum team_kind kind;
        uint64_t bytes;
        uint32_t most; /* participants up to which `algorithm` is chosen; beyond, the other one */
        const struct coll_algorithm *algorithm, *beyond;
    } cases[] = {
        {TEAM_ALLREDUCE, 32 << 10, 9, &coll_allreduce_ring, &coll_allreduce_halving},
        {TEAM_SCAN, 32 << 10, 4, &coll_scan_chain, &coll_scan_doubling},
        {TEAM_EXSCAN, 32 << 10, 4, &coll_scan_chain, &coll_scan_doubling},
        {TEAM_REDUCE_SCATTER, 1 << 10, 16, &coll_reduce_scatter_pairwise,
         &coll_reduce_scatter_halving},
        {TEAM_REDUCE_SCATTER, 32 << 10, 32, &coll_reduce_scatter_pairwise,
         &coll_reduce_scatter_halving},
        {TEAM_GATHER, 1 << 10, 64, &coll_gather_direct, &coll_gather_binomial},
        {TEAM_SCATTER, 1 << 10, 64, &coll_scatter_direct, &coll_scatter_binomial},
        {TEAM_ALLTOALL, 1 << 10, 24, &coll_alltoall_pairwise, &coll_alltoall_bruck},
        {TEAM_ALLTOALL, 32 << 10, 48, &coll_alltoall_pairwise, &coll_alltoall_bruck},
    };

    static const struct {
        enum team_kind kind;
        uint32_t least; /* participants from which `algorithm` is chosen */
        const struct coll_algorithm *algorithm, *algorithm_of_fewer;
    } few[] = {
        {TEAM_BCAST, 4, &coll_bcast_tree, &coll_bcast_binomial},
        {TEAM_REDUCE, 4, &coll_reduce_halving, &coll_reduce_binomial},
        {TEAM_ALLREDUCE, 3, &coll_allreduce_ring, &coll_allreduce_doubling},
        {TEAM_SCAN, 3, &coll_scan_chain, &coll_scan_doubling},
        {TEAM_EXSCAN, 3, &coll_scan_chain, &coll_scan_doubling},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CU_ASSERT_PTR_EQUAL(chosen(&none, cases[i].kind, cases[i].bytes, cases[i].most),
                            cases[i].algorithm);
        CU_ASSERT_PTR_EQUAL(chosen(&none, cases[i].kind, cases[i].bytes, cases[i].most + 1),
                            cases[i].beyond);
    }
    /* Fewer participants do not cut: pieces would only be more letters. */
    for (size_t i = 0; i < sizeof(few) / sizeof(few[0]); i++) {
        CU_ASSERT_PTR_EQUAL(chosen(&none, few[i].kind, 64 << 10, few[i].least), few[i].algorithm);
        CU_ASSERT_PTR_EQUAL(chosen(&none, few[i].kind, 64 << 10, few[i].least - 1),
                            few[i].algorithm_of_fewer);
    }
    /* For a power of two the ring is not chosen. */
    CU_ASSERT_PTR_EQUAL(chosen(&none, TEAM_ALLREDUCE, 32 << 10, 7), &coll_allreduce_ring);
    CU_ASSERT_PTR_EQUAL(chosen(&none, TEAM_ALLREDUCE, 32 << 10, 8), &coll_allreduce_halving);
}

/* Guards the lengths at which the choice of algorithm changes, with four participants. */
static void test_thresholds(void)
{
    static const struct {
        enum team_kind kind;
        uint64_t bytes;
        const struct coll_algorithm *below, *algorithm;
    } cases[] = {
        {TEAM_BCAST, 16 << 10, &coll_bcast_binomial, &coll_bcast_tree},
        {TEAM_REDUCE, 32 << 10, &coll_reduce_binomial, &coll_reduce_halving},
        {TEAM_ALLREDUCE, 16 << 10, &coll_allreduce_doubling, &coll_allreduce_halving},
        {TEAM_SCAN, 32 << 10, &coll_scan_doubling, &coll_scan_chain},
        {TEAM_EXSCAN, 32 << 10, &coll_scan_doubling, &coll_scan_chain},
        {TEAM_REDUCE_SCATTER, 1 << 10, &coll_reduce_scatter_halving, &coll_reduce_scatter_pairwise},
        {TEAM_GATHER, 1 << 10, &coll_gather_binomial, &coll_gather_direct},
        {TEAM_SCATTER, 1 << 10, &coll_scatter_binomial, &coll_scatter_direct},
        {TEAM_ALLTOALL, 1 << 10, &coll_alltoall_bruck, &coll_alltoall_pairwise},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CU_ASSERT_PTR_EQUAL(chosen(&none, cases[i].kind, cases[i].bytes - 1, 4), cases[i].below);
        CU_ASSERT_PTR_EQUAL(chosen(&none, cases[i].kind, cases[i].bytes, 4), cases[i].algorithm);
    }
}

static void test_replacement(void)
{
    struct coll_choices choices = {{0}};
    uint64_t first, last;

    /* Only other kinds have an algorithm of that name. */
    CU_ASSERT_EQUAL(coll_replace(&choices, TEAM_BCAST, "ring"), -ENOENT);
    CU_ASSERT_PTR_EQUAL(chosen(&choices, TEAM_BCAST, 8, 4), &coll_bcast_binomial);
    CU_ASSERT_EQUAL(coll_replace(&choices, TEAM_BCAST, "tree"), 0);
    CU_ASSERT_PTR_EQUAL(chosen(&choices, TEAM_BCAST, 8, 4), &coll_bcast_tree);
    CU_ASSERT_PTR_EQUAL(chosen(&choices, TEAM_REDUCE, 8, 4), &coll_reduce_binomial);
    CU_ASSERT(coll_choices_valid(&choices));
    for (uint32_t row = 0; row < COLL_ROWS; row++)
        if (coll_row(row)->kind == TEAM_BCAST) {
            bool tree = coll_row(row)->algorithm == &coll_bcast_tree;

            CU_ASSERT_EQUAL(coll_reach(&choices, row, 4, &first, &last), tree);
            CU_ASSERT(!tree || (first == 0 && last == UINT64_MAX));
        }
    choices.by_kind[TEAM_REDUCE] = choices.by_kind[TEAM_BCAST]; /* a row of another kind */
    CU_ASSERT_FALSE(coll_choices_valid(&choices));
    choices.by_kind[TEAM_REDUCE] = COLL_ROWS + 1;
    CU_ASSERT_FALSE(coll_choices_valid(&choices));
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"each kind, 1 to 130 participants, each root", test_subjects},
        {"reduce groups as allreduce does", test_reduce_groups_as_allreduce},
        {"behind a barrier everybody has heard of everybody", test_barrier_holds},
        {"where the blocks of an alltoall come from and go to", test_alltoall_pairs},
        {"arithmetic of participants and ranges", test_arithmetic},
        {"2^24 participants", test_most_participants},
        {"the table", test_table},
        {"lengths at which the algorithm changes", test_thresholds},
        {"participants at which it changes", test_participants},
        {"configuration replaces rows", test_replacement},
        {"which calls come to a row", test_reach},
        CU_TEST_INFO_NULL,
    };

    return suite_run("schedules", tests);
}
