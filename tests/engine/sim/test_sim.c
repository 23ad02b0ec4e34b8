/*
 * The simulated fabric keeps the fabric's contract: what may happen does happen for some seed, what
 * may not never does, and a seed is replayed exactly. Thread: one.
 */
#include <errno.h>
#include <string.h>
#include "tests/suite.h"
#include "tests/engine/bench/fabric_pair.h"

#define SEEDS 50u
#define OPS   40u

/* Checks that an announced write is whole when its announcement comes, and that each write arrives
 * once; in order, where the fabric is ordered. */
static void check_arrivals(uint64_t seed, bool ordered, struct sim_counters *sum)
{
    static struct fabric_pair p;
    struct sim_options options = {.seed = seed, .ordered_write_max = ordered ? 4096 : 0};
    uint32_t arrived = 0, length = PAIR_BYTES / OPS;
    uint64_t seen = 0;
    struct fabric_event event;

    pair_open(&p, &options, FABRIC_REMOTE_WRITE);
    memset(p.bytes[ORIGIN], 0x5a, PAIR_BYTES);
    for (uint32_t i = 0; i < OPS; i++) {
        struct fabric_write w = pair_write(&p, (uint64_t)i * length, length, i);

        CU_ASSERT_EQUAL_FATAL(fabric_post_write(p.fabric[ORIGIN], &w), 0);
    }
    while (pair_await(&p, TARGET, &event)) {
        uint32_t i = event.immediate;

        CU_ASSERT_EQUAL_FATAL(event.kind, FABRIC_ARRIVED);
        CU_ASSERT_FATAL(i < OPS && !(seen >> i & 1));
        seen |= UINT64_C(1) << i;
        if (ordered)
            CU_ASSERT_EQUAL(i, arrived);
        CU_ASSERT_EQUAL(memcmp(p.bytes[TARGET] + i * length, p.bytes[ORIGIN] + i * length, length),
                        0);
        arrived++;
    }
    CU_ASSERT_EQUAL(arrived, OPS);
    CU_ASSERT_PTR_NULL(sim_fault(p.world));
    sum->overtaken += sim_counters(p.world)->overtaken;
    sum->pieces += sim_counters(p.world)->pieces;
    pair_close(&p);
}

static void test_ordered(void)
{
    struct sim_counters sum = {0};

    for (uint64_t seed = 0; seed < SEEDS; seed++)
        check_arrivals(seed, true, &sum);
    CU_ASSERT_EQUAL(sum.overtaken, 0);
    CU_ASSERT_EQUAL(sum.pieces, SEEDS * OPS);
}

static void test_unordered(void)
{
    struct sim_counters sum = {0};

    for (uint64_t seed = 0; seed < SEEDS; seed++)
        check_arrivals(seed, false, &sum);
    CU_ASSERT(sum.overtaken > 0);
    CU_ASSERT(sum.pieces > SEEDS * OPS);
}

/* Guards that a write with `placed` never completes before its bytes have landed, which a plain
 * write may do. Returns how often a write completed before. */
static uint32_t completions_before_landing(bool placed)
{
    static struct fabric_pair p;
    uint32_t early = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_options options = {.seed = seed};
        struct fabric_event event;
        struct fabric_write w;

        pair_open(&p, &options, FABRIC_REMOTE_WRITE);
        memset(p.bytes[ORIGIN], 0x5a, 64);
        w = pair_write(&p, 0, 64, 5);
        w.announce = false;
        w.placed = placed;
        CU_ASSERT_EQUAL_FATAL(fabric_post_write(p.fabric[ORIGIN], &w), 0);
        CU_ASSERT_FATAL(pair_await(&p, ORIGIN, &event));
        CU_ASSERT_EQUAL(event.kind, FABRIC_WRITTEN);
        CU_ASSERT_EQUAL(event.status, 0);
        CU_ASSERT_EQUAL(event.cookie, 5);
        early += memcmp(p.bytes[TARGET], p.bytes[ORIGIN], 64) != 0;
        /* The source is the origin's again after the completion: data in flight must not change
         * with it. */
        memset(p.bytes[ORIGIN], 0xff, 64);
        CU_ASSERT_FALSE(pair_await(&p, ORIGIN, &event));
        CU_ASSERT_EQUAL(p.bytes[TARGET][0], 0x5a);
        CU_ASSERT_EQUAL(p.bytes[TARGET][63], 0x5a);
        pair_close(&p);
    }
    return early;
}

static void test_completion(void)
{
    uint32_t early = completions_before_landing(false);

    CU_ASSERT(early > 0 && early < SEEDS);
    CU_ASSERT_EQUAL(completions_before_landing(true), 0);
}

static void test_read(void)
{
    static struct fabric_pair p;
    struct sim_options options = {.seed = 1};
    struct fabric_event event;
    struct fabric_read r;

    pair_open(&p, &options, FABRIC_REMOTE_READ);
    memset(p.bytes[TARGET], 0x11, PAIR_BYTES);
    r = pair_read(&p, 100, 5000, 9);
    CU_ASSERT_EQUAL_FATAL(fabric_post_read(p.fabric[ORIGIN], &r), 0);
    CU_ASSERT_FATAL(pair_await(&p, ORIGIN, &event));
    CU_ASSERT_EQUAL(event.kind, FABRIC_READ);
    CU_ASSERT_EQUAL(event.status, 0);
    CU_ASSERT_EQUAL(event.cookie, 9);
    CU_ASSERT_EQUAL(p.bytes[ORIGIN][99], 0);
    CU_ASSERT_EQUAL(p.bytes[ORIGIN][5100], 0);
    CU_ASSERT_EQUAL(memcmp(p.bytes[ORIGIN] + 100, p.bytes[TARGET] + 100, 5000), 0);
    pair_close(&p);
}

static void test_refusal(void)
{
    static struct fabric_pair p;
    struct sim_options options = {.seed = 1, .outstanding_max = 4};
    struct fabric_write w;

    pair_open(&p, &options, FABRIC_REMOTE_WRITE);
    w = pair_write(&p, 0, 8, 0);
    for (int i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(fabric_post_write(p.fabric[ORIGIN], &w), 0);
    CU_ASSERT_EQUAL(fabric_post_write(p.fabric[ORIGIN], &w), -EAGAIN);
    CU_ASSERT_EQUAL(sim_outstanding(p.world, ORIGIN), 4);
    sim_advance(p.world, 1000000);
    CU_ASSERT_EQUAL(sim_waiting(p.world, ORIGIN), 4);
    CU_ASSERT_EQUAL(fabric_post_write(p.fabric[ORIGIN], &w), 0);
    pair_close(&p);
}

enum breakage { BREAK_CUT, BREAK_ORIGIN_LEAVES, BREAK_TARGET_LEAVES, BREAK_TARGET_CLOSES };

/*
 * Breaks the connection while operations are under way. Guards that each operation ends exactly
 * once, by the origin's disconnect at the latest, and that nothing lands after the target's
 * disconnect.
 */
static void check_break(uint64_t seed, enum breakage breakage, struct sim_counters *sum)
{
    static struct fabric_pair p;
    static uint8_t before[PAIR_BYTES];
    struct sim_options options = {.seed = seed, .delay_max_ns = 20000};
    uint32_t ended[OPS] = {0};
    struct fabric_event event;
    uint64_t when;

    pair_open(&p, &options, FABRIC_REMOTE_WRITE | FABRIC_REMOTE_READ);
    when = sim_now(p.world);
    memset(p.bytes[ORIGIN], 0x5a, PAIR_BYTES);
    for (uint32_t i = 0; i < OPS; i++) {
        struct fabric_write w = pair_write(&p, (uint64_t)i * 512, 512, i);
        struct fabric_read r = pair_read(&p, (uint64_t)i * 512, 512, i);

        w.placed = i % 3 == 1;
        CU_ASSERT_EQUAL_FATAL(i % 3 == 2 ? fabric_post_read(p.fabric[ORIGIN], &r)
                                         : fabric_post_write(p.fabric[ORIGIN], &w),
                              0);
    }
    sim_advance(p.world, when + seed * 1000);
    if (breakage == BREAK_CUT)
        sim_cut(p.world, ORIGIN, TARGET);
    else if (breakage == BREAK_TARGET_LEAVES)
        fabric_disconnect(p.fabric[TARGET], ORIGIN);
    else if (breakage == BREAK_TARGET_CLOSES)
        fabric_close(p.fabric[TARGET]);
    if (breakage != BREAK_ORIGIN_LEAVES)
        sim_advance(p.world, sim_now(p.world) + 10000);
    fabric_disconnect(p.fabric[ORIGIN], TARGET);
    while (pair_await(&p, ORIGIN, &event)) {
        CU_ASSERT_FATAL(event.kind == FABRIC_WRITTEN || event.kind == FABRIC_READ);
        ended[event.cookie]++;
    }
    for (uint32_t i = 0; i < OPS; i++)
        CU_ASSERT_EQUAL(ended[i], 1);
    if (breakage == BREAK_ORIGIN_LEAVES || breakage == BREAK_CUT)
        fabric_disconnect(p.fabric[TARGET], ORIGIN);
    memcpy(before, p.bytes[TARGET], PAIR_BYTES);
    sim_advance(p.world, sim_now(p.world) + 10000000);
    CU_ASSERT_EQUAL(memcmp(before, p.bytes[TARGET], PAIR_BYTES), 0);
    CU_ASSERT_PTR_NULL(sim_fault(p.world));
    CU_ASSERT_EQUAL(sim_outstanding(p.world, ORIGIN), 0);
    sum->lost += sim_counters(p.world)->lost;
    sum->landed += sim_counters(p.world)->landed;
    sum->cancelled += sim_counters(p.world)->cancelled;
    pair_close(&p);
}

static void test_breaks(void)
{
    static const enum breakage all[] = {BREAK_CUT, BREAK_ORIGIN_LEAVES, BREAK_TARGET_LEAVES,
                                        BREAK_TARGET_CLOSES};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct sim_counters sum = {0};

        for (uint64_t seed = 0; seed < SEEDS; seed++)
            check_break(seed, all[i], &sum);
        CU_ASSERT(sum.lost > 0 && sum.landed > 0 && sum.cancelled > 0);
    }
}

/* Guards that at the target's disconnect nothing is in flight any more, even towards a new
 * connection. */
static void test_nothing_lands_late(void)
{
    static struct fabric_pair p;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_options options = {.seed = seed};
        static const uint8_t zero[PAIR_BYTES];

        pair_open(&p, &options, FABRIC_REMOTE_WRITE);
        memset(p.bytes[ORIGIN], 0x5a, PAIR_BYTES);
        for (uint32_t i = 0; i < OPS; i++) {
            struct fabric_write w = pair_write(&p, (uint64_t)i * 512, 512, i);

            CU_ASSERT_EQUAL_FATAL(fabric_post_write(p.fabric[ORIGIN], &w), 0);
        }
        fabric_disconnect(p.fabric[TARGET], ORIGIN);
        fabric_disconnect(p.fabric[ORIGIN], TARGET);
        pair_link(&p);
        sim_advance(p.world, sim_now(p.world) + 10000000);
        CU_ASSERT_EQUAL(memcmp(p.bytes[TARGET], zero, PAIR_BYTES), 0);
        pair_close(&p);
    }
}

/* Guards that a break is reported once, unless it is silent, and that a cut link works again after
 * both ends have connected again. */
static void test_restore(void)
{
    static struct fabric_pair p;
    struct sim_options options = {.seed = 3};
    struct fabric_event event;
    struct fabric_write w;

    pair_open(&p, &options, FABRIC_REMOTE_WRITE);
    sim_cut(p.world, ORIGIN, TARGET);
    CU_ASSERT_FATAL(pair_await(&p, ORIGIN, &event));
    CU_ASSERT_EQUAL(event.kind, FABRIC_BROKEN);
    CU_ASSERT_EQUAL(event.peer, TARGET);
    CU_ASSERT_FALSE(pair_await(&p, ORIGIN, &event));
    sim_restore(p.world, ORIGIN, TARGET);
    w = pair_write(&p, 0, 8, 1);
    w.placed = true;
    CU_ASSERT_EQUAL(fabric_post_write(p.fabric[ORIGIN], &w), 0);
    CU_ASSERT_FALSE(pair_await(&p, ORIGIN, &event));
    fabric_disconnect(p.fabric[TARGET], ORIGIN);
    fabric_disconnect(p.fabric[ORIGIN], TARGET);
    pair_link(&p);
    CU_ASSERT_FATAL(pair_await(&p, ORIGIN, &event));
    CU_ASSERT_EQUAL(event.status, -ECANCELED);
    CU_ASSERT_EQUAL(fabric_post_write(p.fabric[ORIGIN], &w), 0);
    CU_ASSERT_FATAL(pair_await(&p, ORIGIN, &event));
    CU_ASSERT_EQUAL(event.status, 0);
    pair_close(&p);

    options.silent_per_mille = 1000;
    pair_open(&p, &options, FABRIC_REMOTE_WRITE);
    sim_cut(p.world, ORIGIN, TARGET);
    CU_ASSERT_FALSE(pair_await(&p, ORIGIN, &event));
    pair_close(&p);
}

enum misuse {
    MISUSE_NONE,
    MISUSE_KEY,
    MISUSE_RIGHT,
    MISUSE_BEFORE,
    MISUSE_BEYOND,
    MISUSE_DROPPED_TARGET,
    MISUSE_DROP_IN_USE,
    MISUSE_DROP_TWICE,
    MISUSE_SOURCE,
    MISUSE_UNCONNECTED,
};

static void test_faults(void)
{
    static const struct {
        enum misuse misuse;
        const char *says; /* NULL: no fault */
    } rows[] = {
        {MISUSE_NONE, NULL},
        {MISUSE_KEY, "wrong key"},
        {MISUSE_RIGHT, "without the right"},
        {MISUSE_BEFORE, "out of bounds"},
        {MISUSE_BEYOND, "out of bounds"},
        {MISUSE_DROPPED_TARGET, "wrong key"},
        {MISUSE_DROP_IN_USE, "still uses"},
        {MISUSE_DROP_TWICE, "does not have"},
        {MISUSE_SOURCE, "outside its memory"},
        {MISUSE_UNCONNECTED, "without a connection"},
    };
    static struct fabric_pair p;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum misuse m = rows[i].misuse;
        struct sim_options options = {.seed = i};
        struct fabric_write w;
        const char *fault;

        pair_open(&p, &options, m == MISUSE_RIGHT ? FABRIC_REMOTE_READ : FABRIC_REMOTE_WRITE);
        w = pair_write(&p, PAIR_BYTES - 64, 64, 0);
        w.remote_key ^= m == MISUSE_KEY;
        w.remote_address += m == MISUSE_BEYOND;
        if (m == MISUSE_BEFORE)
            w.remote_address = p.memory[TARGET].address - 1;
        if (m == MISUSE_SOURCE)
            w.source = p.bytes[ORIGIN] + PAIR_BYTES - 63;
        if (m == MISUSE_UNCONNECTED)
            fabric_disconnect(p.fabric[ORIGIN], TARGET);
        fabric_post_write(p.fabric[ORIGIN], &w);
        if (m == MISUSE_DROPPED_TARGET)
            fabric_mem_drop(p.fabric[TARGET], p.memory[TARGET].index, 0);
        if (m == MISUSE_DROP_IN_USE)
            fabric_mem_drop(p.fabric[ORIGIN], p.memory[ORIGIN].index, 0);
        sim_advance(p.world, sim_now(p.world) + 1000000);
        for (int times = 0; m == MISUSE_DROP_TWICE && times < 2; times++)
            fabric_mem_drop(p.fabric[TARGET], p.memory[TARGET].index, 0);
        fault = sim_fault(p.world);
        CU_ASSERT_EQUAL(fault != NULL, rows[i].says != NULL);
        if (fault && rows[i].says)
            CU_ASSERT_PTR_NOT_NULL(strstr(fault, rows[i].says));
        pair_close(&p);
    }
}

static void test_drop(void)
{
    static struct fabric_pair p;
    struct sim_options options = {.seed = 1};
    struct fabric_event event;

    pair_open(&p, &options, FABRIC_REMOTE_WRITE);
    CU_ASSERT_EQUAL(fabric_mem_drop(p.fabric[TARGET], p.memory[TARGET].index, 12), 0);
    CU_ASSERT_FATAL(pair_await(&p, TARGET, &event));
    CU_ASSERT_EQUAL(event.kind, FABRIC_DROPPED);
    CU_ASSERT_EQUAL(event.cookie, 12);
    CU_ASSERT_EQUAL(event.status, 0);
    pair_close(&p);
}

/* Returns a word that depends on every event of a busy run with breaks. */
static uint64_t fingerprint(uint64_t seed)
{
    static struct fabric_pair p;
    struct sim_options options = {.seed = seed, .refuse_per_mille = 100, .call_ns = 50};
    struct fabric_event event;
    uint64_t print = 0;

    pair_open(&p, &options, FABRIC_REMOTE_WRITE);
    for (uint32_t i = 0; i < OPS; i++) {
        struct fabric_write w = pair_write(&p, (uint64_t)i * 512, 512, i);

        print = print * 31 + (uint64_t)(fabric_post_write(p.fabric[ORIGIN], &w) + 100);
    }
    sim_cut(p.world, ORIGIN, TARGET);
    for (int node = 0; node < 2; node++)
        while (pair_await(&p, node, &event))
            print = print * 31 + event.kind + event.cookie + event.immediate + sim_now(p.world);
    pair_close(&p);
    return print;
}

static void test_replay(void)
{
    CU_ASSERT_EQUAL(fingerprint(11), fingerprint(11));
    CU_ASSERT_NOT_EQUAL(fingerprint(11), fingerprint(12));
}

int main(void)
{
    CU_TestInfo tests[] = {{"ordered writes arrive in order", test_ordered},
                           {"unordered writes overtake and come in pieces", test_unordered},
                           {"completion and placement", test_completion},
                           {"read", test_read},
                           {"refusal when much is outstanding", test_refusal},
                           {"breaks end each operation once", test_breaks},
                           {"nothing lands after the target has left", test_nothing_lands_late},
                           {"a link cut and restored", test_restore},
                           {"misuse is a fault", test_faults},
                           {"memory dropped", test_drop},
                           {"a seed is replayed", test_replay},
                           CU_TEST_INFO_NULL};

    return suite_run("sim", tests);
}
