/*
 * Gets of peers that an offload observes, in the simulated world: the handler runs once for each,
 * also for those without a remote event, and changes nothing for the get; offloads that do not
 * observe, are disabled or have gone; and random runs, in which handlers run exactly once over cut
 * links and deaths. test_region_records has the records of a hostile peer. Thread: one.
 *
 *     test_observed [--seed N | --seeds N]
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/count.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/offload/scene.h"
#include "tests/engine/offload/scene_seeds.h"

enum { ALL = 7, COMPLETION = 4, LENGTH = 100, RUNS = 60, BOUND = 20000 };
enum { OBSERVE = ENGINE_OFFLOAD_OBSERVE };

static struct scene scene;

static void open_scene(uint32_t flags, uint32_t handlers)
{
    const struct world_options options = {
        .seed = 1, .limits = {.spill_max = 1024}, .sim = {.ordered_write_max = UINT64_MAX}};

    CU_ASSERT_FATAL(scene_open_puts(&scene, &options, flags, handlers));
    memset(scene.world->clients[1].contexts[0].memory + SCENE_PLACE, 0x5a, LENGTH);
}

static void close_scene(void)
{
    const char *wrong = scene_close(&scene);

    CU_ASSERT_PTR_NULL(wrong);
    if (wrong)
        printf("\n  %s\n", wrong);
}

static struct offload offload(void)
{
    return peek_offload(scene.world->nodes[1].engine, (uint32_t)scene.offload);
}

static bool has_read(void)
{
    const uint8_t *memory = scene.world->clients[0].contexts[0].memory;

    return memory[0] == 0x5a && memory[LENGTH - 1] == 0x5a;
}

/* ---- returns --------------------------------------------------------------------------------- */

/* One get in each row. The get succeeds with each return of its handler, and has its remote event
 * if it wants one. */
static const struct {
    uint32_t flags, handlers, header;
    uint32_t runs, sent; /* runs, and runs whose sends leave */
    uint32_t event;      /* the owner's event beside the get's own: enum offload_event; 0: none */
} returns[] = {
    {OBSERVE, ALL, HANDLER_PROCEED, 1, 1, 0},
    {OBSERVE, ALL, HANDLER_PROCESS_DATA, 1, 1, 0},
    {OBSERVE, ALL, HANDLER_DROP, 1, 1, 0},
    {OBSERVE, ALL, HANDLER_DEFER, 1, 1, 0},
    {OBSERVE, ALL, HANDLER_DROP | HANDLER_PENDING, 1, 1, 0},
    {OBSERVE | ENGINE_OFFLOAD_QUIET, ALL, HANDLER_PROCEED, 1, 1, 0},
    {OBSERVE | ENGINE_OFFLOAD_PLACED, ALL, HANDLER_PROCEED, 1, 1, 0},
    {OBSERVE, ALL, HANDLER_FAIL, 1, 0, 0},
    {OBSERVE, ALL, SCENE_BAD_RETURN, 1, 0, OFFLOAD_FAULT},
    {OBSERVE | ENGINE_OFFLOAD_KEEP, ALL, SCENE_BAD_RETURN, 1, 0, OFFLOAD_FAULT},
    {OBSERVE | ENGINE_OFFLOAD_QUIET, ALL, SCENE_BAD_RETURN, 1, 0, OFFLOAD_FAULT},
    {OBSERVE, COMPLETION, HANDLER_PROCEED, 0, 0, 0}, /* no header handler */
    {0, ALL, HANDLER_PROCEED, 0, 0, 0},
    {ENGINE_OFFLOAD_PLACED, ALL, HANDLER_PROCEED, 0, 0, 0},
};

static void check_return(size_t row, uint16_t flags, uint32_t length)
{
    const struct scene_message *m = &scene.messages[0];
    uint32_t event = returns[row].event;
    bool kept = returns[row].flags & ENGINE_OFFLOAD_KEEP;

    open_scene(returns[row].flags, returns[row].handlers);
    CU_ASSERT_EQUAL(scene_get(&scene,
                              scene_plan(returns[row].header | SCENE_PUT | SCENE_EVENT, 0, 0),
                              length, flags),
                    0);
    scene_finish(&scene);
    CU_ASSERT_EQUAL(m->ends, 1);
    CU_ASSERT_EQUAL(m->status, 0);
    CU_ASSERT(length == 0 || has_read());
    CU_ASSERT_EQUAL(scene_runs(&scene, 0, HANDLER_HEADER), returns[row].runs);
    CU_ASSERT_EQUAL(scene_runs(&scene, 0, HANDLER_PAYLOAD), 0);
    CU_ASSERT_EQUAL(scene_runs(&scene, 0, HANDLER_COMPLETION), 0);
    CU_ASSERT_EQUAL(m->puts[HANDLER_HEADER], returns[row].sent);
    CU_ASSERT_EQUAL(m->own[HANDLER_HEADER], returns[row].sent);
    CU_ASSERT_EQUAL(m->events[0], !(flags & SUBMIT_NO_RCE));
    for (uint32_t kind = 1; kind < COUNT(m->events); kind++)
        CU_ASSERT_EQUAL(m->events[kind], kind == event);
    CU_ASSERT_EQUAL(offload().messages, returns[row].runs);
    CU_ASSERT_EQUAL(offload().bytes, returns[row].runs * length);
    CU_ASSERT_EQUAL(offload().state, event && !kept ? OFFLOAD_DISABLED : OFFLOAD_OPEN);
    close_scene();
}

static void test_returns(void)
{
    for (size_t row = 0; row < COUNT(returns); row++)
        for (uint32_t length = 0; length <= LENGTH; length += LENGTH) {
            check_return(row, 0, length);
            check_return(row, SUBMIT_NO_RCE, length);
        }
}

/* Guards that the view says what an offload takes, including gets that it observes. */
static void test_shown(void)
{
    static const struct {
        uint32_t flags, takes;
    } rows[] = {
        {0, 1}, {ENGINE_OFFLOAD_PLACED, 2}, {OBSERVE, 3}, {OBSERVE | ENGINE_OFFLOAD_PLACED, 4}};

    for (size_t row = 0; row < COUNT(rows); row++) {
        struct view_offload shown[2] = {0};
        uint32_t from = 0;

        open_scene(rows[row].flags, ALL);
        CU_ASSERT_EQUAL(
            engine_view_offloads(scene.world->nodes[1].engine, &from, shown, COUNT(shown)), 1);
        CU_ASSERT_EQUAL(shown[0].takes, rows[row].takes);
        close_scene();
    }
}

/* ---- states ---------------------------------------------------------------------------------- */

/* Checks that a get ends well, and that this many runs have seen it. */
static void check_get(uint32_t runs)
{
    uint64_t before = offload().messages;
    uint32_t number = scene_get(&scene, HANDLER_PROCEED, LENGTH, SUBMIT_NO_RCE);

    scene_finish(&scene);
    CU_ASSERT_FATAL(number < SCENE_MESSAGES);
    CU_ASSERT_EQUAL(scene.messages[number].status, 0);
    CU_ASSERT_EQUAL(scene_runs(&scene, number, HANDLER_HEADER), runs);
    CU_ASSERT_EQUAL(offload().messages, before + runs);
}

/* Guards that no handler runs on gets from a region whose offload is disabled or has gone. */
static void test_states(void)
{
    open_scene(OBSERVE, ALL);
    check_get(1);
    CU_ASSERT_EQUAL(scene_enable(&scene, false), 0);
    check_get(0);
    CU_ASSERT_EQUAL(scene_enable(&scene, true), 0);
    check_get(1);
    CU_ASSERT_EQUAL(scene_destroy(&scene), 0);
    check_get(0);
    close_scene();
}

static int create(uint32_t flags, enum offload_takes takes)
{
    const struct world_context *x = &scene.world->clients[1].contexts[0];
    const struct engine_offload_info info = {
        .program = (uint32_t)scene.program,
        .takes = takes,
        .index = 1,
        .flags = flags,
        .host = {x->key.slot, x->key.generation, 0, x->length}};

    return engine_offload_create(scene.world->nodes[1].engine, x->session, &info, 0);
}

/* Guards that an offload of messages cannot observe, and that a region which peers have bound gets
 * no offload that observes otherwise, because they know whether its offload observes. */
static void test_refused(void)
{
    open_scene(OBSERVE, ALL);
    CU_ASSERT_EQUAL(scene_destroy(&scene), 0);
    CU_ASSERT_EQUAL(create(OBSERVE, OFFLOAD_MESSAGES), -EINVAL);
    CU_ASSERT_EQUAL(create(0, OFFLOAD_PUTS), -EBUSY);
    CU_ASSERT_EQUAL(create(OBSERVE | ENGINE_OFFLOAD_PLACED, OFFLOAD_PUTS), -EBUSY);
    CU_ASSERT(create(OBSERVE, OFFLOAD_PUTS) >= 0);
    close_scene();
}

/* Guards that gets wait while the owner takes no events and its ring and the spill are full:
 * neither their own event nor that of their handler, or of its fault, is lost. A handler that posts
 * an event runs again when it has found no room. */
static void check_no_room(uint32_t header, uint32_t own, uint32_t faults)
{
    uint32_t count = 0;
    uint64_t again = 0;

    open_scene(OBSERVE | ENGINE_OFFLOAD_KEEP, ALL);
    scene.silent = 1 << 1;
    for (uint32_t i = 0; i < BOUND && count < SCENE_MESSAGES; i++) {
        count += scene_get(&scene, header, 8, 0) < SCENE_MESSAGES;
        scene_turn(&scene);
    }
    CU_ASSERT_FATAL(count > 0 && scene.messages[count - 1].ends == 0);
    scene_finish(&scene);
    for (uint32_t i = 0; i < count; i++) {
        again += scene_reruns(&scene, i, HANDLER_HEADER);
        CU_ASSERT_EQUAL(scene.messages[i].events[0], 1);
        CU_ASSERT_EQUAL(scene.messages[i].own[HANDLER_HEADER], own);
        CU_ASSERT_EQUAL(scene.messages[i].events[OFFLOAD_FAULT], faults);
        CU_ASSERT_EQUAL(scene_runs(&scene, i, HANDLER_HEADER), 1);
    }
    CU_ASSERT_EQUAL(again > 0, own > 0);
    CU_ASSERT_EQUAL(offload().messages, count);
    close_scene();
}

static void test_no_room(void)
{
    check_no_room(HANDLER_PROCEED | SCENE_EVENT, 1, 0);
    check_no_room(HANDLER_PROCEED, 0, 0);
    check_no_room(SCENE_BAD_RETURN, 0, 1);
}

/* ---- random runs ----------------------------------------------------------------------------- */

static uint32_t below(struct sim_random *random, uint32_t limit)
{
    return (uint32_t)sim_random_below(random, limit);
}

/* Sends a get, or now and then a put, whose handlers run in the flow's order. */
static void random_one(struct sim_random *random)
{
    uint64_t plan =
        HANDLER_PROCEED | (below(random, 2) ? SCENE_PUT : 0) | (below(random, 2) ? SCENE_EVENT : 0);
    uint16_t silent = below(random, 2) ? SUBMIT_NO_RCE : 0;

    if (below(random, 4) == 0)
        (void)scene_put(&scene, plan, 1 + below(random, 500), silent, WORLD_MAIN);
    else
        (void)scene_get(&scene, plan, below(random, 5000), silent);
}

static const char *check_one(uint32_t number)
{
    const struct scene_message *m = &scene.messages[number];

    if (scene_runs(&scene, number, HANDLER_HEADER) != 1)
        return "a handler has not run once";
    if (m->puts[HANDLER_HEADER] != (m->plan & SCENE_PUT ? 1 : 0))
        return "a put of a handler's has not come once";
    if (m->own[HANDLER_HEADER] != (m->plan & SCENE_EVENT ? 1 : 0))
        return "a handler's event has not come once";
    return m->status == 0 && m->events[0] <= 1 ? NULL : "a wrong end";
}

/* Makes one random run. Returns NULL, or what went wrong. */
static const char *run(uint64_t seed, FILE *trace)
{
    struct sim_random random = {.state = seed ^ UINT64_C(0x0b5e2e)};
    const struct world_options options = {.seed = seed,
                                          .trace = trace,
                                          .limits = {.ledger_start = 4096,
                                                     .ledger_max = 4096,
                                                     .ledger_bytes = 256 * 1024,
                                                     .packed_max = 256,
                                                     .chunks_max = below(&random, 2) ? 64 : 256,
                                                     .spill_max = 512 + below(&random, 4000)},
                                          .sim = {.ordered_write_max = UINT64_MAX,
                                                  .message_max = 1u << 20,
                                                  .refuse_per_mille = below(&random, 2) * 100,
                                                  .delay_max_ns = 500 + below(&random, 10000)}};
    uint32_t count = 20 + below(&random, 100);
    const struct scene_troubles troubles = {
        .breaks = below(&random, 2) * 3, .deaths = below(&random, 2), .sleeps = below(&random, 3)};

    if (!scene_open_puts(&scene, &options, OBSERVE | below(&random, 2) * ENGINE_OFFLOAD_QUIET, ALL))
        return scene_close(&scene);
    for (uint32_t i = 0; i < 6000 && scene.count < count && !scene.world->failed; i++) {
        for (uint32_t burst = below(&random, 4); burst > 0 && scene.count < count; burst--)
            random_one(&random);
        scene_turn(&scene);
        scene_trouble(&scene, &troubles, &random);
    }
    return scene_conclude(&scene, check_one);
}

static const struct scene_seeds seeds = {"observed", run};

static void test_random_runs(void)
{
    CU_ASSERT_EQUAL(scene_run_seeds(&seeds, 1, RUNS), 0);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"what each return means", test_returns},
        {"shown", test_shown},
        {"disabled, enabled, destroyed", test_states},
        {"what no offload observes", test_refused},
        {"no room for events", test_no_room},
        {"random runs", test_random_runs},
        CU_TEST_INFO_NULL,
    };

    return scene_main(&seeds, tests, argc, argv);
}
