/*
 * Gets of handlers, in the simulated world: what the handler of a get that has completed may
 * return; a get that fails; an offload that is disabled or destroyed, and a client that leaves,
 * while gets are under way; no room for a get, or for its event; a turn that its handler waits for.
 * test_offloads guards that each handler runs exactly once over cut links and restarts, test_crash
 * that it does over deaths. Thread: one.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include "daemon/engine/offload/turns.h"
#include "tests/count.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/offload/scene.h"
#include "tests/suite.h"

enum { ALL = 7, HEADER = 1, ROUNDS = 10000, DEBT = 1 << 20 };
/* The header handler of the message only asks for a get. */
enum { GETS = HANDLER_PROCEED | SCENE_GET };

static struct scene scene;

static void open_small(uint32_t flags, uint32_t handlers, uint32_t chunks)
{
    const struct world_options options = {.seed = 1,
                                          .sim = {.ordered_write_max = UINT64_MAX},
                                          .limits = {.spill_max = 1024, .chunks_max = chunks}};

    CU_ASSERT_FATAL(scene_open(&scene, &options, flags, handlers));
}

static void open_scene(uint32_t flags, uint32_t handlers)
{
    open_small(flags, handlers, 0);
}

static void close_scene(void)
{
    const char *wrong = scene_close(&scene);

    CU_ASSERT_PTR_NULL(wrong);
    if (wrong)
        printf("\n  %s\n", wrong);
}

static struct engine *owner(void)
{
    return scene.world->nodes[1].engine;
}

static struct offload offload(void)
{
    return peek_offload(owner(), (uint32_t)scene.offload);
}

static uint32_t send(uint32_t header, uint32_t got)
{
    return scene_send(&scene, scene_plan(header, 0, 0) | scene_got_plan(got), false, 0);
}

/* The number of gets under way that pwcctl shows. */
static uint64_t shown_gets(void)
{
    struct view_offload row = {0};

    CU_ASSERT_EQUAL(engine_view_offload(owner(), offload().session, (uint32_t)scene.offload, &row),
                    0);
    return row.gets;
}

/* Sends one more message, and makes the gets of all messages stay under way: they cannot end,
 * because the link is cut. */
static uint32_t stuck(uint32_t got)
{
    uint32_t number = send(GETS, got);

    for (uint32_t i = 0; i < ROUNDS && offload().gets <= number; i++)
        scene_turn(&scene);
    CU_ASSERT_EQUAL_FATAL(offload().gets, number + 1);
    world_link_cut(scene.world, 0, 1);
    for (uint32_t i = 0; i < 1000; i++)
        scene_turn(&scene);
    CU_ASSERT_EQUAL(shown_gets(), number + 1);
    CU_ASSERT_EQUAL(scene_gots(&scene, number), 0);
    return number;
}

/* ---- returns --------------------------------------------------------------------------------- */

static const struct {
    uint32_t flags, handlers, got;
    uint32_t runs, event; /* enum offload_event, NONE: no event */
    int status;
} returns[] = {
    {0, ALL, HANDLER_SUCCESS, 1, OFFLOAD_ENDED, 0},
    {0, ALL, HANDLER_PENDING, 1, NONE, 0},
    {0, HEADER, HANDLER_SUCCESS, 0, OFFLOAD_ENDED, 0},
    {ENGINE_OFFLOAD_QUIET, ALL, HANDLER_SUCCESS, 1, NONE, 0},
    {ENGINE_OFFLOAD_QUIET, HEADER, HANDLER_SUCCESS, 0, NONE, 0},
    {0, ALL, HANDLER_FAIL, 1, OFFLOAD_FAILED, -EREMOTEIO},
    {ENGINE_OFFLOAD_QUIET, ALL, HANDLER_FAIL, 1, OFFLOAD_FAILED, -EREMOTEIO},
    {0, ALL, SCENE_BAD_RETURN, 1, OFFLOAD_FAULT, -EREMOTEIO},
    {0, ALL, HANDLER_AGAIN, 1, OFFLOAD_FAULT, -EREMOTEIO}, /* no helper has said -EAGAIN */
};

static void test_returns(void)
{
    for (size_t row = 0; row < COUNT(returns); row++) {
        const struct scene_message *m = &scene.messages[0];
        uint32_t event = returns[row].event;

        open_scene(returns[row].flags, returns[row].handlers);
        send(GETS, returns[row].got | SCENE_PUT);
        scene_finish(&scene);
        CU_ASSERT_EQUAL(m->status, 0);
        CU_ASSERT_EQUAL(scene_gots(&scene, 0), returns[row].runs);
        CU_ASSERT_EQUAL(scene_gots_failed(&scene, 0), 0);
        CU_ASSERT(scene_got_word(&scene, 0));
        for (uint32_t kind = 0; kind < COUNT(m->got_events); kind++)
            CU_ASSERT_EQUAL(m->got_events[kind], kind == event);
        CU_ASSERT_EQUAL(m->got_status, returns[row].status);
        CU_ASSERT_EQUAL(m->puts[SCENE_GOT], returns[row].status == 0 && returns[row].runs);
        CU_ASSERT_EQUAL(offload().gets, 0);
        CU_ASSERT_EQUAL(offload().state, event == OFFLOAD_FAULT ? OFFLOAD_DISABLED : OFFLOAD_OPEN);
        close_scene();
    }
}

/* ---- gets that fail -------------------------------------------------------------------------- */

/* Guards a target whose node is lost: the handler runs on the failed get, and the client gets an
 * event. */
static void test_failed(void)
{
    uint32_t number;

    open_scene(0, ALL);
    number = stuck(SCENE_EVENT);
    world_link_lost(scene.world, 0, 1);
    for (uint32_t i = 0; i < ROUNDS && offload().gets > 0; i++)
        scene_turn(&scene);
    CU_ASSERT_EQUAL(scene_gots(&scene, number), 1);
    CU_ASSERT_EQUAL(scene_gots_failed(&scene, number), 1);
    CU_ASSERT_EQUAL(offload().sends_failed, 1);
    scene_look(&scene);
    CU_ASSERT_EQUAL(scene.messages[number].own[SCENE_GOT], 1);
    CU_ASSERT_EQUAL(scene.messages[number].got_events[OFFLOAD_FAILED], 1);
    CU_ASSERT(scene.messages[number].got_status < 0);
    world_link_restore(scene.world, 0, 1);
    close_scene();
}

/* ---- ends of offloads ------------------------------------------------------------------------ */

/* Guards that a get which is under way ends first, and that its handler runs, before an offload is
 * disabled or destroyed. */
static void test_ends_first(void)
{
    for (uint32_t destroy = 0; destroy < 2; destroy++) {
        uint32_t number;
        int rc = -EAGAIN;

        open_scene(0, ALL);
        number = stuck(SCENE_GET | SCENE_EVENT); /* whose handler sends no get, because an offload
                                                    that ends starts no more */
        for (uint32_t i = 0; i < 100; i++) {
            rc = destroy ? scene_destroy(&scene) : scene_enable(&scene, false);
            CU_ASSERT_EQUAL(rc, -EAGAIN);
            scene_turn(&scene);
        }
        world_link_restore(scene.world, 0, 1);
        for (uint32_t i = 0; i < ROUNDS && rc == -EAGAIN; i++) {
            scene_turn(&scene);
            rc = destroy ? scene_destroy(&scene) : scene_enable(&scene, false);
        }
        CU_ASSERT_EQUAL(rc, 0);
        scene_finish(&scene);
        CU_ASSERT_EQUAL(scene_gots(&scene, number), 1);
        CU_ASSERT_EQUAL(scene.messages[number].own[SCENE_GOT], 1);
        CU_ASSERT(scene_got_word(&scene, number));
        close_scene();
    }
}

/* Guards an offload that the handler of one get disables by a fault: the next get ends without its
 * handler. */
static void test_disabled_by_fault(void)
{
    uint32_t first, second;

    open_scene(0, ALL);
    first = send(GETS, SCENE_BAD_RETURN);
    second = stuck(0);
    world_link_restore(scene.world, 0, 1);
    scene_finish(&scene);
    CU_ASSERT_EQUAL(scene.messages[first].got_events[OFFLOAD_FAULT], 1);
    CU_ASSERT_EQUAL(scene_gots(&scene, second), 0);
    CU_ASSERT_EQUAL(scene.messages[second].got_events[OFFLOAD_FAILED], 1);
    CU_ASSERT_EQUAL(scene.messages[second].got_status, -ESHUTDOWN);
    CU_ASSERT_EQUAL(offload().state, OFFLOAD_DISABLED);
    close_scene();
}

/* Guards that the memory of a client that leaves stays until the fabric no longer writes to it. */
static void test_client_leaves(void)
{
    open_scene(0, ALL);
    stuck(0);
    world_client_close(scene.world, 1);
    for (uint32_t i = 0; i < 100; i++)
        world_round(scene.world);
    world_link_restore(scene.world, 0, 1);
    close_scene();
}

/* ---- without room ---------------------------------------------------------------------------- */

/* Guards that handlers of gets wait for room for their events while the owner takes none, and still
 * run once. */
static void test_owner_sleeps(void)
{
    open_scene(0, ALL);
    for (uint32_t i = 0; i < 30 * ROUNDS && scene.count < SCENE_MESSAGES; i++) {
        scene.silent = i < 3000 ? 1u << 1 : 0;
        send(HANDLER_DROP | HANDLER_PENDING | SCENE_GET, scene.count % 2 ? SCENE_EVENT : 0);
        scene_turn(&scene);
    }
    scene_finish(&scene);
    CU_ASSERT_EQUAL(scene.count, SCENE_MESSAGES);
    for (uint32_t i = 0; i < scene.count; i++) {
        CU_ASSERT_EQUAL(scene_gots(&scene, i), 1);
        CU_ASSERT_EQUAL(scene.messages[i].own[SCENE_GOT], i % 2);
        CU_ASSERT_EQUAL(scene.messages[i].got_events[OFFLOAD_ENDED], 1);
    }
    close_scene();
}

/* Guards that handlers of gets whose puts find no room, while the target takes no events, say AGAIN
 * only now and then. */
static void test_again(void)
{
    uint64_t again = 0;

    open_small(ENGINE_OFFLOAD_QUIET, ALL, 16);
    scene.silent = 1u << 2;
    for (uint32_t i = 0; i < 20000 && scene.count < SCENE_MESSAGES; i++) {
        send(GETS | SCENE_PUT, SCENE_PUT);
        scene_turn(&scene);
        if (i > 2000)
            scene.silent = 0;
    }
    scene_finish(&scene);
    for (uint32_t i = 0; i < scene.count; i++) {
        CU_ASSERT_EQUAL(scene_gots(&scene, i), 1);
        CU_ASSERT_EQUAL(scene.messages[i].puts[SCENE_GOT], 1);
        again += scene_got_reruns(&scene, i);
    }
    CU_ASSERT(again > 0 && again < 500);
    close_scene();
}

/* Guards that the destruction of an offload does not wait for room that only its caller could make.
 */
static void test_destroyed_without_room(void)
{
    for (uint32_t quiet = 0; quiet < 2; quiet++) {
        int rc = -EAGAIN;

        open_scene(quiet ? ENGINE_OFFLOAD_QUIET : 0, ALL);
        scene.silent = 1u << 1;
        for (uint32_t i = 0; i < ROUNDS && scene.count < SCENE_MESSAGES; i++) {
            send(GETS | HANDLER_PENDING, SCENE_EVENT);
            scene_turn(&scene);
        }
        CU_ASSERT(offload().gets > 0);
        for (uint32_t i = 0; i < ROUNDS && rc == -EAGAIN; i++) {
            rc = scene_destroy(&scene);
            scene_turn(&scene);
        }
        CU_ASSERT_EQUAL(rc, 0);
        scene_finish(&scene);
        close_scene();
    }
}

/* Guards the quota of gets: a client's own entries are available whatever others have; of the rest
 * a user may take half. */
static void test_quota(void)
{
    uint32_t session, client, shared;

    open_scene(0, ALL);
    session = scene.world->clients[1].contexts[0].session;
    client = scene.world->clients[1].handle;
    shared = GETS_SHARED;
    CU_ASSERT_EQUAL(peek_gets_room(owner(), session), GETS_OWN);
    poke_gets(owner(), client, 1);
    CU_ASSERT_EQUAL(peek_gets_room(owner(), session), (shared - 1) / 2);
    poke_gets(owner(), client, shared - 1);
    CU_ASSERT_EQUAL(peek_gets_room(owner(), session), 0);
    poke_gets(owner(), client, shared - 2);
    CU_ASSERT_EQUAL(peek_gets_room(owner(), session), 1);
    poke_gets(owner(), client, GETS_OWN - 2);
    poke_unused(owner(), TABLE_GETS,
                GETS_OWN * scene.world->nodes[1].config.clients_max + GETS_OWN + 1);
    CU_ASSERT_EQUAL(peek_gets_room(owner(), session), 2);
    poke_gets(owner(), client, GETS_OWN - 1);
    poke_unused(owner(), TABLE_GETS, 0);
    CU_ASSERT_EQUAL(peek_gets_room(owner(), session), 1);
    poke_gets(owner(), client, GETS_OWN);
    CU_ASSERT_EQUAL(peek_gets_room(owner(), session), 0);
    /* The handler waits until there is room again. */
    send(GETS, 0);
    for (uint32_t i = 0; i < 1000; i++)
        scene_turn(&scene);
    CU_ASSERT_EQUAL(scene_runs(&scene, 0, HANDLER_HEADER), 1);
    CU_ASSERT_EQUAL(offload().gets, 0);
    poke_unused(owner(), TABLE_GETS, gets_size(&scene.world->nodes[1].config));
    poke_gets(owner(), client, 0);
    scene_finish(&scene);
    CU_ASSERT(scene_reruns(&scene, 0, HANDLER_HEADER) > 0);
    CU_ASSERT_EQUAL(scene_gots(&scene, 0), 1);
    close_scene();
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* Guards that the handler of a get waits for a turn while its client is in debt, and runs when it
 * has one. */
static void test_turn(void)
{
    uint32_t number;
    uint64_t begun;

    open_scene(0, ALL);
    number = stuck(0);
    begun = sim_now(scene.world->sim);
    poke_other_work(owner());
    poke_handler_debt(owner(), scene.world->clients[1].handle, DEBT);
    world_link_restore(scene.world, 0, 1);
    for (uint32_t i = 0; i < ROUNDS && scene_gots(&scene, number) == 0; i++) {
        poke_other_work(owner());
        scene_turn(&scene);
    }
    /* The debt is paid off by a quarter of the time. */
    CU_ASSERT(sim_now(scene.world->sim) - begun > DEBT * HANDLER_UNIT_NS * 2);
    CU_ASSERT_EQUAL(scene_gots(&scene, number), 1);
    scene_finish(&scene);
    close_scene();
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"what each return means", test_returns},
        {"a get that fails", test_failed},
        {"disabled and destroyed when gets have ended", test_ends_first},
        {"a fault meanwhile", test_disabled_by_fault},
        {"the client leaves", test_client_leaves},
        {"the owner sleeps", test_owner_sleeps},
        {"no room to send", test_again},
        {"destroyed without room", test_destroyed_without_room},
        {"quota", test_quota},
        {"a turn", test_turn},
        CU_TEST_INFO_NULL,
    };

    return suite_run("gets of handlers", tests);
}
