/*
 * The progress thread and a client, as two threads of one process on one mapping, so that
 * ThreadSanitizer sees both. The fabric is the loop, so the client's peer is the client itself. A
 * second world delays the fabric's events, with a progress thread that sleeps whenever it can.
 *
 * Threads: main is control and client; the progress thread is the one under test.
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include "clientlib/channel/channel.h"
#include "shm_ring/clock.h"
#include "daemon/fabric/delay.h"
#include "shm_ring/doorbell.h"
#include "daemon/fabric/loop.h"
#include "daemon/control/threads/progress.h"

#define RING 65536u
static const struct session_sizes rings = {RING, RING, RING, RING, RING};
#define SEGMENT    (1u << 20)
#define LARGE      65536u
#define SMALL_PUTS 20000u
#define LARGE_PUTS 200u
#define DELAY_NS   300000u
#define STOP_MS    60000u
#define CROWD      200u /* clients; so many ends are reported in several batches */

/* Runs a function on the progress thread and waits for its end. */
struct call {
    struct command command;
    int (*run)(struct engine *engine);
    int result;
    bool done;
};

static struct {
    uv_loop_t loop;
    struct progress *progress;
    struct engine_config config;
    struct engine_host host;
    void *arena, *session, *segment;
    int doorbell;
    struct engine_key key;
    struct channel channel;
    bool bound;
    int remote;
    bool segment_ready, client_closed;
    _Atomic bool asked;                   /* the test has asked for an errand */
    _Atomic uint64_t errands;             /* errands done */
    uint32_t ends_seen, ends_seen_before; /* ends_seen when the crowd was attached again */
    struct call again;
} world;

static void call_run(struct command *command, struct engine *engine)
{
    struct call *c = (struct call *)command;

    c->result = c->run(engine);
}

static void call_done(struct command *command)
{
    ((struct call *)command)->done = true;
}

static int call(int (*run)(struct engine *engine))
{
    struct call c = {.command = {.run = call_run, .done = call_done}, .run = run};

    progress_post(world.progress, &c.command);
    while (!c.done)
        uv_run(&world.loop, UV_RUN_ONCE);
    return c.result;
}

static void on_notice(void *context, const struct engine_notice *notice)
{
    switch (notice->kind) {
    case ENGINE_SEGMENT_READY:
        world.segment_ready = notice->status == 0;
        break;
    case ENGINE_BOUND:
        world.bound = true;
        world.remote = notice->status < 0 ? notice->status : (int)notice->handle;
        break;
    case ENGINE_CLIENT_CLOSED:
        world.client_closed = true;
        world.ends_seen++;
        break;
    default:
        break;
    }
}

static void errand(void *context, struct engine *engine)
{
    if (atomic_exchange(&world.asked, false))
        atomic_fetch_add(&world.errands, 1);
}

/* Both sides are in this process: the client never sleeps, so nothing needs to wake it. */
static void host_wake(void *context, uint32_t session, uint32_t mode)
{
}

static void host_random(void *context, void *to, size_t size)
{
    static uint64_t state = 1;

    for (size_t i = 0; i < size; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        ((uint8_t *)to)[i] = (uint8_t)(state >> 56);
    }
}

static int open_client(struct engine *e)
{
    struct engine_client_info info = {.size = 1, .job = "test"};

    return engine_client_open(e, &info);
}

static int open_session(struct engine *e)
{
    return engine_session_open(e, 0, 0, world.session, &rings, 0);
}

static int open_segment(struct engine *e)
{
    return engine_segment_open(e, 0, world.segment, SEGMENT);
}

static int open_region(struct engine *e)
{
    return engine_region_open(e, 0, 0, 0, SEGMENT, 0x3, &world.key);
}

static int bind_self(struct engine *e)
{
    return engine_bind(e, 0, 0, 0, &world.key, 1);
}

static int nothing(struct engine *e)
{
    return 0;
}

static int close_client(struct engine *e)
{
    engine_client_close(e, 0);
    return 0;
}

/* Opens clients while there is room, CROWD at most. Returns their number. */
static int open_crowd(struct engine *e)
{
    int opened = 0;

    for (uint32_t rank = 0; rank < CROWD; rank++) {
        struct engine_client_info info = {.rank = rank, .size = CROWD, .job = "crowd"};

        opened += engine_client_open(e, &info) >= 0;
    }
    return opened;
}

static int close_crowd(struct engine *e)
{
    for (uint32_t client = 1; client <= CROWD; client++)
        engine_client_close(e, client);
    return 0;
}

static void *map(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return at == MAP_FAILED ? NULL : at;
}

/* `delay_ns` is the delay of the fabric's events; 0: no delay. */
static int open_with(enum patience_mode mode, uint64_t delay_ns)
{
    const struct delay_config delay = {
        .least_ns = delay_ns, .most_ns = delay_ns, .clock = clock_ns};
    struct fabric *loop;
    struct progress_config config = {
        .host = &world.host, .notice = on_notice, .errand = errand, .mode = mode};

    memset(&world, 0, sizeof(world));
    world.host = (struct engine_host){.wake = host_wake, .random = host_random};
    world.config =
        (struct engine_config){.peers = 1, .clients_max = CROWD + 1, .ledger_bytes = 4u << 20};
    if (engine_config_check(&world.config) < 0 || loop_open(&(struct loop_config){0}, &loop) < 0)
        return -1;
    if (delay_ns > 0 && delay_open(loop, &delay, &loop) < 0)
        return -1;
    world.arena = map(engine_arena_bytes(&world.config));
    world.session = map(session_bytes(&rings));
    world.segment = map(SEGMENT);
    world.doorbell = eventfd(0, EFD_NONBLOCK);
    if (!world.arena || !world.session || !world.segment || world.doorbell < 0)
        return -1;
    config.engine = world.config;
    config.fabric = loop;
    config.arena = world.arena;
    uv_loop_init(&world.loop);
    if (progress_start(&config, &world.loop, &world.progress) < 0 ||
        progress_watch(world.progress, world.doorbell) < 0)
        return -1;
    if (call(open_client) != 0 || call(open_session) != 0 || call(open_segment) != 0 ||
        call(open_region) != 0 || call(bind_self) != 0)
        return -1;
    while (!world.bound || !world.segment_ready)
        uv_run(&world.loop, UV_RUN_ONCE);
    return world.remote < 0 ? -1
                            : channel_init(&world.channel, world.session, session_bytes(&rings));
}

static int world_open(void)
{
    return open_with(PATIENCE_ADAPTIVE, 0);
}

static int delayed_open(void)
{
    return open_with(PATIENCE_SLEEP, DELAY_NS);
}

static int world_close(void)
{
    call(close_client);
    while (!world.client_closed)
        uv_run(&world.loop, UV_RUN_ONCE);
    if (progress_stop(world.progress, STOP_MS) < 0)
        return -1;
    uv_run(&world.loop, UV_RUN_DEFAULT);
    channel_destroy(&world.channel);
    close(world.doorbell);
    return uv_loop_close(&world.loop);
}

static void submit(struct submit_record *record, const void *payload)
{
    uint64_t one = 1;
    int r = channel_submit(&world.channel, record, NULL, NULL, payload);

    if (r == CHANNEL_WAKES)
        r = write(world.doorbell, &one, sizeof(one)) == sizeof(one) ? 0 : -errno;
    CU_ASSERT_EQUAL_FATAL(r, 0);
}

/* Waits for the next event of this kind, and checks it. */
static void expect(unsigned kind, uint64_t id)
{
    struct pwc_event event;
    int r;

    while ((r = channel_probe(&world.channel, PWC_ANY, kind, &event)) == 0)
        sched_yield();
    CU_ASSERT_EQUAL_FATAL(r, 1);
    CU_ASSERT_EQUAL_FATAL(event.status, 0);
    CU_ASSERT_EQUAL_FATAL(event.id, id);
}

static void test_small_puts_in_order(void)
{
    uint64_t window = 64;

    for (uint64_t i = 0; i < SMALL_PUTS + window; i++) {
        struct submit_record record = {.kind = SUBMIT_PUT,
                                       .flags = SUBMIT_INLINE,
                                       .remote = (uint32_t)world.remote,
                                       .offset = 8 * (i % window),
                                       .length = 8,
                                       .lid = i,
                                       .rid = i};

        if (i >= window) {
            expect(PWC_REMOTE, i - window);
            CU_ASSERT_EQUAL_FATAL(((uint64_t *)world.segment)[i % window], i - window);
            expect(PWC_LOCAL, i - window);
        }
        if (i < SMALL_PUTS)
            submit(&record, &i);
    }
}

static void test_large_puts(void)
{
    uint8_t *from = (uint8_t *)world.segment + LARGE, *to = (uint8_t *)world.segment + 4 * LARGE;

    for (uint64_t i = 0; i < LARGE_PUTS; i++) {
        struct submit_record record = {.kind = SUBMIT_PUT,
                                       .remote = (uint32_t)world.remote,
                                       .offset = 4 * LARGE,
                                       .length = LARGE,
                                       .lid = i,
                                       .rid = i,
                                       .local_offset = LARGE};

        memset(from, (int)i, LARGE);
        submit(&record, NULL);
        expect(PWC_REMOTE, i);
        expect(PWC_LOCAL, i);
        CU_ASSERT_EQUAL_FATAL(memcmp(from, to, LARGE), 0);
    }
}

/* The thread sleeps when there is nothing to do, and a doorbell wakes it. */
static void test_sleep_and_wake(void)
{
    for (uint64_t i = 0; i < 20; i++) {
        struct submit_record record = {
            .kind = SUBMIT_PUT, .remote = (uint32_t)world.remote, .lid = i, .rid = i};
        struct progress_stats before, after;

        progress_stats(world.progress, &before);
        do {
            poll(NULL, 0, 1);
            progress_stats(world.progress, &after);
        } while (after.sleeps == before.sleeps && after.rounds != before.rounds);
        submit(&record, NULL);
        expect(PWC_REMOTE, i);
        expect(PWC_LOCAL, i);
    }
}

/* After a kick the thread runs its errand, whether it was asleep or not. */
static void test_kick(void)
{
    for (uint64_t i = 0; i < 50; i++) {
        if (i % 2 == 0)
            poll(NULL, 0, 2);
        atomic_store(&world.asked, true);
        progress_kick(world.progress);
        while (atomic_load(&world.errands) == i)
            poll(NULL, 0, 1);
        CU_ASSERT_EQUAL(atomic_load(&world.errands), i + 1);
    }
}

/*
 * A delayed event wakes no thread, so each put that ends shows that the thread did not sleep
 * meanwhile. A put takes at least two delays, of its payload and of its record.
 */
static void test_held_back(void)
{
    for (uint64_t i = 0; i < 50; i++) {
        struct submit_record record = {.kind = SUBMIT_PUT,
                                       .remote = (uint32_t)world.remote,
                                       .offset = 4 * LARGE,
                                       .length = LARGE,
                                       .lid = i,
                                       .rid = i};
        uint64_t start = clock_ns();

        submit(&record, NULL);
        expect(PWC_REMOTE, i);
        CU_ASSERT(clock_ns() - start >= DELAY_NS);
        expect(PWC_LOCAL, i);
    }
}

static void opened_again(struct command *command)
{
    world.ends_seen_before = world.ends_seen;
    call_done(command);
}

/* Runs on the progress thread: a call that it posts runs right after the step that frees the
 * handles. */
static int close_and_open_crowd(struct engine *e)
{
    progress_post(world.progress, &world.again.command);
    return close_crowd(e);
}

/* The end of a client is reported before its handle is given to another one, however many end at
 * once. */
static void test_handles_come_again(void)
{
    CU_ASSERT_EQUAL_FATAL(call(open_crowd), (int)CROWD);
    world.again =
        (struct call){.command = {.run = call_run, .done = opened_again}, .run = open_crowd};
    call(close_and_open_crowd);
    while (!world.again.done)
        uv_run(&world.loop, UV_RUN_ONCE);
    /* open_crowd has opened one client for each end that was reported before its own result: the
     * end of a handle's old client was always reported first. */
    CU_ASSERT(world.again.result > 0);
    CU_ASSERT_EQUAL(world.again.result, (int)world.ends_seen_before);
    while (world.ends_seen < CROWD)
        uv_run(&world.loop, UV_RUN_ONCE);
    call(close_crowd);
    while (world.ends_seen < CROWD + (uint32_t)world.again.result)
        uv_run(&world.loop, UV_RUN_ONCE);
    world.client_closed = false;
}

/* A command that takes longer than commands may take before a step. It notes the thread's round. */
struct slow {
    struct command command;
    uint64_t round;
};

static void slow_run(struct command *command, struct engine *engine)
{
    struct progress_stats stats;
    uint64_t begun = clock_ns();

    progress_stats(world.progress, &stats);
    ((struct slow *)command)->round = stats.rounds;
    while (clock_ns() - begun < 50000)
        continue;
}

/* However many commands wait, a step follows after a few of them, so data continues beside them. */
static void test_commands_in_turns(void)
{
    static struct slow slow[64];
    enum { SLOW = sizeof(slow) / sizeof(slow[0]) };

    for (int i = 0; i < SLOW; i++) {
        slow[i].command = (struct command){.run = slow_run};
        progress_post(world.progress, &slow[i].command);
    }
    (void)call(nothing);
    for (int i = 1; i < SLOW; i++)
        CU_ASSERT(slow[i].round > slow[i - 1].round);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int spin_long(struct engine *e)
{
    uint64_t before = clock_of(CLOCK_THREAD_CPUTIME_ID);

    while (clock_of(CLOCK_THREAD_CPUTIME_ID) - before < 30000000u)
        continue;
    return 0;
}

/* The longest step is reported with the phase that took the time. */
static void test_longest_step(void)
{
    struct step_longest longest;

    CU_ASSERT_EQUAL(call(spin_long), 0);
    do
        progress_longest_step(world.progress, &longest);
    while (longest.recent_ns < 30000000u);
    CU_ASSERT(longest.ns >= 30000000u);
    CU_ASSERT_EQUAL(longest.part, ENGINE_COMMANDS);
}

/* With made-up usage: how much of a step's time was its own, and for how long the longest step
 * counts as recent. */
static void test_step_watch(void)
{
    static const struct {
        uint64_t took, cpu, blocked, sleeps, own;
    } rows[] = {
        {5000000, 5000000, 0, 0, 5000000}, /* all of the time was its own */
        {5000000, 10000, 1, 0, 5000000},   /* the thread has blocked on its own */
        {5000000, 10000, 0, 0, 10000},   /* another process, or the hypervisor, had the processor */
        {5000000, 10000, 1, 1, 10000},   /* the same, after a sleep */
        {5000000, 10000, 2, 1, 5000000}, /* the thread has blocked after a sleep */
        {5000000, 5400000, 0, 0, 5000000}, /* some of it was used before the step began */
    };
    const uint64_t second = 1000000000u, start = 77 * second;
    struct step_watch w = {0};
    struct step_longest longest;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct step_usage usage = {rows[i].cpu, rows[i].blocked};

        w.sleeps = rows[i].sleeps;
        CU_ASSERT_EQUAL(step_watch_own(&w, rows[i].took, &usage), rows[i].own);
    }
    CU_ASSERT_TRUE(step_watch_asks(&w, start));
    step_watch_end(&w, start + 10, 5000, ENGINE_POLL);
    step_watch_end(&w, start + 20, 3000, ENGINE_PEERS);
    w.began = start + 100;
    CU_ASSERT_FALSE(step_watch_asks(&w, start + 100 + 5000));
    CU_ASSERT_TRUE(step_watch_asks(&w, start + 100 + 5001));
    step_watch_read(&w, start + 1000, &longest);
    CU_ASSERT(longest.ns == 5000 && longest.part == ENGINE_POLL && longest.recent_ns == 5000);
    w.began = start + second;
    CU_ASSERT_TRUE(step_watch_asks(&w, start + second + 1)); /* the first step of a second */
    step_watch_end(&w, start + second + 2, 2, ENGINE_SWEEP);
    step_watch_read(&w, start + second + 3, &longest);
    CU_ASSERT(longest.ns == 5000 && longest.recent_ns == 5000);
    step_watch_read(&w, start + 2 * second, &longest);
    CU_ASSERT(longest.ns == 5000 && longest.recent_ns == 2);
    step_watch_read(&w, start + 3 * second, &longest);
    CU_ASSERT(longest.ns == 5000 && longest.recent_ns == 0);
}

int main(void)
{
    CU_TestInfo held_back[] = {
        {"held back", test_held_back},
        {"sleep and wake", test_sleep_and_wake},
        CU_TEST_INFO_NULL,
    };
    CU_TestInfo tests[] = {
        {"small puts in order", test_small_puts_in_order},
        {"large puts", test_large_puts},
        {"sleep and wake", test_sleep_and_wake},
        {"kicks", test_kick},
        {"handles come again", test_handles_come_again},
        {"commands in turns", test_commands_in_turns},
        {"the longest step", test_longest_step},
        {"lengths of steps", test_step_watch},
        CU_TEST_INFO_NULL,
    };
    CU_SuiteInfo suites[] = {{"progress", world_open, world_close, NULL, NULL, tests},
                             {"delayed", delayed_open, world_close, NULL, NULL, held_back},
                             CU_SUITE_INFO_NULL};
    unsigned failed;

    alarm(100);
    if (CU_initialize_registry() != CUE_SUCCESS || CU_register_suites(suites) != CUE_SUCCESS)
        return 1;
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
