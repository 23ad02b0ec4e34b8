/*
 * Puts that an offload's region stores, in the simulated world: handlers deal with the bytes where
 * these stand in the region, over as many steps as that takes. Handlers run once on each packet,
 * however links break and daemons are restarted, and keep records of other clients back no longer
 * than a turn. test_regions.c says what each return of a handler means.
 *
 *     test_placed                              the cases, and 30 random runs
 *     test_placed --seeds N [--first S]        random runs alone
 *
 * Handlers take no virtual time, so their units are what is counted.
 *
 * Thread: one.
 */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/engine/offload/turns.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/offload/scene.h"
#include "tests/engine/offload/scene_seeds.h"

enum {
    RUNS = 30,
    ALL = 7,
    DATA = HANDLER_PROCESS_DATA,
    SHORT_PACKET = 256,
    LONG = 1 << 18, /* takes some ten steps in these cases */
    PACKET = 4096,
    MIB = 1 << 20,
    SHARE = 25, /* percent */
    MOST = 10000,
    INDEX = 3, /* index of the neighbour's messages */
};

static struct scene scene;
static struct {
    struct message_client asker, owner;
    uint32_t remote;
    uint64_t sent, ended;
} neighbour;

/* ---- the world ------------------------------------------------------------------------------- */

static struct engine *engine(void)
{
    return scene.world->nodes[1].engine;
}

static uint64_t units(void)
{
    return peek_offload(engine(), (uint32_t)scene.offload).units;
}

/* Opens one more client on each node, the neighbour, which has nothing to do with the offload. */
static void open_neighbour(struct world *w)
{
    uint32_t from = (uint32_t)world_client_open(w, 0, SCENE_CLIENTS, 1);
    uint32_t to = (uint32_t)world_client_open(w, 1, SCENE_CLIENTS + 1, 1);
    int request;

    world_settle(w, 10000);
    request = world_bind(w, from, 0, to, 0, NULL);
    if (world_await(w, request) < 0)
        world_fail(w, "the neighbour is not bound");
    neighbour.remote = w->requests[request].handle;
    world_request_free(w, request);
    message_client_open(&neighbour.asker, w, from);
    message_client_open(&neighbour.owner, w, to);
    message_handlers(&neighbour.owner, true);
    neighbour.sent = neighbour.ended = 0;
}

static bool open_scene(uint64_t seed, FILE *trace, uint32_t packet, uint32_t flags,
                       uint64_t ordered)
{
    const struct world_options options = {
        .seed = seed,
        .trace = trace,
        .segment_bytes = MIB + SCENE_PLACE,
        .limits = {.ledger_start = 1 << 17,
                   .ledger_max = 1 << 17,
                   .ledger_bytes = 1 << 21,
                   .packed_max = packet,
                   .handler_share = SHARE},
        .sim = {.ordered_write_max = ordered, .message_max = 1 << 20, .delay_max_ns = 5000}};

    if (!scene_open_puts(&scene, &options, flags | ENGINE_OFFLOAD_PLACED, ALL))
        return false;
    open_neighbour(scene.world);
    return !scene.world->failed;
}

static void close_scene(void)
{
    const char *wrong = scene_close(&scene);

    CU_ASSERT_PTR_NULL(wrong);
    if (wrong)
        printf("\n  %s\n", wrong);
}

static uint32_t put(uint64_t plan, uint32_t length)
{
    return scene_put(&scene, plan, length, 0, WORLD_MAIN);
}

static bool ask(void)
{
    struct message_send send = {
        .kind = SUBMIT_SHORT, .flags = SUBMIT_NO_REPLY, .index = INDEX, .remote = neighbour.remote};

    if (message_request(&neighbour.asker, &send) < 0)
        return false;
    neighbour.sent++;
    return true;
}

/* Makes one round, with a look at the neighbour's events. */
static bool turn(void)
{
    struct message_event event;
    bool moves = scene_turn(&scene);

    while (message_probe(&neighbour.owner, MESSAGE_REMOTE, &event) > 0)
        moves = true;
    for (; message_probe(&neighbour.asker, MESSAGE_LOCAL, &event) > 0; moves = true)
        neighbour.ended++;
    return moves && !scene.world->failed;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Guards that no step takes more than its bound and one handler, and that a client which is alone
 * is not refused. */
static void test_steps(void)
{
    static const uint64_t ordered[] = {0, UINT64_MAX};

    for (uint32_t row = 0; row < 2; row++) {
        uint64_t before, most = 0, refused = 0;
        uint32_t number, busy = 0;

        CU_ASSERT_FATAL(open_scene(1, NULL, SHORT_PACKET, 0, ordered[row]));
        number = put(scene_plan(DATA, 0, SCENE_EVENT), LONG);
        for (uint32_t i = 0; i < 10000 && scene.messages[number].ends == 0; i++) {
            before = units();
            turn();
            busy += units() > before;
            most = units() - before > most ? units() - before : most;
        }
        refused = peek_flow(scene.world->nodes[0].engine,
                            peek_flow_of(scene.world->nodes[0].engine, scene.remote))
                      .epoch;
        CU_ASSERT(busy >= 5);
        CU_ASSERT(most <= OFFLOAD_STEP_UNITS + 200);
        CU_ASSERT_EQUAL(refused, 0);
        CU_ASSERT(scene_got_all(&scene, number, SHORT_PACKET));
        CU_ASSERT_EQUAL(scene.messages[number].status, 0);
        CU_ASSERT_EQUAL(scene.messages[number].own[HANDLER_COMPLETION], 1);
        scene_finish(&scene);
        close_scene();
    }
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* Sends one request of the neighbour, and makes rounds until it has ended. */
static void ask_once(void)
{
    CU_ASSERT_TRUE_FATAL(ask());
    while (neighbour.ended < neighbour.sent && !scene.world->failed)
        turn();
}

/* Guards requests of another client beside a put of 1 MiB, on each of whose packets handlers stay
 * just under their limit. The requests come by the same link: each waits for the share that
 * handlers have, a step that had begun, and a handler; none waits for the whole put. */
static void test_beside_others(void)
{
    uint64_t took = 0, passed = 0, worst = 0;
    uint32_t number, count = 0;

    CU_ASSERT_FATAL(open_scene(1, NULL, PACKET, ENGINE_OFFLOAD_QUIET, UINT64_MAX));
    number = put(scene_plan(DATA, SCENE_LOOP, 0), MIB);
    while (scene_runs(&scene, number, HANDLER_PAYLOAD) < 10 && turn())
        continue;
    ask_once(); /* now the engine knows that there are two clients */
    while (scene.messages[number].ends == 0 && !scene.world->failed) {
        uint64_t before = units(), begun = sim_now(scene.world->sim), now, used;

        ask_once();
        now = sim_now(scene.world->sim) - begun;
        used = (units() - before) * HANDLER_UNIT_NS;
        worst = used > worst ? used : worst;
        passed += now;
        took += used;
        count++;
        CU_ASSERT(used <=
                  now * SHARE / 100 + 2 * HANDLER_UNIT_NS * (uint64_t)(OFFLOAD_STEP_UNITS + MOST));
    }
    printf("\n    %u requests in %llu us: handlers took %llu us, at most %llu in one", count,
           (unsigned long long)passed / 1000, (unsigned long long)took / 1000,
           (unsigned long long)worst / 1000);
    CU_ASSERT(count > 50);
    CU_ASSERT_EQUAL(scene.messages[number].status, 0);
    CU_ASSERT(scene_got_all(&scene, number, PACKET));
    scene_finish(&scene);
    close_scene();
}

/* ---- puts that can't end --------------------------------------------------------------------- */

/* Begins a long put, of which some packets have been handled, and others not. */
static uint32_t begin_long(void)
{
    uint32_t number = put(scene_plan(DATA, 0, SCENE_EVENT), LONG);

    while (scene_runs(&scene, number, HANDLER_PAYLOAD) < 3 && turn())
        continue;
    CU_ASSERT(!scene_got_all(&scene, number, SHORT_PACKET));
    return number;
}

enum { DISABLE, DESTROY, ORIGIN_ENDS, NODE_LOST, ENDS };

static void test_cut(void)
{
    static const int status[ENDS] = {-ESHUTDOWN, -ESHUTDOWN, 0, -ECONNABORTED};

    for (uint32_t how = 0; how < ENDS; how++) {
        const struct scene_message *m;
        uint32_t number;

        CU_ASSERT_FATAL(open_scene(1, NULL, SHORT_PACKET, 0, UINT64_MAX));
        number = begin_long();
        m = &scene.messages[number];
        if (how == DISABLE)
            CU_ASSERT_EQUAL(scene_enable(&scene, false), 0);
        if (how == DESTROY)
            CU_ASSERT_EQUAL(scene_destroy(&scene), 0);
        if (how == ORIGIN_ENDS)
            world_client_close(scene.world, 0);
        if (how == NODE_LOST)
            world_link_lost(scene.world, 0, 1);
        scene.silent = how == ORIGIN_ENDS;
        for (uint32_t i = 0; i < 10000 && turn(); i++)
            continue;
        CU_ASSERT_EQUAL(scene_runs(&scene, number, HANDLER_HEADER), 1);
        CU_ASSERT_EQUAL(scene_runs(&scene, number, HANDLER_COMPLETION), 1);
        CU_ASSERT_EQUAL(m->own[HANDLER_COMPLETION], 1);
        CU_ASSERT_EQUAL(m->status, status[how]);
        if (how == DISABLE) {
            CU_ASSERT_EQUAL(m->events[OFFLOAD_FAILED], 1);
            CU_ASSERT_EQUAL(scene_enable(&scene, true), 0);
            number = put(scene_plan(DATA, 0, 0), LONG);
            scene_finish(&scene);
            CU_ASSERT(scene_got_all(&scene, number, SHORT_PACKET));
        }
        close_scene();
    }
}

/* ---- random runs ----------------------------------------------------------------------------- */

static const char *check_put(uint32_t number)
{
    const struct scene_message *m = &scene.messages[number];

    if (scene_runs(&scene, number, HANDLER_HEADER) != 1 ||
        scene_runs(&scene, number, HANDLER_COMPLETION) != 1)
        return "a handler has not run once";
    if (!scene_got_all(&scene, number, SHORT_PACKET))
        return "a packet has not been handled once";
    if (m->own[HANDLER_COMPLETION] != 1)
        return "a handler's event has not come once";
    return m->status == 0 ? NULL : "a wrong status";
}

/* Makes one random run. Returns NULL, or what went wrong. Links break and nodes die in the middle
 * of long puts, and other work makes handlers wait for turns. */
static const char *run(uint64_t seed, FILE *trace)
{
    static const uint64_t ordered[] = {0, 4096, UINT64_MAX};
    struct sim_random random = {.state = seed ^ UINT64_C(0x9e9105)};
    const struct scene_troubles troubles = {.breaks = (uint32_t)sim_random_below(&random, 3),
                                            .deaths = (uint32_t)sim_random_below(&random, 2),
                                            .sleeps = (uint32_t)sim_random_below(&random, 2)};
    uint32_t asks = (uint32_t)sim_random_below(&random, 3);

    if (!open_scene(seed, trace, SHORT_PACKET, (uint32_t)sim_random_below(&random, 2),
                    ordered[sim_random_below(&random, 3)]))
        return scene_close(&scene);
    for (uint32_t i = 0; i < 1500 && scene.count < 40 && !scene.world->failed; i++) {
        if (sim_random_below(&random, 10) == 0)
            put(scene_plan(DATA, 0, SCENE_EVENT), (uint32_t)sim_random_below(&random, LONG) + 1);
        if (sim_random_below(&random, 10) < asks && scene.world->nodes[1].alive)
            poke_other_work(engine());
        turn();
        scene_trouble(&scene, &troubles, &random);
    }
    return scene_conclude(&scene, check_put);
}

static const struct scene_seeds seeds = {"placed", run};

static void test_random_runs(void)
{
    CU_ASSERT_EQUAL(scene_run_seeds(&seeds, 1, RUNS), 0);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"a put over several steps", test_steps},
        {"beside another client", test_beside_others},
        {"cut in the middle", test_cut},
        {"exactly once, by seed", test_random_runs},
        CU_TEST_INFO_NULL,
    };

    return scene_main(&seeds, tests, argc, argv);
}
