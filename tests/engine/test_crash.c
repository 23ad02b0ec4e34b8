/*
 * A daemon may die anywhere. For each scenario, for the node that submits and for the one that is
 * written to, and for every n: the node stops before its n-th store to its arena or to a session,
 * everything but arena and client memory is dropped, a new process takes over, and every operation
 * still ends exactly once. After some of the crashes the new process dies too.
 *
 *     test_crash [--again M]                          all; each second death M stores after the
 * first test_crash [--again M] --scenario S --victim V [--store N [--trace]] one; and one crash of
 * it again
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "crash_guard.h"
#include "driver.h"
#include "message_flood.h"
#include "world_path.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define SKIPPED  77
#define JOBS     2u

struct scenario {
    const char *name;
    void (*run)(struct driver *d);
    uint64_t ordered_write_max;
    uint32_t protocol;
    void (*messages)(struct flood *f); /* instead of `run` */
};

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

/* End 1 does not look: spill, STOP, refusal, and GO when it looks again. */
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

/* ---- active messages: end 0 asks end 1, and replies are at random ---------------------------- */

static void ask(struct flood *f, uint8_t kind, uint16_t flags, uint32_t length, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        flood_send(f, 0, 1, kind, flags, length);
    flood_finish(f);
}

static void run_short(struct flood *f)
{
    ask(f, SUBMIT_SHORT, 0, 0, 3);
    ask(f, SUBMIT_SHORT, SUBMIT_NO_REPLY, 0, 1);
}

static void run_medium(struct flood *f)
{
    ask(f, SUBMIT_MEDIUM, 0, 200, 3);
}

static void run_long(struct flood *f)
{
    ask(f, SUBMIT_LONG, 0, 900, 2);
    ask(f, SUBMIT_LONG, SUBMIT_NO_REPLY, 100, 2);
}

static void run_long_protocols(struct flood *f)
{
    ask(f, SUBMIT_LONG, SUBMIT_ORDERED, 700, 1);
    ask(f, SUBMIT_LONG, SUBMIT_REASSEMBLE, 700, 1);
    ask(f, SUBMIT_LONG, SUBMIT_CHAIN, 700, 1);
}

/* Both ask, and end 1 does not look for a while: spill, STOP, refusal, GO. */
static void run_message_flood(struct flood *f)
{
    f->silent = 1u << 1;
    for (int i = 0; i < 8; i++) {
        flood_send(f, 0, 1, SUBMIT_MEDIUM, SUBMIT_NO_REPLY, 250);
        flood_send(f, 0, 1, SUBMIT_MEDIUM, 0, 250);
        flood_send(f, 1, 0, SUBMIT_SHORT, 0, 0);
        flood_turn(f);
    }
    for (int i = 0; i < 40; i++)
        flood_turn(f);
    flood_finish(f);
}

static void run_no_handler(struct flood *f)
{
    message_handlers(&f->client[1], false);
    for (int i = 0; i < 2; i++) {
        uint32_t number = flood_send(f, 0, 1, SUBMIT_SHORT, 0, 0);

        if (number < FLOOD_MESSAGES)
            f->messages[number].status = -ENOSYS;
    }
    flood_finish(f);
}

static void run_asked_dies(struct flood *f)
{
    f->silent = 1u << 1; /* what it is asked stays unanswered */
    for (int i = 0; i < 3; i++) {
        flood_send(f, 0, 1, SUBMIT_SHORT, 0, 0);
        flood_send(f, 1, 0, SUBMIT_MEDIUM, 0, 50);
    }
    for (int i = 0; i < 40; i++)
        flood_turn(f);
    flood_dies(f, 1);
    flood_finish(f);
}

static const struct scenario scenarios[] = {
    {"packed", run_packed, UINT64_MAX, ENGINE_PROTOCOL_AUTO, NULL},
    {"two-put, ordered", run_two_put, UINT64_MAX, ENGINE_PROTOCOL_ORDERED, NULL},
    {"two-put, reassembled", run_two_put, 0, ENGINE_PROTOCOL_REASSEMBLE, NULL},
    {"two-put, chained", run_two_put, 0, ENGINE_PROTOCOL_CHAIN, NULL},
    {"get", run_get, 0, ENGINE_PROTOCOL_AUTO, NULL},
    {"long ids", run_ids, UINT64_MAX, ENGINE_PROTOCOL_AUTO, NULL},
    {"flags", run_flags, 0, ENGINE_PROTOCOL_AUTO, NULL},
    {"both ways", run_both_ways, 0, ENGINE_PROTOCOL_AUTO, NULL},
    {"same node", run_same_node, UINT64_MAX, ENGINE_PROTOCOL_AUTO, NULL},
    {"errors", run_errors, UINT64_MAX, ENGINE_PROTOCOL_AUTO, NULL},
    {"spill", run_spill, UINT64_MAX, ENGINE_PROTOCOL_AUTO, NULL},
    {"link breaks", run_break, 0, ENGINE_PROTOCOL_AUTO, NULL},
    {"ledger wraps", run_wrap, UINT64_MAX, ENGINE_PROTOCOL_AUTO, NULL},
    {"withdrawal", run_withdrawal, 0, ENGINE_PROTOCOL_AUTO, NULL},
    {"client dies", run_death, 0, ENGINE_PROTOCOL_AUTO, NULL},
    {"short messages", NULL, UINT64_MAX, ENGINE_PROTOCOL_AUTO, run_short},
    {"medium messages", NULL, 0, ENGINE_PROTOCOL_AUTO, run_medium},
    {"long messages, ordered", NULL, UINT64_MAX, ENGINE_PROTOCOL_ORDERED, run_long},
    {"long messages, reassembled", NULL, 0, ENGINE_PROTOCOL_REASSEMBLE, run_long},
    {"long messages, chained", NULL, 0, ENGINE_PROTOCOL_CHAIN, run_long},
    {"long messages, each its own way", NULL, 4096, ENGINE_PROTOCOL_AUTO, run_long_protocols},
    {"messages both ways, spilled", NULL, UINT64_MAX, ENGINE_PROTOCOL_AUTO, run_message_flood},
    {"no handler", NULL, UINT64_MAX, ENGINE_PROTOCOL_AUTO, run_no_handler},
    {"who was asked dies", NULL, UINT64_MAX, ENGINE_PROTOCOL_AUTO, run_asked_dies},
};

/* Runs one scenario: with a fork at every store (stop 0), or with a stop at one. A child does not
 * return. NULL or what failed. */
static const char *run(size_t number, uint32_t victim, uint64_t stop, uint64_t again, FILE *trace,
                       struct crash_guard *g, const char *name, char failure[400])
{
    static struct world_path path;
    static struct driver driver;
    static struct flood flood;
    const struct scenario *s = &scenarios[number];
    struct world_options options = {
        .seed = 7 + number,
        .nodes = 2,
        .protocol = s->protocol,
        .submit_bytes = 16384,
        .trace = trace,
        .limits = {.ledger_start = 4096,
                   .ledger_max = 16384,
                   .ledger_bytes = 256 * 1024,
                   .packed_max = 256,
                   .chunks_max = 32,
                   .spill_max = 4096},
        .sim = {.ordered_write_max = s->ordered_write_max},
    };

    *g = (struct crash_guard){.victim = victim, .forking = stop == 0, .stop = stop, .again = again};
    if (world_path_open(&path, &options, 4, failure) != 0)
        return failure;
    if (driver_open(&driver, &path.path, number) != 0)
        return "no memory for the model";
    for (uint32_t from = 0; from < 4; from++)
        for (uint32_t to = 0; to < 4; to++)
            driver_remote(&driver, from, to);
    if (s->messages)
        flood_open(&flood, path.world, 4, number);
    g->world = path.world;
    path.world->reopen_rounds = 20;
    crash_guard_open(g);
    g->armed = true;
    if (s->messages)
        s->messages(&flood);
    else
        s->run(&driver);
    g->armed = false;
    crash_guard_close(g);
    if (path.world->failed)
        driver_fail(&driver, "%s", path.world->failure);
    if (driver.failed)
        memcpy(failure, driver.failure, sizeof driver.failure);
    if (g->child) {
        if (driver.failed)
            printf("%s, node %u dies at store %llu: %s\n  again: %s --scenario %zu --victim %u "
                   "--store %llu --again %llu --trace\n",
                   s->name, victim, (unsigned long long)g->died_at, failure, name, number, victim,
                   (unsigned long long)g->died_at, (unsigned long long)g->again);
        fflush(stdout);
        _exit(driver.failed);
    }
    driver_close(&driver);
    world_path_close(&path);
    return driver.failed ? failure : NULL;
}

/* All crashes of one scenario and victim; how many went wrong. */
static uint64_t run_all_stores(size_t number, uint32_t victim, uint64_t again, const char *name)
{
    struct crash_guard g;
    char failure[400];
    const char *wrong = run(number, victim, 0, again, NULL, &g, name, failure);

    if (wrong)
        printf("%s, node %u, without a crash: %s\n", scenarios[number].name, victim, wrong);
    printf("%s, node %u: %llu stores, %llu crashes went wrong\n", scenarios[number].name, victim,
           (unsigned long long)g.stores, (unsigned long long)g.failed);
    if (g.stores < 10) {
        printf("  too few stores: is it the right node?\n");
        return 1;
    }
    return g.failed + (wrong != NULL);
}

static int run_all(uint64_t again, const char *name)
{
    pid_t pids[JOBS];
    int failed = 0;

    for (uint32_t job = 0; job < JOBS; job++) {
        fflush(stdout);
        pids[job] = fork();
        if (pids[job] == 0) {
            uint64_t wrong = 0;

            for (size_t i = job; i < 2 * COUNT(scenarios); i += JOBS) {
                wrong += run_all_stores(i / 2, i % 2, again, name);
                fflush(stdout);
            }
            _exit(wrong > 0);
        }
    }
    for (uint32_t job = 0; job < JOBS; job++) {
        int status;

        if (pids[job] < 0 || waitpid(pids[job], &status, 0) < 0 || status != 0)
            failed = 1;
    }
    return failed;
}

int main(int argc, char **argv)
{
    size_t number = COUNT(scenarios);
    uint32_t victim = 0;
    uint64_t store = 0, again = 0;
    FILE *trace = NULL;
    struct crash_guard g;
    char failure[400];
    const char *wrong;

    if (!crash_guard_supported()) {
        printf("skipped: single steps are known for x86-64 only\n");
        return SKIPPED;
    }
    for (int i = 1; i < argc; i++)
        if (i + 1 < argc && strcmp(argv[i], "--scenario") == 0)
            number = strtoul(argv[++i], NULL, 0);
        else if (i + 1 < argc && strcmp(argv[i], "--victim") == 0)
            victim = (uint32_t)strtoul(argv[++i], NULL, 0);
        else if (i + 1 < argc && strcmp(argv[i], "--store") == 0)
            store = strtoull(argv[++i], NULL, 0);
        else if (i + 1 < argc && strcmp(argv[i], "--again") == 0)
            again = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--trace") == 0)
            trace = stdout;
        else
            victim = 2;
    if (number == COUNT(scenarios) && victim == 0 && store == 0 && !trace)
        return run_all(again, argv[0]);
    if (number >= COUNT(scenarios) || victim > 1) {
        fprintf(stderr,
                "usage: %s [--again M] [--scenario 0-%zu --victim 0-1 [--store N [--trace]]]\n",
                argv[0], COUNT(scenarios) - 1);
        return 2;
    }
    if (store == 0)
        return run_all_stores(number, victim, again, argv[0]) != 0;
    wrong = run(number, victim, store, again, trace, &g, argv[0], failure);
    printf("%s, node %u, store %llu: %s\n", scenarios[number].name, victim,
           (unsigned long long)store, wrong ? wrong : "passed");
    return wrong != NULL;
}
