/*
 * Scenarios of test_crash with handlers (tests/engine/offload/scene.h). Whichever node dies before
 * whichever store, every handler has run once, except for the one that ran at that store. That
 * handler has run again if its offload is repeatable; otherwise its message was cut, and its origin
 * got -ECONNABORTED. Thread: one.
 */
#include <errno.h>
#include <string.h>
#include "tests/engine/offload/scene.h"
#include "tests/engine/world/crash/crash_control.h"
#include "tests/engine/world/paths/world_path.h"

enum { ALL = 7, DATA = HANDLER_PROCESS_DATA, SENDS = SCENE_PUT | SCENE_MESSAGE | SCENE_EVENT };

static struct scene scene;

/* Checks that each send of the handlers that ran has arrived once. */
static const char *check_sends(const struct scene_message *m, uint32_t ran)
{
    uint32_t messages = 0;

    for (uint32_t stage = 0; stage < HANDLER_STAGES; stage++) {
        uint32_t plan = m->plan >> 16 * stage & 0xffff;

        if (m->puts[stage] != (ran >> stage & 1) * !!(plan & SCENE_PUT) ||
            m->own[stage] != (ran >> stage & 1) * !!(plan & SCENE_EVENT))
            return "a handler's put or event has not come once";
        messages += (ran >> stage & 1) * !!(plan & SCENE_MESSAGE);
    }
    return m->messages == messages ? NULL : "a handler's message has not come once";
}

/* Checks a message of which no handler was in doubt, or whose handler in doubt has run again.
 * `extra` counts such runs. */
static const char *check_whole(uint32_t number, uint32_t *extra)
{
    uint32_t ran = 0;

    for (uint32_t stage = 0; stage < HANDLER_STAGES; stage++) {
        uint64_t runs = scene_runs(&scene, number, stage);
        uint64_t again = scene_reruns(&scene, number, stage);

        *extra += (uint32_t)again;
        if (runs + again == 0 || runs > 1)
            return "a handler has not run once";
        ran |= 1u << stage;
    }
    return check_sends(&scene.messages[number], ran);
}

/* Checks a message that was cut: its handlers up to some stage have run, and its completion
 * handler. */
static const char *check_cut(uint32_t number)
{
    uint32_t ran = 0;

    for (uint32_t stage = 0; stage < HANDLER_STAGES; stage++) {
        uint64_t runs = scene_runs(&scene, number, stage);

        if (runs > 1 || scene_reruns(&scene, number, stage) > 0)
            return "a handler of a message that was cut has run twice";
        /* The handler that was in doubt may have run and lost its send: at most one handler has run
         * without a send. */
        if (runs == 1 && scene.messages[number].puts[stage] == 1)
            ran |= 1u << stage;
    }
    return check_sends(&scene.messages[number], ran);
}

static void check(uint32_t flags)
{
    struct world *w = scene.world;
    uint32_t deaths = w->nodes[0].deaths + w->nodes[1].deaths, doubts = 0;

    for (uint32_t i = 0; i < scene.count && !w->failed; i++) {
        const struct scene_message *m = &scene.messages[i];
        bool cut = m->status == -ECONNABORTED && !(flags & ENGINE_OFFLOAD_REPEATABLE);
        const char *wrong = cut ? check_cut(i) : check_whole(i, &doubts);

        doubts += cut;
        if (!cut && m->status != 0)
            wrong = strerror(-m->status);
        if (!wrong && !cut && m->wants_reply && m->replies != 1)
            wrong = "a reply has not come once";
        if (wrong)
            world_fail(w, "message %u: %s", i, wrong);
    }
    if (doubts > deaths)
        world_fail(w, "%u handlers in doubt, and %u deaths", doubts, deaths);
}

/* Opens a scene. Contexts of the owner's node must not have bound the owner, or it gets no offload.
 */
static bool begin(struct driver *d, uint32_t flags)
{
    driver_unbind(d, 1, 1);
    driver_unbind(d, 3, 1);
    return scene_begin(&scene, ((struct world_path *)d->path->context)->world, 0, flags, ALL);
}

static void send_and_check(uint32_t flags)
{
    for (uint32_t i = 0; i < 3; i++) {
        scene_send(&scene, scene_plan(DATA | SENDS, SCENE_PUT, SENDS | SCENE_REPLY), true, 40);
        scene_send(&scene, scene_plan(DATA | SCENE_PUT, SENDS, SCENE_PUT), false, 0);
        scene_turn(&scene);
    }
    scene_finish(&scene);
    check(flags);
}

static void run(struct driver *d, uint32_t flags)
{
    if (begin(d, flags))
        send_and_check(flags);
}

/* An offload with more targets than are bound at once: a node may die while the next ones begin to
 * be bound, or the last ones are freed. */
static void run_many_targets(struct driver *d)
{
    driver_unbind(d, 1, 1);
    driver_unbind(d, 3, 1);
    if (scene_begin_many(&scene, ((struct world_path *)d->path->context)->world, 0,
                         ENGINE_OFFLOAD_REPEATABLE, ALL, 20))
        send_and_check(ENGINE_OFFLOAD_REPEATABLE);
}

static void run_repeatable(struct driver *d)
{
    run(d, ENGINE_OFFLOAD_REPEATABLE);
}

static void run_once(struct driver *d)
{
    run(d, 0);
}

/* The owner takes no events: they spill, and messages are refused between two handlers. */
static void run_full(struct driver *d)
{
    if (!begin(d, ENGINE_OFFLOAD_REPEATABLE))
        return;
    scene.silent = 1u << 1;
    for (uint32_t i = 0; i < 60; i++) {
        scene_send(&scene, scene_plan(DATA | SCENE_EVENT, SCENE_EVENT, SCENE_EVENT), false, 0);
        scene_turn(&scene);
    }
    scene_finish(&scene);
    check(ENGINE_OFFLOAD_REPEATABLE);
}

/* Checks a put or a Long of several packets: each packet that is not in doubt has been handled
 * once. */
static const char *check_put(uint32_t number, uint32_t flags, uint32_t *doubts)
{
    const struct scene_message *m = &scene.messages[number];
    uint64_t again = 0, runs = 0;
    bool cut = m->status == -ECONNABORTED && !(flags & ENGINE_OFFLOAD_REPEATABLE);

    for (uint32_t stage = 0; stage < HANDLER_STAGES; stage++) {
        again += scene_reruns(&scene, number, stage);
        runs = scene_runs(&scene, number, stage);
        if (runs > 1 && stage != HANDLER_PAYLOAD)
            return "a handler of a put has run twice";
    }
    *doubts += cut + (uint32_t)again;
    if (cut)
        return again == 0 ? NULL : "a handler of a put that was cut has run again";
    if (m->status != 0)
        return strerror(-m->status);
    if (again == 0 && !scene_got_all(&scene, number, scene.world->nodes[1].config.packed_max))
        return "a packet has not been handled once";
    return again > 0 || (runs == 1 && m->own[HANDLER_COMPLETION] == 1)
               ? NULL
               : "a completion handler has not run once";
}

static void check_puts(uint32_t flags)
{
    struct world *w = scene.world;
    uint32_t doubts = 0;

    for (uint32_t i = 0; i < scene.count && !w->failed; i++) {
        const char *wrong = check_put(i, flags, &doubts);

        if (wrong)
            world_fail(w, "put %u: %s", i, wrong);
    }
    if (doubts > w->nodes[0].deaths + w->nodes[1].deaths)
        world_fail(w, "%u handlers in doubt, and fewer deaths", doubts);
}

static bool begin_puts(struct driver *d, uint32_t flags)
{
    driver_unbind(d, 1, 1);
    driver_unbind(d, 3, 1);
    return scene_begin_puts(&scene, ((struct world_path *)d->path->context)->world, flags, ALL);
}

static void run_puts(struct driver *d, uint32_t flags)
{
    if (!begin_puts(d, flags))
        return;
    for (uint32_t i = 0; i < 3; i++) {
        scene_put(&scene, scene_plan(DATA, SCENE_PUT, SCENE_EVENT), 600, 0, WORLD_MAIN);
        scene_put(&scene, scene_plan(DATA | SCENE_EVENT, 0, SCENE_EVENT), 100, 0, WORLD_MAIN);
        scene_turn(&scene);
    }
    scene_finish(&scene);
    check_puts(flags);
}

/* Puts in a row, which become batches: each handler of each put has run once. */
static void run_batches(struct driver *d, uint32_t flags)
{
    if (!begin_puts(d, flags))
        return;
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t put = 0; put < 5; put++)
            scene_put(&scene, scene_plan(DATA, SCENE_PUT, SCENE_EVENT), 8 + put, SUBMIT_INLINE,
                      WORLD_MAIN);
        scene_turn(&scene);
    }
    scene_finish(&scene);
    check_puts(flags);
}

static void run_batches_repeatable(struct driver *d)
{
    run_batches(d, ENGINE_OFFLOAD_REPEATABLE);
}

static void run_batches_once(struct driver *d)
{
    run_batches(d, 0);
}

static void run_puts_repeatable(struct driver *d)
{
    run_puts(d, ENGINE_OFFLOAD_REPEATABLE);
}

static void run_puts_once(struct driver *d)
{
    run_puts(d, 0);
}

static void run_stored_repeatable(struct driver *d)
{
    run_puts(d, ENGINE_OFFLOAD_REPEATABLE | ENGINE_OFFLOAD_PLACED);
}

static void run_stored_once(struct driver *d)
{
    run_puts(d, ENGINE_OFFLOAD_PLACED);
}

/* Stored puts whose payload handlers take a step's units each, so that a put is under way for some
 * steps, while another put, of one packet, stands after it. */
static void run_steps(struct driver *d, uint32_t flags)
{
    if (!begin_puts(d, flags | ENGINE_OFFLOAD_PLACED))
        return;
    for (uint32_t i = 0; i < 2; i++) {
        scene_put(&scene, scene_plan(DATA, SCENE_LOOP, SCENE_EVENT), 900, 0, WORLD_MAIN);
        scene_put(&scene, scene_plan(DATA, SCENE_LOOP, SCENE_EVENT), 100, 0, WORLD_MAIN);
        scene_turn(&scene);
    }
    scene_finish(&scene);
    check_puts(flags);
}

static void run_steps_repeatable(struct driver *d)
{
    run_steps(d, ENGINE_OFFLOAD_REPEATABLE);
}

static void run_steps_once(struct driver *d)
{
    run_steps(d, 0);
}

/* Checks gets that are observed: each ends well, whatever has become of its handler; every other
 * one has a remote event. */
static const char *check_observed(uint32_t number, uint32_t flags, uint32_t *doubts)
{
    const struct scene_message *m = &scene.messages[number];
    uint64_t runs = scene_runs(&scene, number, HANDLER_HEADER);
    uint64_t again = scene_reruns(&scene, number, HANDLER_HEADER);
    uint32_t lost = m->events[OFFLOAD_FAILED];

    *doubts += (uint32_t)again + lost;
    if (m->status != 0)
        return strerror(-m->status);
    if (m->events[0] != number % 2)
        return "the event of a get has not come once";
    if (flags & ENGINE_OFFLOAD_REPEATABLE ? runs > 1 || runs + again == 0 || lost > 0
                                          : runs > 1 || runs + lost == 0 || again > 0)
        return "the handler of a get has not run once";
    return m->puts[HANDLER_HEADER] + lost == 1 && m->own[HANDLER_HEADER] + lost == 1
               ? NULL
               : "a send of the handler of a get has not come once";
}

static void run_observed(struct driver *d, uint32_t flags)
{
    struct world *w = ((struct world_path *)d->path->context)->world;
    uint32_t doubts = 0;

    if (!begin_puts(d, flags | ENGINE_OFFLOAD_OBSERVE))
        return;
    for (uint32_t i = 0; i < 6; i++) {
        scene_get(&scene, scene_plan(HANDLER_PROCEED | SCENE_PUT | SCENE_EVENT, 0, 0), 100,
                  i % 2 ? 0 : SUBMIT_NO_RCE);
        scene_turn(&scene);
    }
    scene_finish(&scene);
    for (uint32_t i = 0; i < scene.count && !w->failed; i++) {
        const char *wrong = check_observed(i, flags, &doubts);

        if (wrong)
            world_fail(w, "get %u: %s", i, wrong);
    }
    if (doubts > w->nodes[0].deaths + w->nodes[1].deaths)
        world_fail(w, "%u handlers in doubt, and fewer deaths", doubts);
}

static void run_observed_repeatable(struct driver *d)
{
    run_observed(d, ENGINE_OFFLOAD_REPEATABLE);
}

static void run_observed_once(struct driver *d)
{
    run_observed(d, 0);
}

/* Longs whose payload handlers take a step's units each, and a Long with its payload in its record.
 */
static void run_longs(struct driver *d, uint32_t flags)
{
    driver_unbind(d, 1, 1);
    driver_unbind(d, 3, 1);
    if (!scene_begin_longs(&scene, ((struct world_path *)d->path->context)->world, flags, ALL))
        return;
    for (uint32_t i = 0; i < 2; i++) {
        scene_send_long(&scene, scene_plan(DATA, SCENE_LOOP, SCENE_EVENT | SCENE_REPLY), true, 900,
                        0);
        scene_send_long(&scene, scene_plan(DATA, SCENE_PUT, SCENE_EVENT), false, 100,
                        SUBMIT_INLINE);
        scene_turn(&scene);
    }
    scene_finish(&scene);
    check_puts(flags);
    for (uint32_t i = 0; i < scene.count && !scene.world->failed; i++)
        if (scene.messages[i].status == 0 &&
            scene.messages[i].replies != scene.messages[i].wants_reply)
            world_fail(scene.world, "message %u: a reply has not come once", i);
}

static void run_longs_repeatable(struct driver *d)
{
    run_longs(d, ENGINE_OFFLOAD_REPEATABLE);
}

static void run_longs_once(struct driver *d)
{
    run_longs(d, 0);
}

/* Checks gets of handlers: the handler of each has run once, with its bytes there, or was in doubt.
 */
static const char *check_gets(uint32_t number, uint32_t flags, uint32_t *doubts)
{
    const struct scene_message *m = &scene.messages[number];
    uint32_t runs = scene_gots(&scene, number), again = scene_got_reruns(&scene, number);
    uint32_t cut = m->got_events[OFFLOAD_FAILED];

    *doubts += again + cut;
    if (scene_gots_failed(&scene, number) > 0)
        return "a get has failed";
    if (flags & ENGINE_OFFLOAD_REPEATABLE ? runs > 1 || runs + again == 0 || cut > 0
                                          : runs + cut == 0 || runs > 1 || again > 0)
        return "the handler of a get has not run once";
    if (!scene_got_word(&scene, number))
        return "a get has not brought its bytes";
    if (m->got_events[OFFLOAD_ENDED] + cut != 1)
        return "a get's event has not come once";
    return m->puts[SCENE_GOT] + cut == 1 ? NULL : "a put of a get's handler has not come once";
}

static void run_gets(struct driver *d, uint32_t flags)
{
    struct world *w = ((struct world_path *)d->path->context)->world;
    uint32_t doubts = 0;

    if (!begin(d, flags))
        return;
    for (uint32_t i = 0; i < 4; i++) {
        scene_send(&scene,
                   scene_plan(HANDLER_PROCEED | SCENE_GET, 0, 0) | scene_got_plan(SCENE_PUT), false,
                   0);
        scene_turn(&scene);
    }
    scene_finish(&scene);
    for (uint32_t i = 0; i < scene.count && !w->failed; i++) {
        const struct scene_message *m = &scene.messages[i];
        const char *wrong = m->status == 0 ? check_gets(i, flags, &doubts) : NULL;

        doubts += m->status == -ECONNABORTED; /* the handler that asked for the get was in doubt */
        if (m->status != 0 && m->status != -ECONNABORTED)
            wrong = strerror(-m->status);
        if (wrong)
            world_fail(w, "message %u: %s", i, wrong);
    }
    if (doubts > w->nodes[0].deaths + w->nodes[1].deaths)
        world_fail(w, "%u handlers in doubt, and fewer deaths", doubts);
}

static void run_gets_repeatable(struct driver *d)
{
    run_gets(d, ENGINE_OFFLOAD_REPEATABLE);
}

static void run_gets_once(struct driver *d)
{
    run_gets(d, 0);
}

const struct crash_scenario crash_offload_scenarios[] = {
    {"handlers that may run again", run_repeatable, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"handlers", run_once, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"puts in packets, handlers that may run again", run_puts_repeatable, UINT64_MAX,
     ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"puts in packets", run_puts_once, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"puts that are stored, handlers that may run again", run_stored_repeatable, UINT64_MAX,
     ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"puts that are stored", run_stored_once, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"puts that are stored, over some steps, handlers that may run again", run_steps_repeatable,
     UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"puts that are stored, over some steps", run_steps_once, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"Longs, over some steps, handlers that may run again", run_longs_repeatable, UINT64_MAX,
     ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"Longs, over some steps", run_longs_once, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"gets of handlers that may run again", run_gets_repeatable, UINT64_MAX, ENGINE_PROTOCOL_AUTO,
     1, NULL, 0},
    {"gets of handlers", run_gets_once, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"puts in batches, handlers that may run again", run_batches_repeatable, UINT64_MAX,
     ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"puts in batches", run_batches_once, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"handlers, full rings", run_full, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"gets that are observed, handlers that may run again", run_observed_repeatable, UINT64_MAX,
     ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"gets that are observed", run_observed_once, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"handlers with many targets", run_many_targets, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
};
const size_t crash_offload_count =
    sizeof(crash_offload_scenarios) / sizeof(crash_offload_scenarios[0]);
