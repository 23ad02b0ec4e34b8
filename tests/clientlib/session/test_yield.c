/*
 * Which waits yield, and which sleep: where the scheduler keeps daemon and client in groups of
 * their own, a yield does not reach the daemon, and only a sleep gives it the processor.
 *
 * The calls to the system are the test's (--wrap): which processor this is, and what runs in a
 * yield. Thread: the test's.
 */
#include <CUnit/CUnit.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/calls/wait.h"
#include "tests/clientlib/session/fake_session.h"
#include "tests/suite.h"

enum { RING = 16384, HERE = 3, LONG_NS = 20000, TRIES = 1000 };

enum ran { NOBODY, ANOTHER, DAEMON }; /* in a yield */

static struct {
    struct fake_session daemon;
    struct mapping mapping;
    struct pwc_client client;
    struct pwc_ctx ctx;
    enum ran runs;
} world;

int __wrap_sched_getcpu(void);
int __wrap_sched_getcpu(void)
{
    return HERE;
}

int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
    int64_t end = clock_now() + (world.runs == NOBODY ? 0 : LONG_NS);

    while (world.runs == DAEMON && fake_session_read(&world.daemon))
        ;
    while (clock_now() < end)
        ;
    return 0;
}

static void world_open(void)
{
    static const struct session_sizes rings = {RING, RING, RING, RING, RING};

    memset(&world, 0, sizeof(world));
    CU_ASSERT_EQUAL_FATAL(fake_session_open(&world.daemon, &rings), 0);
    CU_ASSERT_EQUAL_FATAL(
        mapping_adopt(&world.mapping, dup(world.daemon.mapping.fd), world.daemon.mapping.size), 0);
    world.ctx.client = &world.client;
    CU_ASSERT_EQUAL_FATAL(channel_init(&world.ctx.channel, world.mapping.base, world.mapping.size),
                          0);
}

static void world_close(void)
{
    channel_destroy(&world.ctx.channel);
    mapping_destroy(&world.mapping);
    fake_session_close(&world.daemon);
}

static void submit(void)
{
    const uint64_t payload = 5;
    struct submit_record record = {
        .kind = SUBMIT_PUT, .flags = SUBMIT_INLINE, .length = sizeof(payload)};

    CU_ASSERT(channel_submit(&world.ctx.channel, &record, NULL, NULL, &payload) >= 0);
}

/* One pause of a wait: whether it yields, however long earlier yields took. */
static bool yields(enum ran runs)
{
    int64_t now = clock_now();

    world.runs = runs;
    patience_init(&world.ctx.patience, PATIENCE_ADAPTIVE, PATIENCE_SLICE_NS);
    patience_worked(&world.ctx.patience, (uint64_t)now);
    return wait_yield(&world.ctx, now);
}

/* Whether one of many waits in which `runs` runs sleeps. The system may make a yield of nobody's
 * long at times. */
static bool ever_sleeps(enum ran runs)
{
    for (int i = 0; i < TRIES; i++)
        if (!yields(runs))
            return true;
    return false;
}

static void test_yields(void)
{
    static const struct {
        const char *name;
        uint32_t processor; /* of the daemon, plus 1 */
        bool submits;
        enum ran runs;
        bool sleeps;
    } rows[] = {
        {"the daemon has work and does not run", HERE + 1, true, NOBODY, true},
        {"it has taken the work in the yield", HERE + 1, true, DAEMON, false},
        {"another has run, so the daemon's turn comes", HERE + 1, true, ANOTHER, false},
        {"it has no work of ours", HERE + 1, false, NOBODY, false},
        {"it runs elsewhere", HERE + 2, true, NOBODY, false},
        {"it does not say where it runs", 0, true, NOBODY, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool sleeps;

        world_open();
        atomic_store(&world.daemon.shared->processor, rows[i].processor);
        if (rows[i].submits)
            submit();
        CU_ASSERT(yields(rows[i].runs)); /* one yield in any case */
        sleeps = ever_sleeps(rows[i].runs);
        if (sleeps != rows[i].sleeps)
            printf("\n    %s: %s\n", rows[i].name, sleeps ? "sleeps" : "yields");
        CU_ASSERT_EQUAL(sleeps, rows[i].sleeps);
        world_close();
    }
}

/* A sleep gives the daemon the processor; from then on yields are tried again. */
static void test_again(void)
{
    world_open();
    atomic_store(&world.daemon.shared->processor, HERE + 1);
    submit();
    CU_ASSERT(ever_sleeps(NOBODY));
    CU_ASSERT(yields(NOBODY));
    CU_ASSERT(ever_sleeps(NOBODY));
    while (fake_session_read(&world.daemon))
        ;
    CU_ASSERT(yields(NOBODY));
    submit();
    CU_ASSERT(yields(NOBODY));
    world_close();
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"which waits yield", test_yields},
        {"after a sleep", test_again},
        CU_TEST_INFO_NULL,
    };

    return suite_run("yield", tests);
}
