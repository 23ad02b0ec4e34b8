/*
 * Keepalive: a fabric that falls silent without an error is noticed. Operations under way continue
 * when the fabric works again in time, and end once when it does not. No peer is given up because
 * it is slow, idle or one of many, or because our own process was late. One thread.
 */
#include <errno.h>
#include <string.h>
#include "tests/suite.h"
#include "tests/engine/world/paths/driver.h"
#include "daemon/engine/peer/keepalive.h"
#include "tests/engine/bench/still_fabric.h"
#include "tests/engine/world/pages.h"
#include "tests/engine/world/paths/world_path.h"

/* Every operation of a test takes less than an interval, also on the slowest fabric. */
#define INTERVAL_NS UINT64_C(20000000)
#define DEADLINE    10u /* intervals */

static struct world_path path;
static struct driver driver;

static struct world *begin(uint32_t spill_max)
{
    const struct world_options options = {
        .seed = 3,
        .limits = {.keepalive_ns = INTERVAL_NS,
                   .peer_deadline_ns = DEADLINE * INTERVAL_NS,
                   .spill_max = spill_max},
        .sim = {.silent_per_mille = 1000, .ordered_write_max = UINT64_MAX},
    };
    char failure[400];

    CU_ASSERT_EQUAL_FATAL(world_path_open(&path, &options, 4, failure), 0);
    CU_ASSERT_EQUAL_FATAL(driver_open(&driver, &path.path, 1), 0);
    return path.world;
}

static void finish(void)
{
    if (driver.failed)
        printf("\n  %s\n", driver.failure);
    CU_ASSERT_FALSE(driver.failed);
    driver_close(&driver);
    world_path_close(&path);
}

static struct world_link *link_between(struct world *w)
{
    return world_link_of(w, 0, 1);
}

/* Makes rounds for this many intervals. Returns false when all nodes fell asleep before. */
static bool let_pass(struct world *w, uint64_t intervals)
{
    uint64_t until = sim_now(w->sim) + intervals * INTERVAL_NS;

    while (sim_now(w->sim) < until)
        if (!driver_turn(&driver))
            return false;
    return true;
}

static const struct model_op small = {.from = 0, .to = 1, .kind = PATH_PUT, .length = 64};
static const struct model_op large = {.from = 0, .to = 1, .kind = PATH_PUT, .length = 8000};
static const struct model_op get = {.from = 0, .to = 1, .kind = PATH_GET, .length = 8000};

static void idle_peers_are_left_alone(void)
{
    struct world *w = begin(0);

    driver_submit(&driver, small);
    driver_finish(&driver);
    /* A last look finds that nothing waits; after that no time to wake up is set. */
    CU_ASSERT_TRUE(world_settle(w, 1000));
    CU_ASSERT_EQUAL(w->nodes[0].deadline, UINT64_MAX);
    CU_ASSERT_EQUAL(link_between(w)->asks, 0);
    finish();
}

/* Guards silences that end before the deadline, shorter and longer than three intervals: all
 * operations succeed. */
static void comes_back_in_time(void)
{
    static const uint64_t lengths[] = {0, 1, 2, 4, DEADLINE - 3};
    struct world *w = begin(0);

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        uint32_t silences = link_between(w)->silences;

        driver_finish_one(&driver, driver_submit(&driver, small));
        world_link_blackout(w, 0, 1);
        driver_submit(&driver, large);
        driver_submit(&driver, small);
        driver_submit(&driver, get);
        CU_ASSERT_TRUE(let_pass(w, lengths[i]));
        world_link_restore(w, 0, 1);
        driver_finish(&driver);
        CU_ASSERT_TRUE(link_between(w)->silences > silences);
    }
    CU_ASSERT_TRUE(link_between(w)->asks > 0);
    CU_ASSERT_EQUAL(link_between(w)->gone, 0);
    finish();
}

/* Guards a connection that loses what one side sends: the side that waits gets its answers, and the
 * other side gets nothing. Each of them notices that in few intervals. */
static void half_a_connection(void)
{
    for (uint32_t from = 0; from < 2; from++) {
        struct world *w = begin(0);
        uint32_t silences = link_between(w)->silences;
        uint64_t begun;

        driver_finish_one(&driver, driver_submit(&driver, small));
        world_link_swallow(w, from, 1 - from);
        begun = sim_now(w->sim);
        driver_submit(&driver, small);
        driver_submit(&driver, large);
        driver_finish(&driver);
        CU_ASSERT(link_between(w)->silences > silences);
        CU_ASSERT(sim_now(w->sim) - begun < 6 * INTERVAL_NS);
        CU_ASSERT_EQUAL(link_between(w)->gone, 0);
        finish();
    }
}

/* Guards a connection that has lost some of what one side sent, and carries everything later. */
static void a_hole(void)
{
    for (uint32_t from = 0; from < 2; from++) {
        struct world *w = begin(0);
        uint32_t holes = link_between(w)->holes;
        uint64_t begun;

        driver_finish_one(&driver, driver_submit(&driver, small));
        world_link_swallow(w, from, 1 - from);
        driver_submit(&driver, small);
        driver_submit(&driver, large);
        CU_ASSERT(let_pass(w, 1));
        world_link_carry(w, from, 1 - from);
        begun = sim_now(w->sim);
        driver_finish(&driver);
        CU_ASSERT(link_between(w)->holes > holes);
        CU_ASSERT(sim_now(w->sim) - begun < 6 * INTERVAL_NS);
        CU_ASSERT_EQUAL(link_between(w)->gone, 0);
        finish();
    }
}

/* Guards that a peer which stays away is given up at the deadline and not before: each operation
 * ends once, and new operations go to the new process. */
static void stays_away(void)
{
    struct world *w = begin(0);
    uint64_t begun;

    driver_finish_one(&driver, driver_submit(&driver, small));
    world_link_blackout(w, 0, 1);
    model_shake(&driver.model, 0, 1);
    driver_submit(&driver, large);
    driver_submit(&driver, small);
    driver_submit(&driver, get);
    model_shake(&driver.model, 0, 1);
    begun = sim_now(w->sim);
    for (uint32_t i = 0; i < driver.model.op_count; i++)
        driver_finish_one(&driver, i);
    CU_ASSERT(sim_now(w->sim) - begun >= (DEADLINE - 1) * INTERVAL_NS);
    CU_ASSERT(sim_now(w->sim) - begun <= (DEADLINE + 2 * KEEPALIVE_SILENT) * INTERVAL_NS);
    CU_ASSERT_TRUE(link_between(w)->gone > 0);
    for (uint32_t i = 1; i < driver.model.op_count; i++)
        CU_ASSERT(driver.model.ops[i].local_status == -ECONNABORTED ||
                  driver.model.ops[i].local_status == -EHOSTDOWN);
    world_link_restore(w, 0, 1);
    CU_ASSERT_TRUE(world_settle(w, 100000));
    driver_bind(&driver, 0, 1);
    driver_finish_one(&driver, driver_submit(&driver, small));
    CU_ASSERT_EQUAL(driver.model.ops[driver.model.op_count - 1].local_status, 0);
    finish();
}

/* Guards that a client which takes no events holds its senders, and that its node is not given up
 * for that. */
static void slow_is_not_silent(void)
{
    struct world *w = begin(512);

    driver.silent = 1u << 1;
    for (int i = 0; i < 250; i++)
        driver_submit(&driver, (struct model_op){.from = 0, .to = 1, .kind = PATH_PUT});
    CU_ASSERT_TRUE(let_pass(w, 20 * DEADLINE));
    CU_ASSERT_TRUE(link_between(w)->asks >= DEADLINE);
    CU_ASSERT_EQUAL(link_between(w)->silences, 0);
    CU_ASSERT_EQUAL(link_between(w)->gone, 0);
    driver.silent = 0;
    driver_finish(&driver);
    finish();
}

/* Guards against our own process being late: many deadlines for which it was stopped count as one
 * interval. */
static void late_is_not_silent(void)
{
    struct world *w = begin(0);

    for (int i = 0; i < 10; i++) {
        driver_submit(&driver, large);
        sim_advance(w->sim, sim_now(w->sim) + 20 * DEADLINE * INTERVAL_NS);
        driver_finish(&driver);
    }
    CU_ASSERT_EQUAL(link_between(w)->silences, 0);
    CU_ASSERT_EQUAL(link_between(w)->gone, 0);
    finish();
}

/* ---- many peers, of an engine on its own ----------------------------------------------------- */

#define PEERS 2000u

static void host_wake(void *context, uint32_t session, uint32_t mode)
{
}

static void host_random(void *context, void *to, size_t size)
{
    memset(to, 7, size);
}

static const struct engine_host host = {.wake = host_wake, .random = host_random};

struct alone {
    struct still_fabric fabric;
    struct engine *engine;
    void *arena, *private, *session;
    size_t arena_bytes, private_bytes;
    uint64_t now, deadline;
    uint32_t asks, gone, broken;
};

static void step(struct alone *a, uint64_t ns)
{
    struct engine_notice notice;

    a->now += ns;
    engine_step(a->engine, a->now, 64, &a->deadline);
    while (engine_notice(a->engine, &notice)) {
        a->asks += notice.kind == ENGINE_PEER_SILENT;
        a->broken += notice.kind == ENGINE_PEER_BROKEN;
        a->gone += notice.kind == ENGINE_PEER_GONE;
    }
}

static void link_to(struct alone *a, uint32_t node)
{
    struct engine_offer ours, theirs = {.peer = node, .incarnation = 1, .state_id = 1 + node};

    while (engine_offer(a->engine, node, &ours) == -EAGAIN)
        step(a, 1000);
    theirs.ring_bytes = ours.ring_bytes;
    CU_ASSERT_EQUAL_FATAL(engine_peer_up(a->engine, node, &theirs), 0);
}

#define SESSION_BYTES (16u * 4096)

/* Opens an engine and links it to the peers 1 to `peers`. */
static void begin_alone(struct alone *a, uint32_t peers)
{
    struct engine_config config = {.peers = peers + 1,
                                   .flows_max = 8192,
                                   .keepalive_ns = 1000000000,
                                   .ledger_start = 16384,
                                   .ledger_bytes = 256u << 20,
                                   .peer_deadline_ns = UINT64_C(10000000000)};

    CU_ASSERT_EQUAL_FATAL(engine_config_check(&config), 0);
    memset(a, 0, sizeof(*a));
    a->arena_bytes = engine_arena_bytes(&config);
    a->private_bytes = engine_private_bytes(&config);
    a->arena = pages_take(a->arena_bytes);
    a->private = pages_take(a->private_bytes);
    a->session = pages_take(SESSION_BYTES);
    CU_ASSERT_FATAL(a->arena && a->private && a->session);
    still_open(&a->fabric);
    a->now = 1;
    CU_ASSERT_EQUAL_FATAL(
        engine_open(&config, a->arena, a->private, &a->fabric.base, &host, a->now, &a->engine), 0);
    for (uint32_t node = 1; node <= peers; node++)
        link_to(a, node);
    step(a, 1000);
}

static void finish_alone(struct alone *a)
{
    pages_give(a->arena, a->arena_bytes);
    pages_give(a->private, a->private_bytes);
    pages_give(a->session, SESSION_BYTES);
}

/* Guards that an engine which is linked to two thousand peers asks none of them, and sets no time
 * to wake, while no operation is under way. */
static void many_idle(void)
{
    struct alone a;

    begin_alone(&a, PEERS);
    step(&a, 1000000000); /* a peer that has just become active is looked at once */
    step(&a, 1000000000);
    CU_ASSERT_EQUAL(a.asks, 0);
    CU_ASSERT_EQUAL(a.deadline, UINT64_MAX);
    finish_alone(&a);
}

/* Puts something under way with the first `peers` peers: a bind that nobody answers. */
static void wait_for(struct alone *a, uint32_t peers)
{
    const struct engine_client_info info = {.rank = 0, .size = PEERS, .job = "job"};
    const struct session_sizes sizes = {8192, 8192, 8192, 8192, 8192};
    int client = engine_client_open(a->engine, &info), session;

    CU_ASSERT_FATAL(client >= 0 && session_bytes(&sizes) <= SESSION_BYTES);
    session = engine_session_open(a->engine, (uint32_t)client, 0, a->session, &sizes, 0);
    CU_ASSERT_FATAL(session >= 0);
    for (uint32_t node = 1; node <= peers; node++)
        CU_ASSERT_EQUAL_FATAL(engine_bind(a->engine, (uint32_t)session, node, node, NULL, node), 0);
    step(a, 1000);
}

/* Guards the silence of all peers while something waits for each: the questions are spread over the
 * intervals, and each peer is asked twice before its link begins again. */
static void many_silent(void)
{
    struct alone a;

    begin_alone(&a, PEERS);
    wait_for(&a, PEERS);
    for (uint32_t i = 0; i < 20 && a.broken < PEERS; i++) {
        uint32_t before = a.asks;

        step(&a, 1000000000);
        CU_ASSERT(a.asks - before <= KEEPALIVE_ASKS);
        CU_ASSERT(a.broken == 0 || a.asks >= PEERS);
    }
    CU_ASSERT_EQUAL(a.asks, 2 * PEERS);
    CU_ASSERT_EQUAL(a.broken, PEERS);
    CU_ASSERT_EQUAL(a.gone, 0);
    finish_alone(&a);
}

/* Lets something arrive through the link: the announcement of a payload. */
static void hear_from(struct alone *a, uint32_t node)
{
    still_push(&a->fabric,
               &(struct fabric_event){.kind = FABRIC_ARRIVED,
                                      .peer = node,
                                      .immediate = wire_immediate(WIRE_PAYLOAD, node, 0)});
    step(a, 1000);
}

/* Guards that payloads before an answer are granted their time, that this time is bounded, and that
 * nothing is granted to a link through which nothing has arrived. */
static void long_payloads_are_granted(void)
{
    static const struct {
        uint64_t bytes;
        uint32_t intervals;
        bool heard;
    } rows[] = {{0, 3, true},
                {1u << 20, 4, true},
                {5u << 20, 8, true},
                {UINT64_C(1) << 40, 123, true},
                {UINT64_C(1) << 40, 3, false}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct alone a;
        uint32_t intervals = 0;

        begin_alone(&a, 1);
        wait_for(&a, 1);
        if (rows[i].heard)
            hear_from(&a, 1);
        while (a.broken == 0 && a.gone == 0 && intervals < 200) {
            step(&a, 1000000000);
            if (intervals++ == 0)
                engine_peer_answered(a.engine, 1, rows[i].bytes);
        }
        CU_ASSERT_EQUAL(intervals, rows[i].intervals);
        finish_alone(&a);
    }
}

/* Guards that an answer in an earlier silence grants nothing in a later one. */
static void old_answers_are_forgotten(void)
{
    struct alone a;
    uint32_t intervals = 0;

    begin_alone(&a, 1);
    wait_for(&a, 1);
    hear_from(&a, 1);
    engine_peer_answered(a.engine, 1, UINT64_C(1) << 40);
    while (a.broken == 0 && a.gone == 0 && intervals < 200) {
        step(&a, 1000000000);
        intervals++;
    }
    CU_ASSERT_EQUAL(intervals, 3);
    finish_alone(&a);
}

int main(void)
{
    CU_TestInfo tests[] = {{"idle peers are left alone", idle_peers_are_left_alone},
                           {"comes back in time", comes_back_in_time},
                           {"half a connection", half_a_connection},
                           {"a hole", a_hole},
                           {"stays away", stays_away},
                           {"slow is not silent", slow_is_not_silent},
                           {"late is not silent", late_is_not_silent},
                           {"many idle", many_idle},
                           {"many silent", many_silent},
                           {"long payloads are granted", long_payloads_are_granted},
                           {"old answers are forgotten", old_answers_are_forgotten},
                           CU_TEST_INFO_NULL};

    return suite_run("keepalive", tests);
}
