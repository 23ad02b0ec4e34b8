/*
 * Turns of handlers (daemon/engine/offload/turns.h) in the simulated world. Handlers take no
 * virtual time, so their units are what is counted: a unit is 2 ns.
 *
 * Clients on node 1 have offloads, and others on node 0 keep these busy. Beside them, a client of
 * node 0 sends one request after another to a client of node 1 that has no handlers: these two are
 * called the neighbour. Thread: one.
 */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include "daemon/engine/ledger/ahead.h"
#include "daemon/engine/offload/turns.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/offload/scene.h"
#include "tests/suite.h"

enum {
    BUSY_MAX = 9,
    TURN = 2048,
    SHARE = 25,     /* percent */
    MOST = 10000,   /* units of a handler */
    LONGEST = 4900, /* turns of the program's loop that stay below the limit */
    RUN_NS = 8000000,
    RINGS = 8192,
    LONG_RINGS = 65536,
    HEADER = 1 << HANDLER_HEADER,
    BOTH = HEADER | 1 << HANDLER_COMPLETION,
    INDEX = 3, /* index of the neighbour's messages */
    ASKED_MAX = 1024,
};

static struct world *w;
static struct scene *busy; /* has BUSY_MAX entries */
static uint32_t busy_count;
static struct {
    struct message_client asker, owner;
    uint32_t remote;
    uint64_t sent, ended;
} neighbour;

static struct engine *engine(void)
{
    return w->nodes[1].engine;
}

static uint64_t units_of(const struct scene *s)
{
    return peek_offload(engine(), (uint32_t)s->offload).units;
}

static uint64_t units(void)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < busy_count; i++)
        sum += units_of(&busy[i]);
    return sum;
}

/* ---- the scene ------------------------------------------------------------------------------- */

static void open_neighbour(uint32_t first)
{
    int request = world_bind(w, first, 0, first + 1, 0, NULL);

    CU_ASSERT_EQUAL(world_await(w, request), 0);
    neighbour.remote = w->requests[request].handle;
    world_request_free(w, request);
    message_client_open(&neighbour.asker, w, first);
    message_client_open(&neighbour.owner, w, first + 1);
    message_handlers(&neighbour.owner, true);
    neighbour.sent = neighbour.ended = 0;
}

/* Opens a world with this many busy clients, and the neighbour. The bytes of the clients' rings
 * bound how many messages are on their way. Programs have the handlers of this mask. */
static void open_world(uint64_t seed, uint32_t count, uint32_t rings, uint32_t handlers)
{
    const struct world_options options = {
        .seed = seed,
        .nodes = 2,
        .submit_bytes = rings,
        .local_bytes = rings,
        .sim = {.ordered_write_max = UINT64_MAX, .delay_max_ns = 5000},
        .limits = {.clients_max = 64,
                   .sessions_max = 64,
                   .segments_max = 64,
                   .regions_max = 128,
                   .flows_max = 512,
                   .chunks_max = 1024,
                   .handler_turn = TURN,
                   .handler_share = SHARE}};

    CU_ASSERT_EQUAL_FATAL(world_open(&options, &w), 0);
    busy = calloc(BUSY_MAX, sizeof *busy);
    busy_count = count;
    for (uint32_t i = 0; i < 3 * count; i++)
        world_client_open(w, i % 3 == 1, i, 1);
    for (uint32_t i = 0; i < 2; i++)
        world_client_open(w, i, 3 * count + i, 1);
    world_settle(w, 10000);
    for (uint32_t i = 0; i < count; i++)
        CU_ASSERT_FATAL(scene_begin(&busy[i], w, 3 * i, ENGINE_OFFLOAD_QUIET, handlers));
    open_neighbour(3 * count);
}

static void close_world(void)
{
    for (uint32_t i = 0; i < busy_count; i++)
        scene_finish(&busy[i]);
    world_leave(w);
    CU_ASSERT_FALSE(w->failed);
    if (w->failed)
        printf("\n  %s\n", w->failure);
    world_close(w);
    free(busy);
}

/* Makes the owner in a scene a client of another user. */
static void change_user(uint32_t number, uint32_t uid)
{
    poke_uid(engine(), w->clients[3 * number + 1].handle, uid);
}

/* ---- work in a turn -------------------------------------------------------------------------- */

static void ask(void)
{
    struct message_send send = {
        .kind = SUBMIT_SHORT, .flags = SUBMIT_NO_REPLY, .index = INDEX, .remote = neighbour.remote};

    CU_ASSERT_EQUAL(message_request(&neighbour.asker, &send), 0);
    neighbour.sent++;
}

static void look_at_neighbour(void)
{
    struct message_event event;

    while (message_probe(&neighbour.owner, MESSAGE_REMOTE, &event) > 0)
        continue;
    while (message_probe(&neighbour.asker, MESSAGE_LOCAL, &event) > 0)
        neighbour.ended++;
}

/* Lets each asker send messages with this plan until there is no room for more, and makes a round.
 */
static void round_of(uint64_t plan)
{
    for (uint32_t i = 0; i < busy_count; i++)
        while (scene_send(&busy[i], plan, plan & SCENE_REPLY, 0) < SCENE_MESSAGES)
            continue;
    world_round(w);
    for (uint32_t i = 0; i < busy_count; i++)
        scene_look(&busy[i]);
    look_at_neighbour();
}

static void set_loops(uint64_t loops)
{
    for (uint32_t i = 0; i < busy_count; i++)
        busy[i].loops = loops;
}

/* ---- alone ----------------------------------------------------------------------------------- */

static bool has_more(void)
{
    for (uint32_t i = 0; i < busy_count; i++)
        if (busy[i].count < SCENE_MESSAGES)
            return true;
    return false;
}

/* Guards that a client which is alone has all the time: none of its messages is refused. */
static void test_alone(void)
{
    uint64_t began;

    open_world(1, 1, RINGS, HEADER);
    set_loops(LONGEST);
    began = sim_now(w->sim);
    while (has_more() && !w->failed)
        round_of(scene_plan(HANDLER_DROP, 0, 0));
    CU_ASSERT(units() * HANDLER_UNIT_NS > 2 * (sim_now(w->sim) - began));
    close_world();
}

/* ---- the share of handlers ------------------------------------------------------------------- */

/* Handlers that stay just under one limit each. */
static const struct {
    const char *name;
    uint64_t plan, loops;
    uint32_t handlers;
} ways[] = {
    {"compute", HANDLER_DROP, LONGEST, HEADER},
    {"are short", HANDLER_DROP, 200, HEADER},
    {"fail", HANDLER_FAIL, 200, HEADER},
    {"send", HANDLER_DROP | SCENE_PUT | SCENE_MESSAGE, 200, HEADER},
    {"reply", HANDLER_DROP | SCENE_REPLY, 200, HEADER},
    {"get", HANDLER_PROCEED | SCENE_GET, 200, BOTH},
    {"compute when a get has come", HANDLER_PROCEED | SCENE_GET | (uint64_t)SCENE_LOOP << 48, 0,
     BOTH},
};

/* The bound on what handlers take while the neighbour's request is on its way, in ns. */
static uint64_t bound(uint64_t passed)
{
    return passed * SHARE / 100 + 2 * HANDLER_UNIT_NS * (uint64_t)OFFLOAD_STEP_UNITS +
           HANDLER_UNIT_NS * MOST;
}

/* For each request of the neighbour, in ns: the time that it took, and the time of handlers
 * meanwhile. */
static struct {
    uint64_t passed, took;
} asked[ASKED_MAX];
static uint32_t asked_count;

static int by_took(const void *a, const void *b)
{
    uint64_t x = ((const uint64_t *)a)[1], y = ((const uint64_t *)b)[1];

    return x < y ? -1 : x > y;
}

/* Sends a request of the neighbour, and makes rounds until it has ended. Returns false if the world
 * failed. */
static bool ask_once(uint64_t plan)
{
    uint64_t before = units(), begun = sim_now(w->sim);

    ask();
    while (neighbour.ended < neighbour.sent && !w->failed)
        round_of(plan);
    asked[asked_count].passed = sim_now(w->sim) - begun;
    asked[asked_count++].took = (units() - before) * HANDLER_UNIT_NS;
    return !w->failed;
}

static void check_share(size_t way)
{
    uint64_t from, begun_units, took, passed = 0;

    open_world(way + 1, 1, RINGS, ways[way].handlers);
    set_loops(ways[way].loops);
    /* With the first request the engine notices that it has other work than handlers; it does not
     * count. */
    asked_count = 0;
    ask_once(ways[way].plan);
    asked_count = 0;
    from = sim_now(w->sim);
    begun_units = units();
    while (has_more() && sim_now(w->sim) < from + RUN_NS && asked_count < ASKED_MAX &&
           ask_once(ways[way].plan)) {
        CU_ASSERT(asked[asked_count - 1].took <= bound(asked[asked_count - 1].passed));
        passed += asked[asked_count - 1].passed;
    }
    took = (units() - begun_units) * HANDLER_UNIT_NS;
    CU_ASSERT(took < bound(sim_now(w->sim) - from));
    CU_ASSERT_FATAL(asked_count > 10);
    qsort(asked, asked_count, sizeof(asked[0]), by_took);
    printf(
        "\n    handlers that %s: %llu of %llu us; in %u requests of %llu ns: median %llu, p99 %llu",
        ways[way].name, (unsigned long long)took / 1000,
        (unsigned long long)(sim_now(w->sim) - from) / 1000, asked_count,
        (unsigned long long)(passed / asked_count), (unsigned long long)asked[asked_count / 2].took,
        (unsigned long long)asked[asked_count * 99 / 100].took);
    /* The median is at most 1.3 times the time without handlers, p99 a handler and a turn more. */
    CU_ASSERT(asked[asked_count / 2].took <= passed / asked_count * 3 / 10);
    CU_ASSERT(asked[asked_count * 99 / 100].took <= HANDLER_UNIT_NS * (MOST + TURN));
    close_world();
}

static void test_share(void)
{
    for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
        check_share(way);
}

/* Guards the first request where one client was alone so far, with a ledger full of its records in
 * front: the request does not wait for all of these. */
static void test_first_request(void)
{
    uint64_t begun, before;

    open_world(1, 1, LONG_RINGS, HEADER);
    set_loops(LONGEST);
    for (uint32_t i = 0; i < 100; i++)
        round_of(scene_plan(HANDLER_DROP, 0, 0));
    begun = sim_now(w->sim);
    before = units();
    ask();
    while (neighbour.ended < neighbour.sent && !w->failed)
        round_of(scene_plan(HANDLER_DROP, 0, 0));
    before = (units() - before) * HANDLER_UNIT_NS;
    printf("\n    %llu us of handlers in front of it", (unsigned long long)before / 1000);
    /* The bound adds a step that had begun before the request came, and a step that finds the
     * request. */
    CU_ASSERT(before < bound(sim_now(w->sim) - begun) + HANDLERS_AHEAD_NS +
                           2 * HANDLER_UNIT_NS * (OFFLOAD_STEP_UNITS + MOST));
    close_world();
}

/* ---- between users --------------------------------------------------------------------------- */

/* Guards that a user with one client and a user with eight clients get the same. */
static void test_users(void)
{
    uint64_t one, many = 0;

    open_world(1, BUSY_MAX, RINGS, HEADER);
    change_user(0, 2000);
    set_loops(500);
    while (busy[0].count < SCENE_MESSAGES && !w->failed) {
        poke_other_work(engine());
        round_of(scene_plan(HANDLER_DROP, 0, 0));
    }
    one = units_of(&busy[0]);
    for (uint32_t i = 1; i < BUSY_MAX; i++)
        many += units_of(&busy[i]);
    printf("\n    one client %llu units, eight of another user %llu", (unsigned long long)one,
           (unsigned long long)many);
    CU_ASSERT(many < one * 3 / 2 && one < many * 3 / 2);
    close_world();
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"a client alone has all the time", test_alone},
        {"handlers have their share of the time", test_share},
        {"the first request of another", test_first_request},
        {"users have the same", test_users},
        CU_TEST_INFO_NULL,
    };

    return suite_run("handler turns", tests);
}
