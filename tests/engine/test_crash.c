/*
 * A daemon may die anywhere (crash_main.h) while clients use operations of every kind, messages,
 * control's calls, teams and handlers. Every operation still ends exactly once.
 *
 * Thread: one.
 */
#include <errno.h>
#include <string.h>
#include "tests/count.h"
#include "tests/engine/world/crash/crash_control.h"
#include "tests/engine/world/crash/crash_main.h"
#include "tests/engine/world/crash/crash_messages.h"
#include "tests/engine/world/paths/driver.h"
#include "tests/engine/world/messages/message_flood.h"
#include "tests/engine/world/model/model_counters.h"
#include "tests/engine/world/own.h"
#include "tests/engine/world/paths/world_path.h"

static struct own own;

static void submit_many(struct driver *d, uint32_t count, struct model_op op)
{
    for (uint32_t i = 0; i < count; i++)
        driver_submit(d, op);
    driver_finish(d);
}

static void run_packed(struct driver *d)
{
    submit_many(d, 4, (struct model_op){.from = 0, .to = 1, .kind = PATH_PUT, .length = 60});
}

static void run_row(struct driver *d)
{
    for (int i = 0; i < 3; i++)
        submit_many(d, 6,
                    (struct model_op){.from = 0,
                                      .to = 1,
                                      .kind = PATH_PUT,
                                      .length = 8,
                                      .flags = i == 0 ? PWC_NO_LCE : 0});
}

/* As run_row, while end 1 takes no events: the last events spill. */
static void run_row_spill(struct driver *d)
{
    d->silent = 1u << 1;
    for (int i = 0; i < 90; i++)
        driver_submit(d,
                      (struct model_op){
                          .from = 0, .to = 1, .kind = PATH_PUT, .length = 8, .flags = PWC_NO_LCE});
    for (int i = 0; i < 60 && !d->failed; i++)
        driver_turn(d);
    d->silent = 0;
    driver_finish(d);
}

static void run_two_put(struct driver *d)
{
    submit_many(d, 4, (struct model_op){.from = 0, .to = 1, .kind = PATH_PUT, .length = 700});
}

static void run_get(struct driver *d)
{
    submit_many(d, 3, (struct model_op){.from = 0, .to = 1, .kind = PATH_GET, .length = 300});
    submit_many(d, 1,
                (struct model_op){
                    .from = 0, .to = 1, .kind = PATH_GET, .length = 300, .flags = PWC_NO_RCE});
}

/* Vectors: short pieces in blocks, a long one with them, and reads. */
static void run_vectors(struct driver *d)
{
    static const unsigned flags[] = {0, PWC_UNORDERED};

    for (size_t i = 0; i < 2 * COUNT(flags); i++)
        driver_submit(d, (struct model_op){.from = 0,
                                           .to = 1,
                                           .kind = i % 2 ? PATH_GET : PATH_PUT,
                                           .length = 900,
                                           .pieces = 4,
                                           .flags = flags[i / 2]});
    driver_finish(d);
}

static void run_ids(struct driver *d)
{
    submit_many(
        d, 3,
        (struct model_op){.from = 0, .to = 1, .kind = PATH_PUT, .lid_len = 255, .rid_len = 1024});
}

static void run_flags(struct driver *d)
{
    static const unsigned flags[] = {PWC_NO_LCE,     PWC_NO_RCE, PWC_NO_LCE | PWC_NO_RCE,
                                     PWC_LCE_SOURCE, PWC_FENCE,  PWC_UNORDERED};

    for (size_t i = 0; i < COUNT(flags); i++)
        driver_submit(d, (struct model_op){.from = 0,
                                           .to = 1,
                                           .kind = PATH_PUT,
                                           .length = i % 2 ? 500 : 20,
                                           .flags = flags[i]});
    driver_finish(d);
}

static void run_both_ways(struct driver *d)
{
    for (int i = 0; i < 5; i++) {
        driver_submit(d, driver_random_op(d, 0, 1));
        driver_submit(d, driver_random_op(d, 1, 0));
    }
    driver_finish(d);
}

static void run_same_node(struct driver *d)
{
    for (int i = 0; i < 3; i++) {
        driver_submit(d, driver_random_op(d, 0, 2));
        driver_submit(d, driver_random_op(d, 1, 1));
    }
    driver_finish(d);
}

static void run_errors(struct driver *d)
{
    struct model_op op = {.from = 0, .to = 1, .kind = PATH_PUT, .length = 10, .status = -ERANGE};

    op.remote_offset = d->model.ends[1].length;
    op.local_offset = d->model.ends[0].length / 2;
    for (int i = 0; i < 2; i++) {
        driver_submit_over(d, driver_remote(d, 0, 1), &op);
        driver_submit(d, driver_random_op(d, 0, 1));
    }
    driver_finish(d);
}

/* End 1 takes no events: this leads to spill, STOP and refusal, and to GO when it takes events
 * again. */
static void run_spill(struct driver *d)
{
    d->silent = 1u << 1;
    for (int i = 0; i < 14; i++)
        driver_submit(d, (struct model_op){.from = 0, .to = 1, .kind = PATH_PUT, .rid_len = 1024});
    for (int i = 0; i < 60 && !d->failed; i++)
        driver_turn(d);
    d->silent = 0;
    driver_finish(d);
}

static void run_break(struct driver *d)
{
    for (int i = 0; i < 6; i++)
        driver_submit(d, driver_random_op(d, i % 2 ? 1 : 0, i % 2 ? 0 : 1));
    for (int i = 0; i < 12; i++)
        driver_turn(d);
    d->path->calls->cut(d->path->context, 0, 1, false);
    driver_finish(d);
}

static void run_wrap(struct driver *d)
{
    submit_many(d, 14, (struct model_op){.from = 0, .to = 1, .kind = PATH_PUT, .length = 250});
}

static void run_withdrawal(struct driver *d)
{
    for (int i = 0; i < 4; i++)
        driver_submit(d, driver_random_op(d, 0, 1));
    for (uint32_t i = 0; i < d->model.op_count; i++)
        d->model.ops[i].shaken = true;
    d->path->calls->withdraw(d->path->context, 1);
    for (uint32_t i = 0; i < 100000 && !d->failed; i++) {
        if (d->path->calls->withdrawn(d->path->context, 1))
            break;
        if (!driver_turn(d))
            driver_fail(d, "withdrawal does not end");
    }
    driver_finish(d);
}

static void run_death(struct driver *d)
{
    for (int i = 0; i < 4; i++) {
        driver_submit(d, driver_random_op(d, 0, 1));
        driver_submit(d, driver_random_op(d, 0, 3));
    }
    model_dead(&d->model, 1);
    d->path->calls->kill(d->path->context, 1);
    driver_finish(d);
}

/* Atomics in rows and alone, with and without values: none is done twice, and an atomic that a
 * death leaves in doubt is reported so. */
static void run_atomics(struct driver *d)
{
    static const unsigned flags[] = {0, PWC_NO_LCE, PWC_NO_RCE, PWC_FENCE};

    model_counters(&d->model, 64);
    for (uint32_t i = 0; i < 24 && !d->failed; i++) {
        struct model_op op = {.from = i / 12,
                              .to = 1 - i / 12,
                              .kind = PATH_ATOMIC,
                              .flags = flags[i / 3 % COUNT(flags)],
                              .remote_offset = 64 + i % MODEL_COUNTERS * 8,
                              .length = 8,
                              .fetch = i / 6 % 2,
                              .shaken = true}; /* the node may die when it has changed the word */

        driver_submit_over(d, driver_remote(d, op.from, op.to), &op);
        if (i % 8 == 7)
            driver_turn(d);
    }
    driver_finish(d);
}

/* As run_atomics, while end 1 takes no events: events spill, and refused operations are done later,
 * once. */
static void run_atomics_spill(struct driver *d)
{
    model_counters(&d->model, 64);
    d->silent = 1u << 1;
    for (uint32_t i = 0; i < 30 && !d->failed; i++) {
        struct model_op op = {.from = 0,
                              .to = 1,
                              .kind = PATH_ATOMIC,
                              .remote_offset = 64,
                              .length = 8,
                              .rid_len = 1024,
                              .fetch = i % 2,
                              .shaken = true};

        driver_submit_over(d, driver_remote(d, 0, 1), &op);
    }
    for (int i = 0; i < 60 && !d->failed; i++)
        driver_turn(d);
    d->silent = 0;
    driver_finish(d);
}

/* Signals with each kind of payload: none is done twice, and a signal whose addition a death leaves
 * in doubt is reported so. */
static void run_signals(struct driver *d)
{
    static const uint64_t lengths[] = {0, 8, 60, 700};

    for (uint32_t i = 0; i < 16 && !d->failed; i++)
        driver_submit(d, (struct model_op){.from = i / 8,
                                           .to = 1 - i / 8,
                                           .kind = PATH_SIGNAL,
                                           .length = lengths[i % COUNT(lengths)],
                                           .flags = i % 5 ? 0 : PWC_NO_LCE,
                                           .shaken = true});
    driver_finish(d);
}

/* The engine submits operations of its own, to a client of the other node. */
static void run_own(struct driver *d)
{
    struct world *w = ((struct world_path *)d->path->context)->world;
    int client = world_client_open(w, 1, 8, 1);
    int rc = client < 0 ? client : own_bind(&own, w, (uint32_t)client, 0);

    for (uint32_t i = 0; i < 6 && rc == 0; i++) {
        rc = own_submit(&own, i, i % 2 == 0, 0);
        driver_turn(d);
        if (i == 3)
            world_link_break(w, 0, 1);
    }
    own_finish(&own, 100000);
    for (uint32_t i = 0; i < 6; i++)
        if (rc == 0 && own.status[i] != 0)
            rc = own.status[i];
    if (rc < 0 || own.ended != 0x3f || own.arrived != 0x3f)
        driver_fail(d, "own operations: %s; ended %x, arrived %x", strerror(-rc), own.ended,
                    own.arrived);
    own_leave(&own);
    driver_finish(d);
}

static const struct crash_scenario scenarios[] = {
    {"packed", run_packed, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"two-put, ordered", run_two_put, UINT64_MAX, ENGINE_PROTOCOL_ORDERED, 1, NULL, 0},
    {"two-put, reassembled", run_two_put, 0, ENGINE_PROTOCOL_REASSEMBLE, 1, NULL, 0},
    {"two-put, chained", run_two_put, 0, ENGINE_PROTOCOL_CHAIN, 1, NULL, 0},
    {"two-put, striped", run_two_put, 0, ENGINE_PROTOCOL_AUTO, 4, NULL, 0},
    {"two-put, striped, chained", run_two_put, 0, ENGINE_PROTOCOL_CHAIN, 2, NULL, 0},
    {"get", run_get, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"vectors", run_vectors, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"long ids", run_ids, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"flags", run_flags, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"both ways", run_both_ways, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"same node", run_same_node, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"errors", run_errors, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"spill", run_spill, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"link breaks", run_break, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"ledger wraps", run_wrap, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"withdrawal", run_withdrawal, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"client dies", run_death, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"puts in a row", run_row, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"puts in a row, spill", run_row_spill, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"atomics", run_atomics, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"atomics, spill", run_atomics_spill, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"signals", run_signals, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"signals, reassembled", run_signals, 0, ENGINE_PROTOCOL_REASSEMBLE, 1, NULL, 0},
    {"signals, chained", run_signals, 0, ENGINE_PROTOCOL_CHAIN, 1, NULL, 0},
    {"the engine's own", run_own, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
};

/* The number of all scenarios: those of messages, control, teams and offloads follow the ones here.
 */
static size_t scenario_count(void)
{
    return COUNT(scenarios) + crash_message_count + crash_control_count + crash_team_count +
           crash_offload_count;
}

static const struct crash_scenario *scenario_of(size_t number)
{
    if (number < COUNT(scenarios))
        return &scenarios[number];
    number -= COUNT(scenarios);
    if (number < crash_message_count)
        return &crash_message_scenarios[number];
    number -= crash_message_count;
    if (number < crash_control_count)
        return &crash_control_scenarios[number];
    number -= crash_control_count;
    return number < crash_team_count ? &crash_team_scenarios[number]
                                     : &crash_offload_scenarios[number - crash_team_count];
}

static const char *name_of(size_t number)
{
    return scenario_of(number)->name;
}

/* Runs one scenario under the guard (crash_main.h). Returns NULL, or what failed. */
static const char *run(size_t number, struct crash_guard *g, FILE *trace, char failure[400])
{
    static struct world_path path;
    static struct driver driver;
    static struct flood flood;
    const struct crash_scenario *s = scenario_of(number);
    struct world_options options = {
        .seed = 7 + number,
        .nodes = s->nodes > 0 ? s->nodes : 2,
        .protocol = s->protocol,
        .submit_bytes = 16384,
        .trace = trace,
        .owner = &own_row,
        .owner_context = &own,
        .limits = {.stripe_min = 512,
                   .piece_bytes = 256,
                   .window_bytes = 512,
                   .ledger_start = 4096,
                   .ledger_max = 16384,
                   .ledger_bytes = 256 * 1024,
                   .packed_max = 256,
                   .chunks_max = 32,
                   .team_bytes = 10u << 20,
                   .spill_max = 4096},
        .sim = {.ordered_write_max = s->ordered_write_max, .rails = s->rails},
    };

    if (world_path_open(&path, &options, 4, failure) != 0)
        return failure;
    if (driver_open(&driver, &path.path, number) != 0)
        return "no memory for the model";
    driver.dies = true;
    for (uint32_t from = 0; from < 4; from++)
        for (uint32_t to = 0; to < 4; to++)
            driver_remote(&driver, from, to);
    if (s->messages)
        flood_open(&flood, path.world, 4, number);
    g->world = path.world;
    path.world->reopen_rounds = CRASH_REOPEN_ROUNDS;
    crash_guard_open(g);
    g->armed = true;
    if (s->messages)
        s->messages(&flood);
    else
        s->run(&driver);
    g->armed = false;
    if (!driver.failed && world_path_leave(&path))
        driver_fail(&driver, "%s", path.world->failure);
    crash_guard_close(g);
    if (!driver.failed && path.world->failed)
        driver_fail(&driver, "%s", path.world->failure);
    if (driver.failed)
        memcpy(failure, driver.failure, sizeof driver.failure);
    if (!g->child) {
        driver_close(&driver);
        world_path_close(&path);
    }
    return driver.failed ? failure : NULL;
}

int main(int argc, char **argv)
{
    const struct crash_suite suite = {.count = scenario_count(), .name = name_of, .run = run};

    return crash_main(&suite, argc, argv);
}
