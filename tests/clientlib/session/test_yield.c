/*
 * Which waits yield and which sleep. Where the scheduler has daemon and client in different groups,
 * a yield does not let the daemon run; only a sleep gives it the processor. Also that a sleeper has
 * the right policy, that no wait sleeps although it has itself taken the awaited event from the
 * ring, and no flush after the last end. A program that polls yields, too (pwc_yield).
 *
 * The test replaces (--wrap) the calls that ask for the processor, yield, ask how often the thread
 * was switched out, ask for and change the policy, look for a peer's end, arm the bells, and sleep.
 * Thread: the test's.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/calls/wait.h"
#include "pwc/counter.h"
#include "pwc/signal.h"
#include "tests/clientlib/session/fake_session.h"
#include "tests/suite.h"

enum {
    RING = 16384,
    HERE = 3,
    LONE_NS = 3000, /* a yield to nobody, on a slow machine */
    SHARED_NS = 20000,
    SLICE_NS = 4000000,
    SLICE_EVERY = 128, /* every second yield that the kernel is asked about */
    TRIES = 1000,
    PEER = 4,
    OTHER = 5,
    EVENT = 77,
    WITHIN_MS = 200,
};

enum ran { NOBODY, ANOTHER, DAEMON }; /* during a yield */

static struct {
    struct fake_session daemon;
    struct mapping mapping;
    struct pwc_client client;
    struct pwc_ctx ctx;
    enum ran runs;
    int64_t longer_ns;   /* added to the next yield: a thread that computes has a slice */
    long switches;       /* how often another thread has run in a yield */
    unsigned questions;  /* about that */
    uint64_t comes_from; /* its event arrives while a wait looks for a peer's end; 0: none */
    bool ends_before;    /* the daemon ends all operations just before a bell is armed */
    bool always_pending; /* whenever a bell is armed, something is there already */
    int dies; /* not 0: the daemon's end of the wake socket, closed during the next sleep */
    uint32_t spacious;   /* shown by the last sleeper */
    int policy;          /* of the thread */
    int policy_asleep;   /* at the first sleep */
    int policy_then;     /* not 0: another thread gives the sleeper this policy */
    bool policy_refused; /* as by seccomp(2) */
    int policy_calls;    /* to change it */
    int yields, sleeps;
} world;

int __wrap_sched_getcpu(void);
int __wrap_sched_getcpu(void)
{
    return HERE;
}

int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
    int64_t end = clock_now() + world.longer_ns + (world.runs == NOBODY ? LONE_NS : SHARED_NS);

    world.longer_ns = 0;
    world.yields++;
    world.switches += world.runs != NOBODY;
    while (world.runs == DAEMON && fake_session_read(&world.daemon))
        ;
    while (clock_now() < end)
        ;
    if (world.always_pending) /* as after an event, so that the wait goes on with yields */
        patience_worked(&world.ctx.patience, (uint64_t)clock_now());
    return 0;
}

int __wrap_sched_getscheduler(pid_t pid);
int __wrap_sched_getscheduler(pid_t pid)
{
    CU_ASSERT_EQUAL(pid, 0);
    return world.policy;
}

int __wrap_sched_setscheduler(pid_t pid, int policy, const struct sched_param *parameters);
int __wrap_sched_setscheduler(pid_t pid, int policy, const struct sched_param *parameters)
{
    CU_ASSERT_EQUAL(pid, 0);
    CU_ASSERT_EQUAL(parameters->sched_priority, 0);
    world.policy_calls++;
    if (world.policy_refused) {
        errno = EPERM;
        return -1;
    }
    world.policy = policy;
    return 0;
}

int __wrap_getrusage(int which, struct rusage *usage);
int __wrap_getrusage(int which, struct rusage *usage)
{
    CU_ASSERT_EQUAL(which, RUSAGE_THREAD);
    *usage = (struct rusage){.ru_nvcsw = world.switches};
    world.questions++;
    return 0;
}

bool __real_channel_peer_is_over(struct channel *ch, uint64_t peer);
bool __wrap_channel_peer_is_over(struct channel *ch, uint64_t peer);
bool __wrap_channel_peer_is_over(struct channel *ch, uint64_t peer)
{
    uint64_t from = world.comes_from;

    world.comes_from = 0;
    if (from != 0)
        CU_ASSERT_EQUAL(
            fake_session_post(&world.daemon, EVENT_REMOTE, SUBMIT_PUT, from, 0, 8, EVENT, NULL, 0),
            0);
    return __real_channel_peer_is_over(ch, peer);
}

int __real_channel_arm_drained(struct channel *ch, uint32_t mode, unsigned kinds, unsigned drained);
int __wrap_channel_arm_drained(struct channel *ch, uint32_t mode, unsigned kinds, unsigned drained);
int __wrap_channel_arm_drained(struct channel *ch, uint32_t mode, unsigned kinds, unsigned drained)
{
    const struct submit_record *record;

    while (world.ends_before && (record = fake_session_read(&world.daemon)))
        fake_session_end_silent(&world.daemon, record);
    if (world.always_pending)
        return 1;
    return __real_channel_arm_drained(ch, mode, kinds, drained);
}

/* The daemon dies, and the next look at it is due, at the end of a sleep of full length. */
static void die_asleep(int64_t timeout_ns)
{
    int64_t end = clock_now() + timeout_ns;

    close(world.dies);
    world.dies = 0;
    while (clock_now() < end)
        ;
    world.ctx.health_at = 0;
}

/* Does not sleep, because nobody would wake the test. */
int __wrap_doorbell_sleep(struct doorbell_word *word, int64_t timeout_ns);
int __wrap_doorbell_sleep(struct doorbell_word *word, int64_t timeout_ns)
{
    if (world.sleeps++ == 0)
        world.policy_asleep = world.policy;
    if (world.policy_then != 0)
        world.policy = world.policy_then;
    world.spacious = atomic_load(&world.daemon.shared->waits.spacious);
    if (world.dies != 0)
        die_asleep(timeout_ns);
    return -ETIMEDOUT;
}

static void world_open(void)
{
    static const struct session_sizes rings = {RING, RING, RING, RING, RING};

    memset(&world, 0, sizeof(world));
    CU_ASSERT_EQUAL_FATAL(fake_session_open(&world.daemon, &rings), 0);
    CU_ASSERT_EQUAL_FATAL(
        mapping_adopt(&world.mapping, dup(world.daemon.mapping.fd), world.daemon.mapping.size), 0);
    CU_ASSERT_EQUAL_FATAL(fork_guard_open(&world.client.guard), 0);
    world.ctx.client = &world.client;
    world.ctx.wake_fd = world.ctx.doorbell_fd = world.ctx.descriptor = -1;
    CU_ASSERT_EQUAL_FATAL(channel_init(&world.ctx.channel, world.mapping.base, world.mapping.size),
                          0);
}

static void world_close(void)
{
    channel_destroy(&world.ctx.channel);
    mapping_destroy(&world.mapping);
    fake_session_close(&world.daemon);
    fork_guard_close(&world.client.guard);
}

static void submit(void)
{
    const uint64_t payload = 5;
    struct submit_record record = {
        .kind = SUBMIT_PUT, .flags = SUBMIT_INLINE, .length = sizeof(payload)};

    CU_ASSERT(channel_submit(&world.ctx.channel, &record, NULL, NULL, &payload) >= 0);
}

/* Places the daemon: on this processor or elsewhere, in the client's scheduler group or apart. */
static void daemon_runs(uint32_t processor, bool apart)
{
    atomic_store(&world.daemon.shared->processor, processor);
    atomic_store(&world.daemon.shared->apart, apart);
}

/* One pause of a wait. Returns whether the wait yields in it, however long earlier yields took. */
static bool yields(enum ran runs)
{
    int64_t now = clock_now();

    world.runs = runs;
    patience_init(&world.ctx.patience, PATIENCE_ADAPTIVE, PATIENCE_SLICE_NS);
    patience_worked(&world.ctx.patience, (uint64_t)now);
    return wait_yield(&world.ctx, now);
}

/* Whether one of many waits sleeps while `runs` runs in yields. Many, because the system may make
 * even a yield to nobody long at times. */
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
        uint32_t processor; /* the daemon's processor, plus 1 */
        bool submits, apart, neighbour;
        enum ran runs;
        bool sleeps;
    } rows[] = {
        {"the daemon has work and does not run", HERE + 1, true, false, false, NOBODY, true},
        {"it has taken the work in the yield", HERE + 1, true, false, false, DAEMON, false},
        {"another has run, so its turn comes", HERE + 1, true, false, false, ANOTHER, false},
        {"it has no work", HERE + 1, false, false, false, NOBODY, false},
        {"it has no work, and is apart", HERE + 1, false, true, false, NOBODY, true},
        {"it is apart, but has run", HERE + 1, false, true, false, DAEMON, false},
        {"it is apart, and a neighbour may answer", HERE + 1, false, true, true, NOBODY, false},
        {"a neighbour may answer, and it has work", HERE + 1, true, true, true, NOBODY, true},
        {"it runs elsewhere", HERE + 2, true, true, false, NOBODY, false},
        {"it does not say where it runs", 0, true, true, false, NOBODY, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool sleeps;

        world_open();
        daemon_runs(rows[i].processor, rows[i].apart);
        world.ctx.channel.neighbours.count = rows[i].neighbour;
        if (rows[i].submits)
            submit();
        CU_ASSERT(yields(rows[i].runs)); /* the first pause always yields */
        sleeps = ever_sleeps(rows[i].runs);
        if (sleeps != rows[i].sleeps)
            printf("\n    %s: %s\n", rows[i].name, sleeps ? "sleeps" : "yields");
        CU_ASSERT_EQUAL(sleeps, rows[i].sleeps);
        world.ctx.channel.neighbours.count = 0;
        world_close();
    }
}

/* A yield on another processor says nothing about the daemon, which may move here. */
static void test_moves(void)
{
    world_open();
    daemon_runs(HERE + 2, true);
    CU_ASSERT(yields(NOBODY));
    daemon_runs(HERE + 1, true);
    CU_ASSERT(yields(NOBODY));
    CU_ASSERT(ever_sleeps(NOBODY));
    world_close();
}

/* The time of a yield shows whether another thread has run, whichever of both kinds was seen first.
 * The kernel is asked seldom. This also holds where a thread that computes has a whole slice, now
 * and then in a yield that the kernel is asked about. */
static void test_times(void)
{
    static const enum ran orders[][2] = {{NOBODY, ANOTHER}, {ANOTHER, NOBODY}};

    for (int row = 0; row < 4; row++) {
        const enum ran *order = orders[row % 2];
        struct yields y = {0};
        unsigned wrong = 0;

        world.questions = 0;
        for (unsigned i = 0; i < TRIES; i++) {
            bool slice = row >= 2 && i % SLICE_EVERY == SLICE_EVERY / 2;

            world.runs = slice ? ANOTHER : order[i / 10 % 2];
            world.longer_ns = slice ? SLICE_NS : 0;
            wrong += yields_in_vain(&y) != (world.runs == NOBODY);
        }
        CU_ASSERT(wrong < TRIES / 20); /* the test loses the processor at times */
        CU_ASSERT(world.questions < TRIES / 10);
    }
}

/* After a sleep, which gives the daemon the processor, waits try to yield again. */
static void test_again(void)
{
    world_open();
    daemon_runs(HERE + 1, false);
    submit();
    CU_ASSERT(ever_sleeps(NOBODY));
    CU_ASSERT(yields(NOBODY));
    CU_ASSERT(ever_sleeps(NOBODY));
    world_close();
}

/* Lets a wait sleep. Returns the word by which it has shown whether its rings have much room. */
static uint32_t room_shown(void)
{
    struct pwc_event event;

    patience_init(&world.ctx.patience, PATIENCE_SLEEP, PATIENCE_SLICE_NS);
    CU_ASSERT_EQUAL(pwc_wait(&world.ctx, PWC_ANY, 0, &event, 1), 0);
    return world.spacious;
}

/* A sleeper beside a daemon that is apart wakes up without taking the processor from it, and keeps
 * a policy that somebody has chosen, before or during the sleep. */
static void test_policy(void)
{
    static const struct {
        const char *name;
        uint32_t processor;
        bool apart;
        int before, then, asleep, after;
    } rows[] = {
        {"apart", HERE + 1, true, SCHED_OTHER, 0, SCHED_BATCH, SCHED_OTHER},
        {"in one group", HERE + 1, false, SCHED_OTHER, 0, SCHED_OTHER, SCHED_OTHER},
        {"elsewhere", HERE + 2, true, SCHED_OTHER, 0, SCHED_OTHER, SCHED_OTHER},
        {"chosen before", HERE + 1, true, SCHED_BATCH, 0, SCHED_BATCH, SCHED_BATCH},
        {"real time", HERE + 1, true, SCHED_FIFO, 0, SCHED_FIFO, SCHED_FIFO},
        {"chosen meanwhile", HERE + 1, true, SCHED_OTHER, SCHED_IDLE, SCHED_BATCH, SCHED_IDLE},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        world_open();
        daemon_runs(rows[i].processor, rows[i].apart);
        world.policy = rows[i].before;
        world.policy_then = rows[i].then;
        (void)room_shown();
        CU_ASSERT(world.sleeps > 0);
        if (world.policy_asleep != rows[i].asleep || world.policy != rows[i].after)
            printf("\n    %s: %d, then %d\n", rows[i].name, world.policy_asleep, world.policy);
        CU_ASSERT_EQUAL(world.policy_asleep, rows[i].asleep);
        CU_ASSERT_EQUAL(world.policy, rows[i].after);
        world_close();
    }
}

/* Where the system refuses the policy, the context asks once, and sleeps. */
static void test_policy_refused(void)
{
    world_open();
    daemon_runs(HERE + 1, true);
    world.policy_refused = true;
    for (int i = 0; i < 3; i++)
        (void)room_shown();
    CU_ASSERT(world.sleeps >= 3);
    CU_ASSERT_EQUAL(world.policy_asleep, SCHED_OTHER);
    CU_ASSERT_EQUAL(world.policy_calls, 1);
    world_close();
}

/* A sleep on descriptors, as while a bind is under way or in an exchange, has the policy, too. */
static void test_policy_elsewhere(void)
{
    world_open();
    daemon_runs(HERE + 1, true);
    wait_asleep(&world.ctx, clock_now());
    CU_ASSERT_EQUAL(world.policy, SCHED_BATCH);
    (void)wait_awake(&world.ctx);
    CU_ASSERT_EQUAL(world.policy, SCHED_OTHER);
    world_close();
}

/* An event arrives between a wait's probe and its look for the peer's end. That look takes the
 * event from the ring, so arming the bell does not see it: the wait must end all the same. */
static void test_event_before_the_sleep(void)
{
    static const struct {
        uint64_t from;
        int rc, sleeps;
    } rows[] = {
        {PEER, 1, 0},
        {OTHER, 0, 1}, /* another peer's event is kept, and the wait sleeps until its deadline */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pwc_event event = {.id = 0};

        world_open();
        patience_init(&world.ctx.patience, PATIENCE_SLEEP, PATIENCE_SLICE_NS);
        world.comes_from = rows[i].from;
        CU_ASSERT_EQUAL(pwc_wait(&world.ctx, PEER, PWC_REMOTE, &event, 1), rows[i].rc);
        CU_ASSERT_EQUAL(world.sleeps > 0, rows[i].sleeps);
        if (rows[i].rc == 0)
            CU_ASSERT_EQUAL(pwc_probe(&world.ctx, OTHER, PWC_REMOTE, &event), 1);
        CU_ASSERT_EQUAL(event.id, EVENT);
        world_close();
    }
}

/* A wait that does not let time pass reports a peer that has ended, too, after its last event. */
static void test_wait_without_time(void)
{
    struct pwc_event event = {0};

    world_open();
    CU_ASSERT_EQUAL(
        fake_session_post(&world.daemon, EVENT_REMOTE, SUBMIT_PUT, PEER, 0, 8, EVENT, NULL, 0), 0);
    CU_ASSERT_EQUAL(fake_session_post(&world.daemon, EVENT_PEER, 0, PEER, 0, 0, 0, NULL, 0), 0);
    CU_ASSERT_EQUAL(pwc_wait(&world.ctx, OTHER, 0, &event, 0), 0);
    CU_ASSERT_EQUAL(pwc_wait(&world.ctx, PEER, 0, &event, 0), 1);
    CU_ASSERT_EQUAL(event.id, EVENT);
    CU_ASSERT_EQUAL(pwc_wait(&world.ctx, PEER, 0, &event, 0), -EHOSTDOWN);
    CU_ASSERT_EQUAL(pwc_wait(&world.ctx, PWC_ANY, 0, &event, 0), 0);
    CU_ASSERT_EQUAL(pwc_wait(&world.ctx, OTHER, 0, &event, 0), 0);
    CU_ASSERT_EQUAL(world.sleeps, 0);
    world_close();
}

/* The last end comes between a flush's look and its arm: the bell has rung for it already. */
static void test_end_before_the_arm(void)
{
    for (int ends = 0; ends <= 1; ends++) {
        world_open();
        patience_init(&world.ctx.patience, PATIENCE_SLEEP, PATIENCE_SLICE_NS);
        world.ends_before = ends;
        submit();
        CU_ASSERT_EQUAL(pwc_flush(&world.ctx, PWC_ANY, 1), ends ? 0 : -ETIMEDOUT);
        CU_ASSERT_EQUAL(world.sleeps > 0, !ends);
        CU_ASSERT_EQUAL(atomic_load(&world.daemon.shared->event_bell.armed), DOORBELL_AWAKE);
        world_close();
    }
}

/* A sleeper shows much room while an eighth of each ring is in use: then the daemon does not wake
 * it when it has only taken submissions. */
static void test_shows_room(void)
{
    struct ring_producer *replies = &world.ctx.channel.reply_submit.ring;
    int64_t used = 0;

    world_open();
    CU_ASSERT_EQUAL(room_shown(), 1);
    replies->tail += RING / 4;
    CU_ASSERT_EQUAL(room_shown(), 0);
    replies->tail -= RING / 4;
    for (; used < RING / 4; used = ring_used(&world.ctx.channel.submit.ring)) {
        CU_ASSERT_EQUAL(room_shown(), used <= RING / 8);
        submit();
    }
    world_close();
}

/* A sleeper that may wait for room never shows much: one that owes a wake-up, and a descriptor,
 * after whose arm the program may submit until there is no room. */
static void test_waits_for_room(void)
{
    const struct session_shared *shared;
    struct pwc_event event;
    int ends[2];

    world_open();
    shared = world.daemon.shared;
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    world.ctx.wake_fd = ends[0];
    for (int owes = 0; owes < 2; owes++) {
        world.ctx.channel.neighbours.wakes_due = owes;
        CU_ASSERT_EQUAL(wait_arm(&world.ctx, DOORBELL_FUTEX, 0), 0);
        CU_ASSERT_EQUAL(atomic_load(&shared->waits.spacious), !owes);
        wait_disarm(&world.ctx);
    }
    world.ctx.channel.neighbours.wakes_due = false;
    CU_ASSERT_EQUAL(room_shown(), 1);
    world.ctx.descriptor = 0;
    CU_ASSERT_EQUAL(pwc_probe(&world.ctx, PWC_ANY, 0, &event), 0);
    CU_ASSERT_EQUAL(atomic_load(&shared->event_bell.armed), DOORBELL_FD);
    CU_ASSERT_EQUAL(atomic_load(&shared->waits.spacious), 0);
    world.ctx.descriptor = world.ctx.wake_fd = -1;
    close(ends[0]);
    close(ends[1]);
    world_close();
}

/* pwc_yield after so many looks in vain. Returns whether it has given the processor away. */
static bool gives_way(unsigned looks)
{
    int before = world.yields + world.sleeps;

    patience_init(&world.ctx.patience, PATIENCE_ADAPTIVE, PATIENCE_SLICE_NS);
    CU_ASSERT_EQUAL(pwc_yield(&world.ctx, 0, looks), 0);
    return world.yields + world.sleeps > before;
}

static bool polling_sleeps(void)
{
    world.sleeps = 0;
    for (unsigned i = 1; i <= TRIES && world.sleeps == 0; i++)
        (void)gives_way(i);
    return world.sleeps > 0;
}

/* A program that polls gives the processor to its daemon, but not at its first look, nor as often
 * where neighbours answer. It sleeps only where yields do not reach a daemon that has work, and
 * never once it has a descriptor, whose arm a sleep would end. */
static void test_polling(void)
{
    static const struct {
        uint32_t processor;
        bool apart, submits, descriptor;
        enum ran runs;
        bool sleeps;
    } rows[] = {
        {HERE + 1, false, true, false, NOBODY, true}, {HERE + 1, true, true, true, NOBODY, false},
        {HERE + 1, true, true, false, DAEMON, false}, {HERE + 1, true, false, false, NOBODY, false},
        {HERE + 2, true, true, false, NOBODY, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        world_open();
        world.ctx.health_at = INT64_MAX;
        world.ctx.descriptor = rows[i].descriptor ? 0 : -1;
        daemon_runs(rows[i].processor, rows[i].apart);
        world.runs = rows[i].runs;
        if (rows[i].submits)
            submit();
        CU_ASSERT_FALSE(gives_way(1)); /* there may be more to submit */
        CU_ASSERT(gives_way(2));
        CU_ASSERT(gives_way(3)); /* also after a yield in vain */
        CU_ASSERT(gives_way(4));
        CU_ASSERT_EQUAL(polling_sleeps(), rows[i].sleeps);
        CU_ASSERT_EQUAL(world.spacious, 0); /* the daemon wakes it when it has taken the work */
        world.ctx.descriptor = -1;
        world_close();
    }
    world_open();
    world.ctx.health_at = INT64_MAX;
    world.ctx.channel.neighbours.awaited = 1;
    CU_ASSERT_FALSE(gives_way(99));
    CU_ASSERT(gives_way(100));
    world.ctx.channel.neighbours.awaited = 0;
    CU_ASSERT_EQUAL(pwc_yield(&world.ctx, ~0U, 1), -EINVAL);
    world_close();
}

/* A program that polls learns that its daemon is gone, by a look that is not made each time. */
static void test_polling_daemon_gone(void)
{
    int64_t begun = clock_now();
    struct pwc_event event;
    int ends[2];

    world_open();
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    world.ctx.wake_fd = ends[0];
    CU_ASSERT(gives_way(2));
    CU_ASSERT(world.ctx.health_at > begun);
    CU_ASSERT_EQUAL(pwc_probe(&world.ctx, PWC_ANY, 0, &event), 0);
    close(ends[1]);
    world.ctx.health_at = INT64_MAX;
    CU_ASSERT(gives_way(3));
    CU_ASSERT_EQUAL(pwc_probe(&world.ctx, PWC_ANY, 0, &event), 0);
    world.ctx.health_at = 0;
    CU_ASSERT_EQUAL(pwc_yield(&world.ctx, 0, 4), 0);
    CU_ASSERT_EQUAL(pwc_probe(&world.ctx, PWC_ANY, 0, &event), -ESHUTDOWN);
    close(ends[0]);
    world.ctx.wake_fd = -1;
    world_close();
}

/* Guards that a wait that never gets to sleep, since it yields or always finds something pending,
 * notices that its daemon is gone. */
static void test_sleepless_daemon_gone(void)
{
    static const uint64_t word;

    for (int yields = 0; yields <= 1; yields++)
        for (int call = 0; call < 3; call++) {
            struct pwc_event event;
            int ends[2], rc;

            world_open();
            CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
            close(ends[1]);
            world.ctx.wake_fd = ends[0];
            world.always_pending = true;
            patience_init(&world.ctx.patience, yields ? PATIENCE_ADAPTIVE : PATIENCE_SLEEP,
                          PATIENCE_SLICE_NS);
            rc = call == 0   ? pwc_wait(&world.ctx, PWC_ANY, 0, &event, WITHIN_MS)
                 : call == 1 ? pwc_wait_word(&world.ctx, &word, PWC_NE, 0, WITHIN_MS)
                             : pwc_counter_wait(&world.ctx, PWC_COUNT_ENDED, 1, WITHIN_MS);
            CU_ASSERT_EQUAL(rc, -ESHUTDOWN);
            CU_ASSERT_EQUAL(world.sleeps, 0);
            close(ends[0]);
            world.ctx.wake_fd = -1;
            world_close();
        }
}

/* Guards that a wait notices a death during its last sleep. */
static void test_daemon_dies_asleep(void)
{
    struct pwc_event event;
    int ends[2];

    world_open();
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    world.ctx.wake_fd = ends[0];
    world.dies = ends[1];
    patience_init(&world.ctx.patience, PATIENCE_SLEEP, PATIENCE_SLICE_NS);
    CU_ASSERT_EQUAL(pwc_wait(&world.ctx, PWC_ANY, 0, &event, WITHIN_MS), -ESHUTDOWN);
    CU_ASSERT_EQUAL(world.sleeps, 1);
    close(ends[0]);
    world.ctx.wake_fd = -1;
    world_close();
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"which waits yield", test_yields},
        {"a daemon that moves", test_moves},
        {"the time of a yield", test_times},
        {"after a sleep", test_again},
        {"the policy of a sleeper", test_policy},
        {"a policy that is refused", test_policy_refused},
        {"the policy of other sleeps", test_policy_elsewhere},
        {"an event before the sleep", test_event_before_the_sleep},
        {"a wait of no time", test_wait_without_time},
        {"an end before the arm", test_end_before_the_arm},
        {"a sleeper shows whether it has room", test_shows_room},
        {"sleepers that may wait for room", test_waits_for_room},
        {"a program that polls", test_polling},
        {"a program that polls, and its daemon is gone", test_polling_daemon_gone},
        {"a wait that never sleeps, and its daemon is gone", test_sleepless_daemon_gone},
        {"a daemon that dies during the last sleep", test_daemon_dies_asleep},
        CU_TEST_INFO_NULL,
    };

    return suite_run("yield", tests);
}
