/*
 * Longs to an offload's index, in the simulated world: handlers deal with the payload where it
 * stands in the region, packet by packet, over as many steps as it takes, and may reply when all of
 * it has been seen. Handlers run exactly once on each packet, however links break and daemons are
 * restarted.
 *
 *     test_longs                              the cases, and 60 random runs
 *     test_longs --seeds N [--first S]        random runs alone
 *
 * Thread: one.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/engine/offload/turns.h"
#include "tests/count.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/offload/scene.h"
#include "tests/engine/offload/scene_seeds.h"

#define RUNS 60u

enum { ALL = 7, PACKET = 256, PACKED = 300, LONG = 1 << 18, SEGMENT = LONG + SCENE_PLACE + 65536 };
enum { SUCCESS = HANDLER_SUCCESS, DROP = HANDLER_DROP, DATA = HANDLER_PROCESS_DATA };

static struct scene scene;

/* ---- the world ------------------------------------------------------------------------------- */

static struct engine *engine(void)
{
    return scene.world->nodes[1].engine;
}

static struct offload offload(void)
{
    return peek_offload(engine(), (uint32_t)scene.offload);
}

/* Opens a scene where the longest payload in a record, PACKED, is not a whole number of packets. */
static bool open_scene(uint64_t seed, FILE *trace, uint32_t flags, uint32_t handlers,
                       uint64_t ordered)
{
    const struct world_options options = {
        .seed = seed,
        .trace = trace,
        .segment_bytes = SEGMENT,
        .limits = {.ledger_start = 1 << 16,
                   .ledger_max = 1 << 16,
                   .ledger_bytes = 1 << 20,
                   .packed_max = PACKED},
        .sim = {.ordered_write_max = ordered, .message_max = 1 << 20, .delay_max_ns = 5000}};
    bool opened = scene_open_longs(&scene, &options, flags, handlers);

    for (uint32_t i = 0; opened && i < LONG; i++)
        scene.world->clients[0].contexts[0].memory[i] = (uint8_t)(i * 7 + i / 256 + 1);
    return opened;
}

static void close_scene(void)
{
    const char *wrong = scene_close(&scene);

    CU_ASSERT_PTR_NULL(wrong);
    if (wrong)
        printf("\n  %s\n", wrong);
}

static uint32_t send(uint64_t plan, bool wants_reply, uint32_t length, bool packed)
{
    return scene_send_long(&scene, plan, wants_reply, length, packed ? SUBMIT_INLINE : 0);
}

static bool is_placed(uint32_t length)
{
    return memcmp(scene.world->clients[1].contexts[0].memory + SCENE_PLACE,
                  scene.world->clients[0].contexts[0].memory, length) == 0;
}

/* ---- lengths --------------------------------------------------------------------------------- */

static void check_length(uint32_t length, bool packed, uint64_t ordered)
{
    const struct scene_message *m = &scene.messages[0];

    CU_ASSERT_FATAL(open_scene(1, NULL, 0, ALL, ordered));
    CU_ASSERT_EQUAL(send(scene_plan(DATA, 0, SCENE_REPLY | SCENE_EVENT), true, length, packed), 0);
    scene_finish(&scene);
    CU_ASSERT_EQUAL(m->status, 0);
    CU_ASSERT_EQUAL(m->replies, 1);
    CU_ASSERT_EQUAL(m->own[HANDLER_COMPLETION], 1);
    CU_ASSERT_EQUAL(m->events[OFFLOAD_ENDED], 1);
    CU_ASSERT_EQUAL(scene_runs(&scene, 0, HANDLER_HEADER), 1);
    CU_ASSERT_EQUAL(scene_runs(&scene, 0, HANDLER_COMPLETION), 1);
    CU_ASSERT(scene_got_all(&scene, 0, PACKET));
    CU_ASSERT(is_placed(length));
    CU_ASSERT_EQUAL(offload().bytes, length);
    CU_ASSERT_EQUAL(offload().dropped, 0);
    close_scene();
}

/* Guards that each handler gets its packets, whatever the length of a Long, with the payload in the
 * record or not, and by any protocol. */
static void test_lengths(void)
{
    static const uint32_t lengths[] = {
        0,      1,          8,          PACKET - 1, PACKET,         PACKET + 1, PACKED - 1,
        PACKED, PACKED + 1, 2 * PACKET, 513,        4 * PACKET + 3, 8192,       LONG};

    for (size_t i = 0; i < COUNT(lengths); i++) {
        check_length(lengths[i], false, 0);
        check_length(lengths[i], false, UINT64_MAX);
        if (lengths[i] > 0 && lengths[i] <= PACKED)
            check_length(lengths[i], true, UINT64_MAX);
    }
}

/* ---- returns --------------------------------------------------------------------------------- */

static const struct {
    uint32_t header, payload, completion; /* plans */
    uint8_t runs[HANDLER_STAGES]; /* runs of the payload handler: 1 on each packet, 2 only on the
                                     first */
    bool all_dropped;
    int status;
    uint32_t event; /* at the owner: enum offload_event, 0: the message itself, NONE: nothing */
} returns[] = {
    {DATA, SUCCESS, SCENE_REPLY, {1, 1, 1}, false, 0, OFFLOAD_ENDED},
    {DATA, SUCCESS, SUCCESS, {1, 1, 1}, false, 0, OFFLOAD_ENDED}, /* the empty reply */
    {DROP, SUCCESS, SCENE_REPLY, {1, 0, 1}, true, 0, OFFLOAD_ENDED},
    {DATA, DROP, SCENE_REPLY, {1, 1, 1}, true, 0, OFFLOAD_ENDED},
    {DATA | HANDLER_PENDING, SUCCESS, SCENE_REPLY, {1, 1, 1}, false, 0, NONE},
    {HANDLER_PROCEED, SUCCESS, SUCCESS, {1, 0, 0}, false, 0, 0},
    {HANDLER_DEFER, SUCCESS, SUCCESS, {1, 0, 0}, false, 0, 0},
    {HANDLER_FAIL, SUCCESS, SUCCESS, {1, 0, 1}, false, -EREMOTEIO, OFFLOAD_FAILED},
    {DATA, HANDLER_FAIL, SUCCESS, {1, 2, 1}, false, -EREMOTEIO, OFFLOAD_FAILED},
    {DATA, SUCCESS, HANDLER_FAIL, {1, 1, 1}, false, -EREMOTEIO, OFFLOAD_FAILED},
    {SCENE_BAD_RETURN, SUCCESS, SUCCESS, {1, 0, 0}, false, -EREMOTEIO, OFFLOAD_FAULT},
    {DATA, SCENE_BAD_RETURN, SUCCESS, {1, 2, 0}, false, -EREMOTEIO, OFFLOAD_FAULT},
};

static void check_return(size_t row, uint32_t length, bool packed)
{
    const struct scene_message *m = &scene.messages[0];
    bool by_client = returns[row].event == 0;
    uint32_t packets = (length + PACKET - 1) / PACKET;

    CU_ASSERT_FATAL(open_scene(row + 1, NULL, 0, ALL, UINT64_MAX));
    CU_ASSERT_EQUAL(
        send(scene_plan(returns[row].header, returns[row].payload, returns[row].completion), true,
             length, packed),
        0);
    scene_finish(&scene);
    for (uint32_t stage = 0; stage < HANDLER_STAGES; stage++) {
        uint32_t runs = returns[row].runs[stage];

        if (stage == HANDLER_PAYLOAD && runs > 0)
            runs = runs == 1 ? packets : 1;
        CU_ASSERT_EQUAL(scene_runs(&scene, 0, stage), runs);
    }
    CU_ASSERT_EQUAL(m->status, returns[row].status);
    CU_ASSERT_EQUAL(m->replies, by_client || returns[row].completion & SCENE_REPLY);
    CU_ASSERT_EQUAL(m->deferred, returns[row].header == HANDLER_DEFER);
    for (uint32_t kind = 0; kind < COUNT(m->events); kind++)
        CU_ASSERT_EQUAL(m->events[kind], kind == returns[row].event);
    if (returns[row].all_dropped)
        CU_ASSERT_EQUAL(offload().dropped, length);
    CU_ASSERT(is_placed(length));
    CU_ASSERT_EQUAL(offload().messages, 1);
    CU_ASSERT_EQUAL(offload().state,
                    returns[row].event == OFFLOAD_FAULT ? OFFLOAD_DISABLED : OFFLOAD_OPEN);
    close_scene();
}

static void test_returns(void)
{
    static const uint32_t lengths[] = {100, PACKED, 4 * PACKET + 3, 8192};

    for (size_t row = 0; row < COUNT(returns); row++)
        for (size_t i = 0; i < COUNT(lengths); i++) {
            check_return(row, lengths[i], false);
            if (lengths[i] <= PACKED)
                check_return(row, lengths[i], true);
        }
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Guards that no step takes more than its bound and one handler, and that a client which is alone
 * is not refused. */
static void test_steps(void)
{
    uint64_t before, most = 0;
    uint32_t number, busy = 0;

    CU_ASSERT_FATAL(open_scene(1, NULL, 0, ALL, 0));
    number = send(scene_plan(DATA, 0, SCENE_REPLY), true, LONG, false);
    for (uint32_t i = 0; i < 10000 && scene.messages[number].replies == 0; i++) {
        before = offload().units;
        scene_turn(&scene);
        busy += offload().units > before;
        most = offload().units - before > most ? offload().units - before : most;
    }
    CU_ASSERT(busy >= 5);
    CU_ASSERT(most <= OFFLOAD_STEP_UNITS + 200);
    CU_ASSERT_EQUAL(peek_flow(scene.world->nodes[0].engine,
                              peek_flow_of(scene.world->nodes[0].engine, scene.remote))
                        .epoch,
                    0);
    CU_ASSERT(scene_got_all(&scene, number, PACKET));
    scene_finish(&scene);
    close_scene();
}

/* ---- Longs that can't end -------------------------------------------------------------------- */

enum { DISABLE, DESTROY, ORIGIN_ENDS, NODE_LOST, ENDS };

/* Guards that a Long which is under way over several steps is cut as a put is: its completion
 * handler runs once, and its event has its first argument. A Long whose record stands in the
 * target's ledger outlives its origin's client, and is not cut. */
static void test_cut(void)
{
    static const int status[ENDS] = {-ESHUTDOWN, -ESHUTDOWN, 0, -ECONNABORTED};

    for (uint32_t how = 0; how < ENDS; how++) {
        const struct scene_message *m;
        uint32_t number;

        CU_ASSERT_FATAL(open_scene(1, NULL, 0, ALL, UINT64_MAX));
        CU_ASSERT_EQUAL(send(scene_plan(DATA, 0, 0), true, PACKET, false), 0);
        scene_finish(&scene);
        number = send(scene_plan(DATA, 0, SCENE_EVENT), true, LONG, false);
        m = &scene.messages[number];
        while (scene_runs(&scene, number, HANDLER_PAYLOAD) < 3 && scene_turn(&scene))
            continue;
        CU_ASSERT(!scene_got_all(&scene, number, PACKET));
        if (how == DISABLE)
            CU_ASSERT_EQUAL(scene_enable(&scene, false), 0);
        if (how == DESTROY)
            CU_ASSERT_EQUAL(scene_destroy(&scene), 0);
        if (how == ORIGIN_ENDS)
            world_client_close(scene.world, 0);
        if (how == NODE_LOST)
            world_link_lost(scene.world, 0, 1);
        scene.silent = how == ORIGIN_ENDS;
        for (uint32_t i = 0; i < 10000 && scene_turn(&scene); i++)
            continue;
        CU_ASSERT_EQUAL(scene_runs(&scene, number, HANDLER_HEADER), 1);
        CU_ASSERT_EQUAL(scene_runs(&scene, number, HANDLER_COMPLETION), 1);
        CU_ASSERT_EQUAL(m->own[HANDLER_COMPLETION], 1);
        CU_ASSERT_EQUAL(m->replies, 0);
        CU_ASSERT_EQUAL(m->status, status[how]);
        CU_ASSERT_EQUAL(scene_got_all(&scene, number, PACKET), how == ORIGIN_ENDS);
        CU_ASSERT_EQUAL(m->events[OFFLOAD_FAILED], how == DISABLE || how == NODE_LOST);
        if (how == DISABLE || how == NODE_LOST)
            CU_ASSERT_EQUAL(offload().dropped,
                            LONG - PACKET * scene_runs(&scene, number, HANDLER_PAYLOAD));
        if (how == DISABLE) {
            CU_ASSERT_EQUAL(scene_enable(&scene, true), 0);
            number = send(scene_plan(DATA, 0, SCENE_REPLY), true, LONG, false);
            scene_finish(&scene);
            CU_ASSERT(scene_got_all(&scene, number, PACKET));
            CU_ASSERT_EQUAL(scene.messages[number].replies, 1);
        }
        close_scene();
    }
}

/* ---- random runs ----------------------------------------------------------------------------- */

static const char *check_long(uint32_t number)
{
    const struct scene_message *m = &scene.messages[number];

    if (scene_runs(&scene, number, HANDLER_HEADER) != 1 ||
        scene_runs(&scene, number, HANDLER_COMPLETION) != 1)
        return "a handler has not run once";
    if (!scene_got_all(&scene, number, PACKET))
        return "a packet has not been handled once";
    if (m->own[HANDLER_COMPLETION] != 1)
        return "a handler's event has not come once";
    if (m->replies != m->wants_reply)
        return "a reply has not come once";
    return m->status == 0 ? NULL : "a wrong status";
}

static uint32_t random_length(struct sim_random *random)
{
    switch (sim_random_below(random, 3)) {
    case 0:
        return (uint32_t)sim_random_below(random, PACKED + 1);
    case 1:
        return PACKET * (uint32_t)sim_random_below(random, 20) +
               (uint32_t)sim_random_below(random, 3);
    default:
        return (uint32_t)sim_random_below(random, LONG);
    }
}

/* Makes one random run. Returns NULL, or what went wrong. Links break and nodes die in the middle
 * of Longs, other work makes handlers wait for turns, and a client that sleeps makes them wait for
 * room. */
static const char *run(uint64_t seed, FILE *trace)
{
    static const uint64_t ordered[] = {0, 4096, UINT64_MAX};
    struct sim_random random = {.state = seed ^ UINT64_C(0x10195)};
    const struct scene_troubles troubles = {.breaks = (uint32_t)sim_random_below(&random, 3),
                                            .deaths = (uint32_t)sim_random_below(&random, 2),
                                            .sleeps = (uint32_t)sim_random_below(&random, 2)};
    uint32_t other = (uint32_t)sim_random_below(&random, 3);

    if (!open_scene(seed, trace, (uint32_t)sim_random_below(&random, 2), ALL,
                    ordered[sim_random_below(&random, 3)]))
        return scene_close(&scene);
    for (uint32_t i = 0; i < 1500 && scene.count < 40 && !scene.world->failed; i++) {
        if (sim_random_below(&random, 10) == 0) {
            bool replies = sim_random_below(&random, 2);
            uint32_t length = random_length(&random);
            bool packed = length > 0 && length <= PACKED && sim_random_below(&random, 2);

            send(scene_plan(DATA, 0, SCENE_EVENT | (replies ? SCENE_REPLY : 0)), replies, length,
                 packed);
        }
        if (sim_random_below(&random, 10) < other && scene.world->nodes[1].alive)
            poke_other_work(engine());
        scene_turn(&scene);
        scene_trouble(&scene, &troubles, &random);
    }
    return scene_conclude(&scene, check_long);
}

static const struct scene_seeds seeds = {"longs", run};

static void test_random_runs(void)
{
    CU_ASSERT_EQUAL(scene_run_seeds(&seeds, 1, RUNS), 0);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"lengths", test_lengths},
        {"returns", test_returns},
        {"a Long over several steps", test_steps},
        {"cut in the middle", test_cut},
        {"exactly once, by seed", test_random_runs},
        CU_TEST_INFO_NULL,
    };

    return scene_main(&seeds, tests, argc, argv);
}
