/*
 * Offloads in the simulated world: what each return of a handler means for the message, its origin
 * and its client; what handlers send; faults; and that every handler runs exactly once, however
 * links break, daemons are restarted between two steps, and messages wait for their turn.
 *
 *     test_offloads                              the cases, and 200 random runs
 *     test_offloads --seeds N [--first S]        random runs alone
 *     test_offloads --seed S [--trace]           one of them again
 *
 * Thread: one.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/handlers/run.h"
#include "tests/count.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/offload/scene.h"
#include "tests/engine/offload/scene_seeds.h"

#define RUNS 200u

enum { ALL = 7, HEADER = 1, PAYLOAD = 2, COMPLETION = 4 };

static struct scene scene;

static void open_scene(uint64_t seed, uint32_t flags, uint32_t handlers)
{
    const struct world_options options = {.seed = seed, .sim = {.ordered_write_max = UINT64_MAX}};

    (void)scene_open(&scene, &options, flags, handlers);
}

static void close_scene(void)
{
    const char *wrong = scene_close(&scene);

    CU_ASSERT_PTR_NULL(wrong);
    if (wrong)
        printf("\n  %s\n", wrong);
}

static void finish(void)
{
    scene_finish(&scene);
}

static const struct engine *owner(void)
{
    return scene.world->nodes[1].engine;
}

static struct offload offload(void)
{
    return peek_offload(owner(), (uint32_t)scene.offload);
}

/* ---- returns --------------------------------------------------------------------------------- */

enum { SUCCESS = HANDLER_SUCCESS, DROP = HANDLER_DROP, DATA = HANDLER_PROCESS_DATA };

/* One message in each row, and the results that must follow. */
static const struct {
    uint32_t flags, handlers;
    uint32_t header, payload, completion; /* plans */
    uint8_t runs[HANDLER_STAGES];
    int status;
    uint32_t event; /* at the owner: enum offload_event, 0: the message itself, NONE: nothing */
} returns[] = {
    {0, ALL, DATA, SUCCESS, SUCCESS, {1, 1, 1}, 0, OFFLOAD_ENDED},
    {0, ALL, DROP, SUCCESS, SUCCESS, {1, 0, 1}, 0, OFFLOAD_ENDED},
    {0, ALL, DATA, DROP, SUCCESS, {1, 1, 1}, 0, OFFLOAD_ENDED},
    {0, ALL, HANDLER_PROCEED, SUCCESS, SUCCESS, {1, 0, 0}, 0, 0},
    {0, ALL, HANDLER_DEFER, SUCCESS, SUCCESS, {1, 0, 0}, 0, 0},
    {0, ALL, DATA | HANDLER_PENDING, SUCCESS, SUCCESS, {1, 1, 1}, 0, NONE},
    {0, ALL, DROP | HANDLER_PENDING, SUCCESS, SUCCESS, {1, 0, 1}, 0, NONE},
    {0, ALL, DATA, SUCCESS, HANDLER_PENDING, {1, 1, 1}, 0, NONE},
    {ENGINE_OFFLOAD_QUIET, ALL, DATA, SUCCESS, SUCCESS, {1, 1, 1}, 0, NONE},
    {ENGINE_OFFLOAD_QUIET, ALL, HANDLER_PROCEED, SUCCESS, SUCCESS, {1, 0, 0}, 0, 0},
    {0, ALL, HANDLER_FAIL, SUCCESS, SUCCESS, {1, 0, 1}, -EREMOTEIO, OFFLOAD_FAILED},
    {0, ALL, DATA, HANDLER_FAIL, SUCCESS, {1, 1, 1}, -EREMOTEIO, OFFLOAD_FAILED},
    {0, ALL, DATA, SUCCESS, HANDLER_FAIL, {1, 1, 1}, -EREMOTEIO, OFFLOAD_FAILED},
    {ENGINE_OFFLOAD_QUIET, ALL, HANDLER_FAIL, 0, 0, {1, 0, 1}, -EREMOTEIO, OFFLOAD_FAILED},
    /* handlers that are missing */
    {0, PAYLOAD | COMPLETION, DATA, SUCCESS, SUCCESS, {0, 1, 1}, 0, OFFLOAD_ENDED},
    {0, HEADER, DATA, SUCCESS, SUCCESS, {1, 0, 0}, 0, OFFLOAD_ENDED},
    {0, COMPLETION, DATA, SUCCESS, SUCCESS, {0, 0, 1}, 0, OFFLOAD_ENDED},
    {0, HEADER | COMPLETION, DATA, SUCCESS, SUCCESS, {1, 0, 1}, 0, OFFLOAD_ENDED},
    /* faults: no handler runs after a fault; AGAIN is a fault unless a helper gave -EAGAIN */
    {0, ALL, SCENE_BAD_RETURN, SUCCESS, SUCCESS, {1, 0, 0}, -EREMOTEIO, OFFLOAD_FAULT},
    {0, ALL, DATA, SCENE_BAD_RETURN, SUCCESS, {1, 1, 0}, -EREMOTEIO, OFFLOAD_FAULT},
    {0, ALL, DATA, SUCCESS, SCENE_BAD_RETURN, {1, 1, 1}, -EREMOTEIO, OFFLOAD_FAULT},
    {0, ALL, HANDLER_AGAIN, SUCCESS, SUCCESS, {1, 0, 0}, -EREMOTEIO, OFFLOAD_FAULT},
    {ENGINE_OFFLOAD_QUIET, ALL, HANDLER_AGAIN, 0, 0, {1, 0, 0}, -EREMOTEIO, OFFLOAD_FAULT},
};

static void check_return(size_t row, bool wants_reply, uint32_t payload)
{
    const struct scene_message *m = &scene.messages[0];
    uint32_t event = returns[row].event;

    open_scene(row + 1, returns[row].flags, returns[row].handlers);
    CU_ASSERT_EQUAL(
        scene_send(&scene,
                   scene_plan(returns[row].header, returns[row].payload, returns[row].completion),
                   wants_reply, payload),
        0);
    finish();
    for (uint32_t stage = 0; stage < HANDLER_STAGES; stage++)
        CU_ASSERT_EQUAL(scene_runs(&scene, 0, stage), returns[row].runs[stage]);
    CU_ASSERT_EQUAL(m->status, returns[row].status);
    for (uint32_t kind = 0; kind < COUNT(m->events); kind++)
        CU_ASSERT_EQUAL(m->events[kind], kind == event);
    CU_ASSERT_EQUAL(m->deferred, returns[row].header == HANDLER_DEFER);
    CU_ASSERT_EQUAL(m->replies, wants_reply && event == 0); /* the client's own handler replies */
    CU_ASSERT_EQUAL(offload().messages, 1);
    CU_ASSERT_EQUAL(offload().bytes, payload);
    CU_ASSERT_EQUAL(offload().state, event == OFFLOAD_FAULT ? OFFLOAD_DISABLED : OFFLOAD_OPEN);
    close_scene();
}

static void test_returns(void)
{
    static const uint32_t payloads[] = {0, 1, 1000};

    for (size_t row = 0; row < COUNT(returns); row++)
        for (size_t i = 0; i < 2 * COUNT(payloads); i++)
            check_return(row, i % 2, payloads[i / 2]);
}

/* ---- sends of handlers ----------------------------------------------------------------------- */

#define SENDS (SCENE_PUT | SCENE_MESSAGE | SCENE_EVENT)

static void test_sends(void)
{
    const struct scene_message *m = scene.messages;

    open_scene(1, 0, ALL);
    scene_send(&scene, scene_plan(DATA | SENDS, SENDS, SENDS), false, 10);
    scene_send(&scene, scene_plan(DATA | SCENE_REPLY, SUCCESS, SUCCESS), true, 0);
    scene_send(&scene, scene_plan(DATA, SUCCESS, SCENE_REPLY), true, 0);
    /* The sends of a handler that fails do not leave. */
    scene_send(&scene, scene_plan(HANDLER_FAIL | SENDS | SCENE_REPLY, SUCCESS, SENDS), true, 0);
    finish();
    /* A header handler replies, and passes the message to the client's handler, which may not reply
     * any more. */
    scene_send(&scene, scene_plan(HANDLER_PROCEED | SCENE_REPLY, SUCCESS, SUCCESS), true, 0);
    /* A request that a handler has answered does not fail any more. */
    scene_send(&scene, scene_plan(DATA | SCENE_REPLY, HANDLER_FAIL, SUCCESS), true, 0);
    finish();
    for (uint32_t stage = 0; stage < HANDLER_STAGES; stage++) {
        CU_ASSERT_EQUAL(m[0].puts[stage], 1);
        CU_ASSERT_EQUAL(m[0].own[stage], 1);
        CU_ASSERT_EQUAL(m[3].own[stage], stage == HANDLER_COMPLETION);
        CU_ASSERT_EQUAL(m[3].puts[stage], stage == HANDLER_COMPLETION);
    }
    CU_ASSERT_EQUAL(m[0].messages, 3);
    CU_ASSERT_EQUAL(m[1].replies, 1);
    CU_ASSERT_EQUAL(m[2].replies, 1);
    CU_ASSERT_EQUAL(m[3].replies, 0);
    CU_ASSERT_EQUAL(m[3].status, -EREMOTEIO);
    CU_ASSERT_EQUAL(m[4].replies, 1);
    CU_ASSERT_EQUAL(m[4].events[0], 1);
    CU_ASSERT_EQUAL(m[5].replies, 1);
    CU_ASSERT_EQUAL(m[5].status, 0);
    CU_ASSERT_EQUAL(m[5].events[OFFLOAD_FAILED], 1);
    CU_ASSERT_EQUAL(offload().sends, 6 + 4 + 2);
    close_scene();
}

/* Guards a put from the region, whose bytes are not copied, and an atomic on a word of the target.
 */
static void test_sends_from_host(void)
{
    const struct scene_message *m = scene.messages;
    uint32_t both = SCENE_PUT_HOST | SCENE_ADD;

    /* No header handler runs, so that the first word of the region stays 0. */
    open_scene(1, 0, PAYLOAD | COMPLETION);
    scene_send(&scene, scene_plan(0, both, both), false, 10);
    scene_send(&scene, scene_plan(0, HANDLER_FAIL | both, SUCCESS), false, 10);
    finish();
    for (uint32_t stage = HANDLER_PAYLOAD; stage < HANDLER_STAGES; stage++) {
        CU_ASSERT_EQUAL(m[0].host_puts[stage], 1);
        CU_ASSERT_EQUAL(m[1].host_puts[stage], 0);
    }
    CU_ASSERT_EQUAL(scene_target_word(&scene, 0), 1);
    CU_ASSERT_EQUAL(scene_target_word(&scene, 8), 0);
    CU_ASSERT_EQUAL(scene_target_word(&scene, SCENE_TALLY), 2);
    CU_ASSERT_EQUAL(offload().sends, 4);
    CU_ASSERT_EQUAL(offload().sends_failed, 0);
    close_scene();
}

/* ---- states ---------------------------------------------------------------------------------- */

static int status_of(uint64_t plan)
{
    uint32_t number = scene_send(&scene, plan, true, 0);

    finish();
    return number < SCENE_MESSAGES ? scene.messages[number].status : -EAGAIN;
}

/* Guards that a fault disables the offload until its client enables it again; with
 * ENGINE_OFFLOAD_KEEP the offload continues. */
static void test_faults(void)
{
    uint64_t good = scene_plan(DATA, SUCCESS, SUCCESS);
    uint64_t bad = scene_plan(SCENE_BAD_RETURN, SUCCESS, SUCCESS);

    open_scene(1, 0, ALL);
    CU_ASSERT_EQUAL(status_of(bad), -EREMOTEIO);
    CU_ASSERT_EQUAL(offload().fault, RUN_BAD_RETURN);
    CU_ASSERT_EQUAL(offload().faults, 1);
    CU_ASSERT_EQUAL(status_of(good), -ESHUTDOWN);
    CU_ASSERT_EQUAL(scene_enable(&scene, true), 0);
    CU_ASSERT_EQUAL(status_of(good), 0);
    CU_ASSERT_EQUAL(scene_enable(&scene, false), 0);
    CU_ASSERT_EQUAL(status_of(good), -ESHUTDOWN);
    close_scene();
    open_scene(1, ENGINE_OFFLOAD_KEEP, ALL);
    CU_ASSERT_EQUAL(status_of(bad), -EREMOTEIO);
    CU_ASSERT_EQUAL(status_of(good), 0);
    close_scene();
}

/* Offloads of the owner's context that count in its quota after a restart. */
static uint32_t counted(uint32_t session)
{
    struct engine_session_found found;

    return engine_session_find(owner(), session, &found) == 0 ? found.offloads : UINT32_MAX;
}

/* Guards that after an offload is destroyed, the client's own handler gets messages of the index
 * again. */
static void test_destroyed(void)
{
    uint32_t session;

    open_scene(1, 0, ALL);
    session = offload().session;
    CU_ASSERT_EQUAL(counted(session), 1);
    CU_ASSERT_EQUAL(scene_destroy(&scene), 0);
    CU_ASSERT_EQUAL(counted(session), 0);
    CU_ASSERT_EQUAL(scene_destroy(&scene), -EINVAL);
    CU_ASSERT_EQUAL(scene_enable(&scene, true), -EINVAL);
    CU_ASSERT_EQUAL(status_of(scene_plan(DATA, SUCCESS, SUCCESS)), 0);
    CU_ASSERT_EQUAL(scene.messages[0].events[0], 1);
    CU_ASSERT_EQUAL(scene_runs(&scene, 0, HANDLER_HEADER), 0);
    close_scene();
}

/* ---- refusals -------------------------------------------------------------------------------- */

static int create(const struct engine_offload_info *info)
{
    return engine_offload_create(scene.world->nodes[1].engine,
                                 scene.world->clients[1].contexts[0].session, info, 0);
}

static void test_refused(void)
{
    const struct engine_key *key;
    struct engine_offload_info good, info;
    uint32_t target = UINT32_MAX;
    struct engine *e;

    open_scene(1, 0, ALL);
    e = scene.world->nodes[1].engine;
    key = &scene.world->clients[1].contexts[0].key;
    good = (struct engine_offload_info){.program = (uint32_t)scene.program,
                                        .index = SCENE_INDEX + 1,
                                        .host = {key->slot, key->generation, 64, 64}};
    info = good, info.program++;
    CU_ASSERT_EQUAL(create(&info), -EINVAL);
    info = good, info.index = SESSION_HANDLERS;
    CU_ASSERT_EQUAL(create(&info), -EINVAL);
    info = good, info.flags = ENGINE_OFFLOAD_FLAGS + 1;
    CU_ASSERT_EQUAL(create(&info), -EINVAL);
    info = good, info.targets = &target, info.target_count = 1;
    CU_ASSERT_EQUAL(create(&info), -EINVAL);
    info = good, info.target_count = ENGINE_OFFLOAD_TARGETS + 1;
    CU_ASSERT_EQUAL(create(&info), -EINVAL);
    info = good, info.host.offset = 32;
    CU_ASSERT_EQUAL(create(&info), -EINVAL);
    info = good, info.host.length = 64u << 10;
    CU_ASSERT_EQUAL(create(&info), -ERANGE);
    info = good, info.state = good.host, info.state.generation++;
    CU_ASSERT_EQUAL(create(&info), -ERANGE);
    info = good, info.index = SCENE_INDEX;
    CU_ASSERT_EQUAL(create(&info), -EADDRINUSE);
    CU_ASSERT(create(&good) >= 0);
    CU_ASSERT_EQUAL(
        engine_program_unload(e, scene.world->clients[1].handle, (uint32_t)scene.program), -EBUSY);
    CU_ASSERT_EQUAL(
        engine_region_close(e, scene.world->clients[1].handle, key->slot, key->generation, 1),
        -EBUSY);
    close_scene();
}

/* Guards that a client which a neighbour has bound, and may reach without the engine, can have no
 * offload; if there is an offload first, the bind gives no such way. */
static void test_neighbours(void)
{
    for (int first = 0; first < 2; first++) {
        const struct world_options options = {.seed = 1, .nodes = 1};
        struct engine_neighbour end;
        struct world *w;
        int request;

        CU_ASSERT_EQUAL_FATAL(world_open(&options, &w), 0);
        for (uint32_t i = 0; i < 2; i++)
            world_client_open(w, 0, i, 1);
        world_settle(w, 10000);
        CU_ASSERT_EQUAL(first ? scene_offload(w, 0) >= 0 : 0, first);
        request = world_bind(w, 1, 0, 0, 0, NULL);
        CU_ASSERT_EQUAL(world_await(w, request), 0);
        CU_ASSERT_EQUAL(
            engine_neighbour(w->nodes[0].engine, 0, &(struct engine_way){.inflow = 0}, &end),
            first ? -ENOENT : 0);
        if (!first)
            CU_ASSERT_EQUAL(scene_offload(w, 0), -EBUSY);
        world_request_free(w, request);
        world_leave(w);
        CU_ASSERT_FALSE(w->failed);
        world_close(w);
    }
}

/* Guards that a request that a handler has answered does not fail even if the client has no handler
 * for it: the origin expects one answer, and would take a second for the answer to its next
 * request. */
static void test_answered_without_handler(void)
{
    open_scene(1, 0, ALL);
    message_handlers(&scene.client[1], false);
    scene_send(&scene, scene_plan(HANDLER_PROCEED | SCENE_REPLY, SUCCESS, SUCCESS), true, 0);
    scene_send(&scene, scene_plan(DATA | SCENE_REPLY, SUCCESS, SUCCESS), true, 0);
    finish();
    for (uint32_t i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(scene.messages[i].replies, 1);
        CU_ASSERT_EQUAL(scene.messages[i].status, 0);
    }
    message_handlers(&scene.client[1], true);
    close_scene();
}

static int create_at(struct world *w, uint32_t client, uint32_t context,
                     const struct engine_offload_info *info)
{
    const struct world_client *c = &w->clients[client];

    return engine_offload_create(w->nodes[c->node].engine, c->contexts[context].session, info, 0);
}

/* Guards that an offload of the client's other context does not hide that a neighbour has bound
 * this one. */
static void test_second_context(void)
{
    const struct world_options options = {.seed = 1, .nodes = 1};
    struct engine_offload_info info = {.index = SCENE_INDEX};
    struct world *w;
    int request;

    CU_ASSERT_EQUAL_FATAL(world_open(&options, &w), 0);
    world_client_open(w, 0, 0, 2);
    world_client_open(w, 0, 1, 1);
    world_settle(w, 10000);
    request = world_bind(w, 1, 0, 0, 1, NULL);
    CU_ASSERT_EQUAL(world_await(w, request), 0);
    CU_ASSERT(scene_offload(w, 0) >= 0);
    info.program = scene_program(w, 0);
    CU_ASSERT_EQUAL(create_at(w, 0, 1, &info), -EBUSY);
    world_request_free(w, request);
    world_leave(w);
    CU_ASSERT_FALSE(w->failed);
    world_close(w);
}

/* Guards that an offload whose targets are not bound yet cannot be destroyed, because the request
 * that created it still waits for its only answer. When its context is closed, the offload is given
 * up, and the request gets that answer once. */
static void test_given_up(void)
{
    const struct world_options options = {.seed = 1, .nodes = 2};
    struct engine_offload_info info = {.index = SCENE_INDEX, .target_count = 1};
    struct world *w;
    int request, offload;

    CU_ASSERT_EQUAL_FATAL(world_open(&options, &w), 0);
    for (uint32_t i = 0; i < 2; i++)
        world_client_open(w, i, i, 1);
    world_settle(w, 10000);
    request = world_bind(w, 1, 0, 0, 0, NULL);
    CU_ASSERT_EQUAL(world_await(w, request), 0);
    info.program = scene_program(w, 1);
    info.targets = &w->requests[request].handle;
    offload = create_at(w, 1, 0, &info);
    CU_ASSERT(offload >= 0);
    CU_ASSERT_EQUAL(engine_offload_destroy(w->nodes[1].engine, w->clients[1].contexts[0].session,
                                           (uint32_t)offload),
                    -EINVAL);
    CU_ASSERT_EQUAL(w->offloads_given_up, 0);
    world_context_close(w, 1, 0);
    world_settle(w, 10000);
    CU_ASSERT_EQUAL(w->offloads_given_up, 1);
    world_request_free(w, request);
    world_leave(w);
    CU_ASSERT_FALSE(w->failed);
    world_close(w);
}

/* ---- many targets ---------------------------------------------------------------------------- */

/* Guards that each target has a remote of its own, that handlers reach the last target, that each
 * run pays for the search among them, and that the end of the offload gives all remotes back. */
static void test_many_targets(void)
{
    static const uint32_t counts[] = {1, 15, 16, 17, 64, 65, ENGINE_OFFLOAD_TARGETS};
    uint64_t least = 0; /* units of the message with one target, where the search is free */

    for (size_t row = 0; row < sizeof(counts) / sizeof(counts[0]); row++) {
        const struct world_options options = {.seed = row + 1,
                                              .limits = {.remotes_max = 1300, .chunks_max = 512}};
        bool *seen = calloc(options.limits.remotes_max, sizeof(*seen));

        CU_ASSERT_PTR_NOT_NULL_FATAL(seen);
        if (!scene_open_many(&scene, &options, ALL, counts[row])) {
            printf("\n  %u targets: %s\n", counts[row], scene.world->failure);
            CU_FAIL_FATAL("no scene");
        }
        CU_ASSERT_EQUAL(offload().targets, counts[row]);
        for (uint32_t i = 0; i < counts[row]; i++) {
            uint32_t remote = peek_target(owner(), (uint32_t)scene.offload, i);

            CU_ASSERT_FATAL(remote < options.limits.remotes_max && !seen[remote]);
            CU_ASSERT_EQUAL(peek_remote(owner(), remote).state, REMOTE_READY);
            seen[remote] = true;
        }
        scene_send(&scene, scene_plan(DATA | SCENE_PUT, SCENE_MESSAGE, SCENE_PUT), false, 40);
        finish();
        CU_ASSERT_EQUAL(scene.messages[0].status, 0);
        CU_ASSERT_EQUAL(scene.messages[0].puts[0], 1);
        CU_ASSERT_EQUAL(scene.messages[0].puts[2], 1);
        CU_ASSERT_EQUAL(scene.messages[0].messages, 1);
        least = row == 0 ? offload().units : least;
        CU_ASSERT_EQUAL(offload().units, least + 3 * (counts[row] / 16)); /* three handlers */
        CU_ASSERT_EQUAL(engine_offload_destroy(scene.world->nodes[1].engine,
                                               scene.world->clients[1].contexts[0].session,
                                               (uint32_t)scene.offload),
                        0);
        world_settle(scene.world, 10000);
        CU_ASSERT_EQUAL(peek_census(owner()).remotes, 1); /* the client's own */
        close_scene();
        free(seen);
    }
}

/* Guards that an offload whose targets cannot all be bound ends with the reason, and gives back the
 * remotes that were bound. */
static void check_unbindable(const struct world_options *options, bool unbind, int error)
{
    struct engine_offload_info info = {.index = SCENE_INDEX, .target_count = 64};
    uint32_t targets[64], handle;
    struct world *w;
    int request;

    CU_ASSERT_EQUAL_FATAL(world_open(options, &w), 0);
    for (uint32_t i = 0; i < 2; i++)
        world_client_open(w, i, i, 1);
    world_settle(w, 10000);
    request = world_bind(w, 1, 0, 0, 0, NULL);
    CU_ASSERT_EQUAL(world_await(w, request), 0);
    handle = w->requests[request].handle;
    for (uint32_t i = 0; i < 64; i++)
        targets[i] = handle;
    info.program = scene_program(w, 1);
    info.targets = targets;
    w->offload_error = error;
    CU_ASSERT(create_at(w, 1, 0, &info) >= 0);
    if (unbind)
        CU_ASSERT_EQUAL(
            engine_unbind(w->nodes[1].engine, w->clients[1].contexts[0].session, handle), 0);
    world_settle(w, 10000);
    CU_ASSERT_EQUAL(w->offloads_given_up, 1);
    CU_ASSERT_EQUAL(
        peek_offload_of(w->nodes[1].engine, w->clients[1].contexts[0].session, SCENE_INDEX), -1);
    CU_ASSERT_EQUAL(peek_census(w->nodes[1].engine).remotes, !unbind);
    world_request_free(w, request);
    world_leave(w);
    CU_ASSERT_FALSE(w->failed);
    world_close(w);
}

static void test_unbindable(void)
{
    const struct world_options options = {.seed = 1, .nodes = 2},
                               few = {.seed = 1, .nodes = 2, .limits = {.binds_client = 40}};

    check_unbindable(&few, false, -EDQUOT);
    check_unbindable(&options, true, -EHOSTUNREACH); /* the client has let go of its remote */
}

/* Makes rounds until nothing moves. Returns how many offloads of the engine have ended in one round
 * at most. */
static uint32_t most_ends(struct world *w, const struct engine *e)
{
    uint32_t most = 0, before = peek_census(e).offloads;

    while (world_round(w)) {
        uint32_t now = peek_census(e).offloads;

        most = now < before && before - now > most ? before - now : most;
        before = now;
    }
    return most;
}

/* Guards that a step ends no second offload with 1,024 targets, neither when their context is
 * closed, nor when their targets cannot be bound; and that all remotes are given back. */
static void test_ends_of_many_targets(void)
{
    enum { OFFLOADS = 3 };
    static const uint32_t quotas[] = {0, 1600}; /* all are bound; none is */

    for (size_t row = 0; row < COUNT(quotas); row++) {
        const struct world_options options = {
            .seed = row + 1,
            .nodes = 2,
            .limits = {.remotes_max = 4000, .chunks_max = 512, .binds_client = quotas[row]}};
        struct engine_offload_info info = {.target_count = ENGINE_OFFLOAD_TARGETS};
        uint32_t *targets = calloc(ENGINE_OFFLOAD_TARGETS, sizeof(*targets)), all;
        const struct engine *e;
        struct world *w;
        int request;

        CU_ASSERT_PTR_NOT_NULL_FATAL(targets);
        CU_ASSERT_EQUAL_FATAL(world_open(&options, &w), 0);
        e = w->nodes[1].engine;
        for (uint32_t i = 0; i < 2; i++)
            world_client_open(w, i, i, 1);
        world_settle(w, 10000);
        request = world_bind(w, 1, 0, 0, 0, NULL);
        CU_ASSERT_EQUAL(world_await(w, request), 0);
        for (uint32_t i = 0; i < ENGINE_OFFLOAD_TARGETS; i++)
            targets[i] = w->requests[request].handle;
        info.program = scene_program(w, 1);
        info.targets = targets;
        w->offload_error = quotas[row] > 0 ? -EDQUOT : 0;
        for (info.index = 0; info.index < OFFLOADS; info.index++)
            CU_ASSERT(create_at(w, 1, 0, &info) >= 0);
        CU_ASSERT_EQUAL(most_ends(w, e), quotas[row] > 0);
        CU_ASSERT_EQUAL(w->offloads_given_up, quotas[row] > 0 ? OFFLOADS : 0);
        all = quotas[row] > 0 ? 0 : OFFLOADS * ENGINE_OFFLOAD_TARGETS;
        CU_ASSERT_EQUAL(peek_census(e).remotes, all + 1); /* with the client's own */
        world_context_close(w, 1, 0);
        CU_ASSERT_EQUAL(most_ends(w, e), quotas[row] == 0);
        CU_ASSERT_EQUAL(peek_census(e).remotes, 0);
        CU_ASSERT_EQUAL(peek_census(e).offloads, 0);
        world_request_free(w, request);
        world_leave(w);
        CU_ASSERT_FALSE(w->failed);
        world_close(w);
        free(targets);
    }
}

/* ---- without room ---------------------------------------------------------------------------- */

/* Guards that each handler runs once while the owner takes no events: rings and spill fill, and
 * messages are refused. A quiet offload goes on meanwhile. */
static void test_owner_sleeps(void)
{
    for (uint32_t quiet = 0; quiet < 2; quiet++) {
        uint32_t ended = 0;

        open_scene(1, quiet ? ENGINE_OFFLOAD_QUIET : 0, ALL);
        scene.silent = 1u << 1;
        for (uint32_t i = 0; i < 3000 && scene.count < 300; i++) {
            scene_send(&scene, scene_plan(DATA, SUCCESS, SUCCESS), false, 0);
            scene_turn(&scene);
        }
        for (uint32_t i = 0; i < 200; i++)
            scene_turn(&scene);
        for (uint32_t i = 0; i < scene.count; i++)
            ended += scene.messages[i].ends;
        CU_ASSERT_EQUAL(ended == 300, quiet);
        while (scene.count < 300) {
            scene.silent = 0;
            scene_send(&scene, scene_plan(DATA, SUCCESS, SUCCESS), false, 0);
            scene_turn(&scene);
        }
        finish();
        for (uint32_t i = 0; i < scene.count; i++)
            for (uint32_t stage = 0; stage < HANDLER_STAGES; stage++)
                CU_ASSERT_EQUAL(scene_runs(&scene, i, stage), 1);
        close_scene();
    }
}

/* Guards that everything is sent once while the target takes no events: sends find no room,
 * handlers return AGAIN, and their origin waits. */
static void test_again(void)
{
    uint64_t again = 0;

    open_scene(1, ENGINE_OFFLOAD_QUIET, ALL);
    scene.silent = 1u << 2;
    for (uint32_t i = 0; i < 20000 && scene.count < SCENE_MESSAGES; i++) {
        scene_send(&scene, scene_plan(DATA | SENDS, SENDS, SENDS), true, 0);
        scene_turn(&scene);
        if (i > 2000)
            scene.silent = 0;
    }
    finish();
    for (uint32_t i = 0; i < scene.count; i++)
        for (uint32_t stage = 0; stage < HANDLER_STAGES; stage++) {
            CU_ASSERT_EQUAL(scene_runs(&scene, i, stage), 1);
            CU_ASSERT_EQUAL(scene.messages[i].puts[stage], 1);
            again += scene_reruns(&scene, i, stage);
        }
    CU_ASSERT(again > 0);
    close_scene();
}

/* ---- random runs ----------------------------------------------------------------------------- */

static uint32_t below(struct sim_random *random, uint32_t limit)
{
    return (uint32_t)sim_random_below(random, limit);
}

static uint64_t random_plan(struct sim_random *random)
{
    static const uint32_t headers[] = {DATA,          DATA,        DATA, DROP, HANDLER_PROCEED,
                                       HANDLER_DEFER, HANDLER_FAIL};
    static const uint32_t payloads[] = {SUCCESS, SUCCESS, DROP, HANDLER_FAIL};
    static const uint32_t completions[] = {SUCCESS, SUCCESS, SUCCESS, HANDLER_FAIL};
    static const uint32_t got[] = {SUCCESS,   HANDLER_PENDING,         HANDLER_FAIL,
                                   SCENE_PUT, SCENE_PUT | SCENE_EVENT, HANDLER_FAIL | SCENE_PUT};
    uint64_t sends = 0;

    for (uint32_t stage = 0; stage < HANDLER_STAGES; stage++)
        sends |= (uint64_t)(below(random, 32) << 8 | below(random, 2) * SCENE_GET) << 16 * stage;
    sends |= scene_got_plan(got[below(random, COUNT(got))]);
    return sends | scene_plan(headers[below(random, COUNT(headers))],
                              payloads[below(random, COUNT(payloads))],
                              completions[below(random, COUNT(completions))]);
}

/* The plan of one handler that has run; 0 if it has failed. */
static uint32_t done_of(uint64_t plan, uint32_t stage)
{
    uint32_t one = plan >> 16 * stage & 0xffff;

    return (one & HANDLER_RETURN_MASK) == HANDLER_FAIL ? 0 : one;
}

/* Whether this handler runs on a message with this plan. */
static bool runs_of(uint64_t plan, uint32_t stage)
{
    uint32_t header = plan & HANDLER_RETURN_MASK;

    if (stage == HANDLER_HEADER)
        return true;
    if (stage == HANDLER_PAYLOAD)
        return header == DATA;
    return header != HANDLER_PROCEED && header != HANDLER_DEFER;
}

static const char *check_message(uint32_t number)
{
    const struct scene_message *m = &scene.messages[number];
    uint32_t messages = 0, replies = 0, gets = 0, got = done_of(m->plan, SCENE_GOT);

    for (uint32_t stage = 0; stage < HANDLER_STAGES; stage++) {
        uint32_t runs = runs_of(m->plan, stage), done = runs ? done_of(m->plan, stage) : 0;

        if (scene_runs(&scene, number, stage) != runs)
            return "a handler has not run once";
        if (m->puts[stage] != !!(done & SCENE_PUT))
            return "a put has not come once";
        if (m->host_puts[stage] != !!(done & SCENE_PUT_HOST))
            return "a put from the region has not come once";
        if (m->own[stage] != !!(done & SCENE_EVENT))
            return "a handler's event has not come once";
        messages += !!(done & SCENE_MESSAGE);
        replies |= !!(done & SCENE_REPLY);
        gets += !!(done & SCENE_GET);
    }
    if (scene_gots(&scene, number) != gets || scene_gots_failed(&scene, number) != 0)
        return "a get has not come once";
    if (gets > 0 && !scene_got_word(&scene, number))
        return "a get has not brought its bytes";
    if (m->puts[SCENE_GOT] != gets * !!(got & SCENE_PUT) ||
        m->own[SCENE_GOT] != gets * !!(got & SCENE_EVENT))
        return "a send of a get's handler has not come once";
    if (m->messages != messages)
        return "a message of a handler's has not come once";
    if (!m->wants_reply)
        return m->replies == 0 ? NULL : "a reply that nobody wants";
    if (!runs_of(m->plan, HANDLER_COMPLETION))
        replies = 1; /* the reply of the client's own handler */
    return m->replies == replies ? NULL : "a reply has not come once";
}

static struct world_options random_options(struct sim_random *random, uint64_t seed, FILE *trace)
{
    static const uint64_t ordered[] = {0, 4096, UINT64_MAX};

    return (struct world_options){.seed = seed,
                                  .limits = {.ledger_start = 4096,
                                             .ledger_max = 4096u << 2 * below(random, 2),
                                             .ledger_bytes = 256 * 1024,
                                             .packed_max = 256,
                                             .chunks_max = below(random, 2) ? 64 : 256,
                                             .spill_max = 512 + below(random, 4000),
                                             .handler_turn = 64 << below(random, 6)},
                                  .trace = trace,
                                  .sim = {.ordered_write_max = ordered[below(random, 3)],
                                          .message_max = 1u << 20,
                                          .refuse_per_mille = below(random, 2) * 100,
                                          .delay_max_ns = 500 + below(random, 10000)}};
}

/* Makes one random run. Returns NULL, or what went wrong. */
static const char *run(uint64_t seed, FILE *trace)
{
    struct sim_random random = {.state = seed ^ UINT64_C(0x0ff10ad)};
    struct world_options options = random_options(&random, seed, trace);
    uint32_t count = 20 + below(&random, 200);
    const struct scene_troubles troubles = {
        .breaks = below(&random, 2) * 2, .deaths = below(&random, 2), .sleeps = below(&random, 3)};
    bool crowded = below(&random, 2);

    if (!scene_open(&scene, &options, below(&random, 2) * ENGINE_OFFLOAD_QUIET, ALL))
        return scene_close(&scene);
    for (uint32_t i = 0; i < 6000 && scene.count < count && !scene.world->failed; i++) {
        scene.loops = below(&random, 2) * below(&random, 100);
        for (uint32_t burst = below(&random, 8); burst > 0 && scene.count < count; burst--)
            scene_send(&scene, random_plan(&random), below(&random, 2), below(&random, 200));
        if (crowded && scene.world->nodes[1].alive)
            poke_other_work(scene.world->nodes[1].engine);
        scene_turn(&scene);
        scene_trouble(&scene, &troubles, &random);
    }
    return scene_conclude(&scene, check_message);
}

static const struct scene_seeds seeds = {"offloads", run};

static void test_random_runs(void)
{
    CU_ASSERT_EQUAL(scene_run_seeds(&seeds, 1, RUNS), 0);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"what each return means", test_returns},
        {"what handlers send comes once", test_sends},
        {"sends from the region, atomics", test_sends_from_host},
        {"a fault disables", test_faults},
        {"a destroyed offload gives its index back", test_destroyed},
        {"what is refused", test_refused},
        {"neighbours go through the engine", test_neighbours},
        {"answered, without a handler", test_answered_without_handler},
        {"a second context", test_second_context},
        {"given up", test_given_up},
        {"many targets", test_many_targets},
        {"targets that cannot be bound", test_unbindable},
        {"ends of many targets", test_ends_of_many_targets},
        {"the owner sleeps", test_owner_sleeps},
        {"no room to send", test_again},
        {"exactly once, by seed", test_random_runs},
        CU_TEST_INFO_NULL,
    };

    return scene_main(&seeds, tests, argc, argv);
}
