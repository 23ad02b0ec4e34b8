/* Tests patience.h by tables: each row says what a thread has done (worked, yielded, lost the
 * core), and what the thread must do next. */
#include "shm_ring/patience.h"
#include "tests/suite.h"

#include <stdio.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

enum happening { WORK, YIELD, LOSS }; /* a yield, or a loss of the core, from `at` to `until` */

struct row {
    const char *name;
    enum patience_mode mode;
    struct {
        enum happening what;
        uint64_t at, until;
    } past[6];
    size_t count;
    uint64_t now;
    enum patience_step next;
    bool may_yield;
    int64_t due; /* work is due this long after `now`; 0: none is */
};

static const uint64_t T = 3600 * 1000 * MS; /* the time after an hour of the clock */

#define WINDOW PATIENCE_WINDOW_NS
#define LONG   PATIENCE_LONG_NS

static void check(const struct row *row)
{
    struct patience p;

    patience_init(&p, row->mode, LONG);
    for (size_t i = 0; i < row->count; i++)
        if (row->past[i].what == WORK)
            patience_worked(&p, T + row->past[i].at);
        else if (row->past[i].what == YIELD)
            patience_yielded(&p, T + row->past[i].at, T + row->past[i].until);
        else
            patience_lost(&p, row->past[i].until - row->past[i].at, T + row->past[i].until);

    uint64_t deadline = row->due == 0 ? UINT64_MAX : T + row->now + (uint64_t)row->due;
    enum patience_step next = patience_next(&p, T + row->now, deadline);
    bool may = patience_may_yield(&p, T + row->now);

    if (next != row->next || may != row->may_yield)
        printf("\n    %s: %d, %d, not %d, %d\n", row->name, next, may, row->next, row->may_yield);
    CU_ASSERT_EQUAL(next, row->next);
    CU_ASSERT_EQUAL(may, row->may_yield);
}

static void test_window(void)
{
    static const struct row rows[] = {
        {"at the beginning", PATIENCE_ADAPTIVE, {{0}}, 0, 0, PATIENCE_SLEEP_NOW, true, 0},
        {"just worked", PATIENCE_ADAPTIVE, {{WORK, 0, 0}}, 1, 0, PATIENCE_YIELD, true, 0},
        {"still", PATIENCE_ADAPTIVE, {{WORK, 0, 0}}, 1, WINDOW - 1, PATIENCE_YIELD, true, 0},
        {"over", PATIENCE_ADAPTIVE, {{WORK, 0, 0}}, 1, WINDOW, PATIENCE_SLEEP_NOW, true, 0},
        {"again",
         PATIENCE_ADAPTIVE,
         {{WORK, 0, 0}, {WORK, WINDOW, 0}},
         2,
         2 * WINDOW - 1,
         PATIENCE_YIELD,
         true,
         0},
        {"dedicated", PATIENCE_DEDICATED, {{WORK, 0, 0}}, 1, 0, PATIENCE_POLL, false, 0},
        {"dedicated, long ago", PATIENCE_DEDICATED, {{0}}, 0, 0, PATIENCE_POLL, false, 0},
        {"sleep", PATIENCE_SLEEP, {{WORK, 0, 0}}, 1, 0, PATIENCE_SLEEP_NOW, false, 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check(&rows[i]);
}

/* There is no sleep before work that is due sooner than a sleeper would wake. */
static void test_deadlines(void)
{
    enum { wake = PATIENCE_WAKE_NS };
    static const struct row rows[] = {
        {"in the window", PATIENCE_ADAPTIVE, {{WORK, 0, 0}}, 1, 0, PATIENCE_YIELD, true, 1},
        {"soon", PATIENCE_ADAPTIVE, {{0}}, 0, 0, PATIENCE_HASTEN, true, wake - 1},
        {"not soon", PATIENCE_ADAPTIVE, {{0}}, 0, 0, PATIENCE_SLEEP_NOW, true, wake},
        {"overdue", PATIENCE_ADAPTIVE, {{0}}, 0, MS, PATIENCE_HASTEN, true, -1},
        {"sleep", PATIENCE_SLEEP, {{WORK, 0, 0}}, 1, 0, PATIENCE_HASTEN, false, wake - 1},
        {"dedicated", PATIENCE_DEDICATED, {{0}}, 0, 0, PATIENCE_POLL, false, wake - 1},
        {"where somebody computes",
         PATIENCE_ADAPTIVE,
         {{YIELD, 0, 4 * MS}, {WORK, 4 * MS, 0}},
         2,
         4 * MS,
         PATIENCE_HASTEN,
         false,
         wake - 1},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check(&rows[i]);
}

static void test_long_yields(void)
{
    static const struct row rows[] = {
        {"a yield as long as may be",
         PATIENCE_ADAPTIVE,
         {{YIELD, 0, LONG}, {WORK, LONG, 0}},
         2,
         LONG,
         PATIENCE_YIELD,
         true,
         0},
        {"longer",
         PATIENCE_ADAPTIVE,
         {{YIELD, 0, LONG + 1}, {WORK, LONG + 1, 0}},
         2,
         LONG + 1,
         PATIENCE_SLEEP_NOW,
         false,
         0},
        {"until a millisecond later",
         PATIENCE_ADAPTIVE,
         {{YIELD, 0, LONG + 1}, {WORK, 1 * MS, 0}},
         2,
         LONG + MS,
         PATIENCE_SLEEP_NOW,
         false,
         0},
        {"then it is tried again",
         PATIENCE_ADAPTIVE,
         {{YIELD, 0, LONG + 1}, {WORK, LONG + MS, 0}},
         2,
         LONG + 1 + MS,
         PATIENCE_YIELD,
         true,
         0},
        {"long again: four times as long",
         PATIENCE_ADAPTIVE,
         {{YIELD, 0, 4 * MS}, {YIELD, 5 * MS, 9 * MS}, {WORK, 13 * MS - 1, 0}},
         3,
         13 * MS - 1,
         PATIENCE_SLEEP_NOW,
         false,
         0},
        {"and no more",
         PATIENCE_ADAPTIVE,
         {{YIELD, 0, 4 * MS}, {YIELD, 5 * MS, 9 * MS}, {WORK, 13 * MS - 1, 0}},
         3,
         13 * MS,
         PATIENCE_YIELD,
         true,
         0},
        {"calm, but not for long: not forgotten",
         PATIENCE_ADAPTIVE,
         {{YIELD, 0, 4 * MS}, {YIELD, 5 * MS, 6 * MS - 1}, {YIELD, 7 * MS, 11 * MS}},
         3,
         15 * MS - 1,
         PATIENCE_SLEEP_NOW,
         false,
         0},
        {"short yields between sleeps: not forgotten",
         PATIENCE_ADAPTIVE,
         {{YIELD, 0, 4 * MS}, {YIELD, 6 * MS - 1, 6 * MS}, {YIELD, 7 * MS, 11 * MS}},
         3,
         15 * MS - 1,
         PATIENCE_SLEEP_NOW,
         false,
         0},
        {"a core lost for as long as may be",
         PATIENCE_ADAPTIVE,
         {{LOSS, 0, LONG}, {WORK, LONG, 0}},
         2,
         LONG,
         PATIENCE_YIELD,
         true,
         0},
        {"a core lost for longer",
         PATIENCE_ADAPTIVE,
         {{LOSS, 0, LONG + 1}, {WORK, LONG + 1, 0}},
         2,
         LONG + MS,
         PATIENCE_SLEEP_NOW,
         false,
         0},
        {"a loss after a long yield: four times as long",
         PATIENCE_ADAPTIVE,
         {{YIELD, 0, 4 * MS}, {LOSS, 5 * MS, 9 * MS}, {WORK, 13 * MS - 1, 0}},
         3,
         13 * MS - 1,
         PATIENCE_SLEEP_NOW,
         false,
         0},
        {"a loss while it sleeps at once anyway",
         PATIENCE_ADAPTIVE,
         {{YIELD, 0, 4 * MS}, {LOSS, 4 * MS, 5 * MS - 1}, {WORK, 5 * MS, 0}},
         3,
         5 * MS,
         PATIENCE_YIELD,
         true,
         0},
        {"the mode goes before",
         PATIENCE_DEDICATED,
         {{YIELD, 0, 4 * MS}},
         1,
         4 * MS,
         PATIENCE_POLL,
         false,
         0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check(&rows[i]);
}

/* A thread has lost its core `losses` times in a row. Then it polls for `polls` ns, with short
 * yields 10 us apart. Returns how long the next loss keeps it from yielding, in ns. */
static uint64_t block_after(unsigned losses, uint64_t polls)
{
    struct patience p;
    uint64_t now = T;

    patience_init(&p, PATIENCE_ADAPTIVE, LONG);
    for (unsigned i = 0; i < losses; i++) {
        patience_yielded(&p, now, now + 4 * MS);
        now = p.blocked_until;
    }
    patience_yielded(&p, now, now);
    for (uint64_t end = now + polls; now < end; now += 10 * US)
        patience_yielded(&p, now + 9 * US, now + 10 * US);
    patience_lost(&p, 4 * MS, now);
    return p.block_ns;
}

/* Each time that the thread has polled for two slices and kept its core, the next block is a
 * quarter as long. */
static void test_calm(void)
{
    static const uint64_t calm = PATIENCE_CALM_NS;

    CU_ASSERT_EQUAL(block_after(1, calm - 100 * US), 4 * PATIENCE_BLOCK_NS);
    CU_ASSERT_EQUAL(block_after(1, calm + 100 * US), PATIENCE_BLOCK_NS);
    CU_ASSERT_EQUAL(block_after(3, calm - 100 * US), 64 * PATIENCE_BLOCK_NS);
    CU_ASSERT_EQUAL(block_after(3, calm + 100 * US), 16 * PATIENCE_BLOCK_NS);
    CU_ASSERT_EQUAL(block_after(3, 2 * calm + 200 * US), 4 * PATIENCE_BLOCK_NS);
    CU_ASSERT_EQUAL(block_after(3, 3 * calm + 300 * US), PATIENCE_BLOCK_NS);
    CU_ASSERT_EQUAL(block_after(9, calm + 100 * US), PATIENCE_BLOCK_MOST_NS);
    CU_ASSERT_EQUAL(block_after(9, 5 * calm + 500 * US), 4 * PATIENCE_BLOCK_NS);
}

/* After a yield without work the thread looks for as long as the yield took, up to a bound. */
static void test_looks(void)
{
    static const struct {
        uint64_t took, looks;
    } rows[] = {
        {1, 1},
        {2 * US, 2 * US},
        {PATIENCE_LOOK_NS, PATIENCE_LOOK_NS},
        {PATIENCE_LOOK_NS + 1, PATIENCE_LOOK_NS},
        {4 * MS, PATIENCE_LOOK_NS},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct patience p;

        patience_init(&p, PATIENCE_ADAPTIVE, LONG);
        CU_ASSERT_FALSE(patience_looks(&p, T));
        patience_yielded(&p, T - rows[i].took, T);
        CU_ASSERT(patience_looks(&p, T));
        CU_ASSERT(patience_looks(&p, T + rows[i].looks - 1));
        CU_ASSERT_FALSE(patience_looks(&p, T + rows[i].looks));
        patience_worked(&p, T);
        CU_ASSERT_FALSE(patience_looks(&p, T));
    }
}

/* Another process computes without end: the thread yields more and more seldom, but never stops to
 * try. */
static void test_seldom(void)
{
    struct patience p;
    uint64_t now = T, asked = 0, last = 0;

    patience_init(&p, PATIENCE_ADAPTIVE, LONG);
    for (; now < T + 10000 * MS; now += MS) {
        patience_worked(&p, now);
        if (patience_next(&p, now, UINT64_MAX) == PATIENCE_YIELD) {
            last = now;
            asked++;
            patience_yielded(&p, now, now + 4 * MS);
            now += 4 * MS;
        }
    }
    CU_ASSERT(asked >= 5 + 9 && asked <= 6 + 10); /* after 1, 4 .. 256 ms, then every 1024 ms */
    CU_ASSERT(now - last <= PATIENCE_BLOCK_MOST_NS + 10 * MS);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"the window", test_window},
        {"deadlines", test_deadlines},
        {"long yields", test_long_yields},
        {"calm", test_calm},
        {"looks", test_looks},
        {"seldom, but for ever", test_seldom},
        CU_TEST_INFO_NULL,
    };

    return suite_run("patience", tests);
}
