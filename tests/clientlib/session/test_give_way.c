/*
 * When a program that submits gives its processor to the daemon: after a call that others wait for,
 * and after the last of a burst of submissions, if it has computed after such a burst before
 * (give_way.h).
 *
 * The test replaces (--wrap) the calls that ask for the processor, the time and the switches of
 * this thread, and that yield: the time is the test's. Thread: the test's.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "clientlib/calls/flush.h"
#include "clientlib/calls/operation.h"
#include "clientlib/calls/wait.h"
#include "tests/clientlib/session/fake_session.h"
#include "shm_ring/doorbell.h"
#include "tests/suite.h"

enum {
    RING = 16384,
    HERE = 3,
    CALL_NS = 100,      /* a submission, or a yield to nobody */
    COMPUTE_NS = 60000, /* between submissions */
    WAIT_NS = 100000000,
    SLICE_NS = 4000000, /* of a program that computes on this processor */
};

static struct {
    struct fake_session daemon;
    struct mapping mapping;
    struct pwc_client client;
    struct pwc_ctx ctx;
    struct pwc_remote remote;
    int64_t now;
    int64_t slice_ns; /* how long another program has the processor at a yield */
    bool elsewhere;   /* the daemon is in another scheduler group */
    unsigned yields;
} world;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    CU_ASSERT_EQUAL(clock, CLOCK_MONOTONIC);
    *now = (struct timespec){.tv_sec = world.now / 1000000000, .tv_nsec = world.now % 1000000000};
    return 0;
}

int __wrap_sched_getcpu(void);
int __wrap_sched_getcpu(void)
{
    return HERE;
}

/* In each yield another thread has run. */
int __wrap_getrusage(int which, struct rusage *usage);
int __wrap_getrusage(int which, struct rusage *usage)
{
    CU_ASSERT_EQUAL(which, RUSAGE_THREAD);
    *usage = (struct rusage){.ru_nvcsw = world.yields};
    return 0;
}

static void daemon_takes_all(void)
{
    while (fake_session_read(&world.daemon))
        ;
}

int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
    world.yields++;
    world.now += CALL_NS + world.slice_ns;
    if (!world.elsewhere)
        daemon_takes_all();
    return 0;
}

static void world_open(uint32_t processor)
{
    static const struct session_sizes rings = {RING, RING, RING, RING, RING};

    memset(&world, 0, sizeof(world));
    world.now = INT64_C(3600) * 1000000000;
    CU_ASSERT_EQUAL_FATAL(fake_session_open(&world.daemon, &rings), 0);
    CU_ASSERT_EQUAL_FATAL(
        mapping_adopt(&world.mapping, dup(world.daemon.mapping.fd), world.daemon.mapping.size), 0);
    world.ctx.client = &world.client;
    world.ctx.wake_fd = world.ctx.doorbell_fd = world.ctx.descriptor = -1;
    CU_ASSERT_EQUAL_FATAL(channel_init(&world.ctx.channel, world.mapping.base, world.mapping.size),
                          0);
    patience_init(&world.ctx.patience, PATIENCE_ADAPTIVE, PATIENCE_SLICE_NS);
    atomic_store(&world.daemon.shared->processor, processor);
}

static void world_close(void)
{
    channel_destroy(&world.ctx.channel);
    mapping_destroy(&world.mapping);
    fake_session_close(&world.daemon);
}

static void follow(int rc)
{
    CU_ASSERT(rc >= 0);
    world.now += CALL_NS;
    if (rc > 0)
        give_way_or_wake(&world.ctx, rc);
}

static void reply(void)
{
    struct submit_record record = {.kind = SUBMIT_SHORT};
    uint8_t *at;

    CU_ASSERT_EQUAL(
        channel_begin(&world.ctx.channel, &world.ctx.channel.reply_submit, &record, &at), 0);
    operation_commit(&world.ctx, &world.ctx.channel.reply_submit);
}

static void submit(void)
{
    const uint64_t payload = 5;
    struct submit_record record = {
        .kind = SUBMIT_PUT, .flags = SUBMIT_INLINE, .length = sizeof(payload)};

    follow(channel_submit(&world.ctx.channel, &record, NULL, NULL, &payload));
}

/* The first pause of a call that waits; its yield lets the daemon take all. */
static void pause_once(void)
{
    patience_worked(&world.ctx.patience, (uint64_t)world.now);
    CU_ASSERT(wait_yield(&world.ctx, world.now));
}

static void test_call(void)
{
    static const struct {
        uint32_t processor; /* the daemon's processor, plus 1 */
        bool submits, is_long;
        unsigned yields;
    } rows[] = {
        {HERE + 1, true, false, 1}, {HERE + 1, false, false, 0}, /* no work of ours */
        {HERE + 2, true, false, 0}, {0, true, false, 0},
        {HERE + 1, true, true, 0}, /* a program computes on this processor */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        world_open(rows[i].processor);
        if (rows[i].is_long)
            patience_yielded(&world.ctx.patience, (uint64_t)(world.now - SLICE_NS),
                             (uint64_t)world.now);
        if (rows[i].submits)
            submit();
        give_way(&world.ctx);
        CU_ASSERT_EQUAL(world.yields, rows[i].yields);
        world_close();
    }
}

/* After a long yield, the next call does not yield. */
static void test_long_yield(void)
{
    world_open(HERE + 1);
    world.slice_ns = SLICE_NS;
    submit();
    give_way(&world.ctx);
    CU_ASSERT_EQUAL(world.yields, 1);
    submit();
    give_way(&world.ctx);
    CU_ASSERT_EQUAL(world.yields, 1);
    world_close();
}

/* In another scheduler group the calls that others wait for stop yielding, too. */
static void test_calls_in_vain(void)
{
    world_open(HERE + 1);
    world.elsewhere = true;
    for (int i = 0; i < 6; i++) {
        submit();
        give_way(&world.ctx);
    }
    CU_ASSERT_EQUAL(world.yields, 4);
    world.now += WAIT_NS;
    give_way(&world.ctx);
    CU_ASSERT_EQUAL(world.yields, 5);
    world_close();
}

/*
 * Runs a program, and returns how many of its submissions yielded.
 *
 *     s, v     it submits one operation, three at once
 *     c        it computes
 *     p        it pauses in a call that waits
 *     d        the daemon takes all on its own
 *     D        the daemon takes all and sleeps, so that the next submission wakes it
 *     g        from now on yields do not reach the daemon, which is in another scheduler group
 *     h        from now on yields reach the daemon again
 *     l, n     from now on another program computes for a slice in each yield; no longer
 *     r        it replies
 *     f        it flushes, which pauses
 *     w        100 ms pass, in a call that waits
 */
static unsigned yields_of(const char *program)
{
    unsigned yields = 0;

    world_open(HERE + 1);
    for (; *program; program++) {
        unsigned before = world.yields;

        switch (*program) {
        case 's':
            submit();
            break;
        case 'v':
            follow(channel_publish(&world.ctx.channel, 3));
            break;
        case 'D':
            daemon_takes_all();
            doorbell_arm(&world.daemon.shared->submit_bell, DOORBELL_FD);
            break;
        case 'c':
            world.now += COMPUTE_NS;
            break;
        case 'd':
            daemon_takes_all();
            break;
        case 'g':
        case 'h':
            world.elsewhere = *program == 'g';
            break;
        case 'l':
        case 'n':
            world.slice_ns = *program == 'l' ? SLICE_NS : 0;
            break;
        case 'r':
            reply();
            break;
        case 'f':
            CU_ASSERT_EQUAL(flush_peer(&world.ctx, &world.remote, world.now), -ETIMEDOUT);
            pause_once();
            break;
        case 'w':
            daemon_takes_all();
            pause_once();
            world.now += WAIT_NS;
            give_way_resumes(&world.ctx, world.now);
            break;
        case 'p':
            pause_once();
            break;
        }
        if (!strchr("pwf", *program))
            yields += world.yields - before;
    }
    world_close();
    return yields;
}

static void test_bursts(void)
{
    static const struct {
        const char *program;
        unsigned yields;
    } rows[] = {
        {"psp sp sp", 0},     /* waits for each answer */
        {"psssp sssp", 0},    /* streams */
        {"pscp s", 1},        /* has computed: yields the next time */
        {"pscp sc sc sc", 3}, /* and each time, also where no call has to pause */
        {"psscp s", 0},       /* a burst of two */
        {"psscp ss", 1},
        {"psscp sscss", 2},
        {"pscdp s", 0}, /* the daemon needed no help: it runs elsewhere, or was woken */
        {"pcsp s", 1},  /* computed before it submitted: looks like computing after, */
        {"pscp sp sp sp sp sp sp sp s", 8},         /* waits at once after some bursts, */
        {"pscp sp sp sp sp sp sp sp sp s s", 8},    /* and is forgotten after eight in a row */
        {"pscp sp sp sp scp sp sp sp sp sp s", 10}, /* not in a row */
        {"pscp ss s", 1},                           /* a burst follows at once: forgotten, */
        {"pscp ss sp sc p s", 2},                   /* and learned again */
        {"pscscscp scscsc", 1},     /* computes after each of three: only each third yields */
        {"pscp Dsc dsc", 1},        /* the first wakes the daemon, the second finds it awake */
        {"pscp gscscsc hsc sc", 5}, /* three yields in vain may be by chance, */
        {"pscp gscsc hsc gscsc hsc sc", 7},           /* nor are two and two; */
        {"pscp gscscscsc hp scp sc", 4},              /* but not four */
        {"pscp gscscscsc hp w scp sc", 5},            /* learned again when 100 ms have passed, */
        {"pscp gscscscsc hp w scp gscscsc hscsc", 9}, /* and four are needed again */
        {"pscp glscsc hnscsc cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc sc",
         2}, /* a long yield is not one in vain */
        {"psscp rs", 0},
        {"psscp rss", 1},
        {"pscp rsc rsc", 2}, /* replies belong to no burst */
        {"pscf sc f", 1},    /* nor does the record of a flush */
        {"psscp sv s", 1},   /* three at once pass the end of the burst */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned yields = yields_of(rows[i].program);

        if (yields != rows[i].yields)
            printf("\n    %s: %u\n", rows[i].program, yields);
        CU_ASSERT_EQUAL(yields, rows[i].yields);
    }
}

static int submit_if_room(void)
{
    static const uint64_t payload = 5;
    const struct operation op = {.outbox = &world.ctx.channel.submit,
                                 .payload = &payload,
                                 .record = {.kind = SUBMIT_PUT,
                                            .flags = SUBMIT_INLINE | PWC_NO_LCE,
                                            .length = sizeof(payload)}};

    return operation_submit(&world.ctx, &op);
}

/* A program whose call is refused for lack of room probes and tries again: its first probe that
 * finds nothing yields, so that the daemon makes room. */
static void test_refused(void)
{
    static const struct {
        uint32_t processor; /* the daemon's processor, plus 1 */
        bool is_long;       /* a program computes on this processor */
        unsigned yields;
    } rows[] = {{HERE + 1, false, 1}, {HERE + 1, true, 0}, {HERE + 2, false, 0}, {0, false, 0}};
    struct pwc_event event;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned yields;

        world_open(rows[i].processor);
        CU_ASSERT_EQUAL_FATAL(fork_guard_open(&world.client.guard), 0);
        while (submit_if_room() == 0)
            ;
        CU_ASSERT_EQUAL(submit_if_room(), -EAGAIN);
        if (rows[i].is_long)
            patience_yielded(&world.ctx.patience, (uint64_t)(world.now - SLICE_NS),
                             (uint64_t)world.now);
        yields = world.yields;
        CU_ASSERT_EQUAL(pwc_probe(&world.ctx, PWC_ANY, PWC_LOCAL, &event), 0);
        CU_ASSERT_EQUAL(world.yields - yields, rows[i].yields);
        CU_ASSERT_EQUAL(pwc_probe(&world.ctx, PWC_ANY, PWC_LOCAL, &event), 0); /* only once */
        CU_ASSERT_EQUAL(world.yields - yields, rows[i].yields);
        CU_ASSERT_EQUAL(submit_if_room(), rows[i].yields == 1 ? 0 : -EAGAIN);
        CU_ASSERT_EQUAL(pwc_probe_n(&world.ctx, PWC_ANY, PWC_LOCAL, &event, 1), 0);
        CU_ASSERT_EQUAL(world.yields - yields, rows[i].yields);
        fork_guard_close(&world.client.guard);
        world_close();
    }
}

/* After a pause of a call that waits the daemon has had the processor, so no probe yields. */
static void test_refused_before_a_pause(void)
{
    struct pwc_event event;
    unsigned yields;

    world_open(HERE + 1);
    CU_ASSERT_EQUAL_FATAL(fork_guard_open(&world.client.guard), 0);
    while (submit_if_room() == 0)
        ;
    yields = world.yields;
    give_way_resumes(&world.ctx, world.now);
    CU_ASSERT_EQUAL(pwc_probe(&world.ctx, PWC_ANY, PWC_LOCAL, &event), 0);
    CU_ASSERT_EQUAL(world.yields, yields);
    fork_guard_close(&world.client.guard);
    world_close();
}

/* A record that is no operation ends no burst. */
static void test_note(void)
{
    const struct submit_record record = {.kind = SUBMIT_TEAM_WAKE};

    world_open(HERE + 1);
    CU_ASSERT_EQUAL(channel_note(&world.ctx.channel, &record), 0);
    submit();
    world.ctx.channel.burst_end = world.ctx.channel.submitted;
    CU_ASSERT_EQUAL(channel_note(&world.ctx.channel, &record), 0);
    world_close();
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"a call that others wait for", test_call},
        {"a long yield", test_long_yield},
        {"calls in vain", test_calls_in_vain},
        {"bursts", test_bursts},
        {"a note", test_note},
        {"a call that is refused", test_refused},
        {"refused before a pause", test_refused_before_a_pause},
        CU_TEST_INFO_NULL,
    };

    return suite_run("give way", tests);
}
