/* Scenarios with calls of the control thread during which a node may die (crash_control.h). Thread:
 * one. */
#include "tests/engine/world/crash/crash_control.h"

#include <errno.h>
#include <string.h>
#include "tests/engine/world/paths/world_path.h"

#define ROUNDS_MAX 100000u

static struct world *world_of(const struct driver *d)
{
    return ((struct world_path *)d->path->context)->world;
}

static void note_failure(struct driver *d, const char *what, int rc)
{
    if (world_of(d)->failed)
        driver_fail(d, "%s", world_of(d)->failure);
    else if (rc < 0)
        driver_fail(d, "%s: %s", what, strerror(-rc));
}

static void turns(struct driver *d, uint32_t count)
{
    while (count-- > 0 && driver_turn(d))
        ;
}

static void submit_some(struct driver *d, uint32_t from, uint32_t to, int count)
{
    for (int i = 0; i < count; i++)
        driver_submit(d, driver_random_op(d, from, to));
}

/* Binds, uses and frees remotes, in both directions, in the middle of operations too. */
static void run_bind(struct driver *d)
{
    for (int i = 0; i < 2; i++) {
        driver_bind(d, 0, 1);
        submit_some(d, 0, 1, 2);
        driver_unbind(d, 0, 1);
        driver_bind(d, 1, 0);
        driver_submit(d, driver_random_op(d, 1, 0));
        driver_unbind(d, 1, 0);
    }
    driver_finish(d);
}

/* A bind that cannot succeed, and one to a context of the same node. */
static void run_bind_refused(struct driver *d)
{
    struct pwc_key key;
    uint32_t remote;
    int rc = d->path->calls->key(d->path->context, 1, 0, &key);

    key.secret[3] ^= 1;
    for (int i = 0; i < 2 && rc == 0; i++) {
        int refusal = d->path->calls->bind(d->path->context, 0, 1, &key, &remote);

        rc = refusal == -EKEYREJECTED ? 0 : -EBADMSG;
    }
    note_failure(d, "bind with a wrong key", rc);
    driver_bind(d, 0, 2);
    driver_submit(d, driver_random_op(d, 0, 2));
    driver_finish(d);
}

static void await_withdrawal(struct driver *d, uint32_t end)
{
    for (uint32_t i = 0; i < ROUNDS_MAX && !d->failed; i++) {
        if (d->path->calls->withdrawn(d->path->context, end))
            return;
        if (!driver_turn(d))
            driver_fail(d, "withdrawal does not end");
    }
}

static void run_region(struct driver *d)
{
    for (uint32_t end = 0; end < 2; end++) {
        struct world *w = world_of(d);

        submit_some(d, 1 - end, end, 2);
        for (uint32_t i = 0; i < d->model.op_count; i++)
            d->model.ops[i].shaken = true;
        note_failure(d, "withdraw", d->path->calls->withdraw(d->path->context, end));
        await_withdrawal(d, end);
        note_failure(d, "region",
                     world_region_open(w, end, 0, ENGINE_REMOTE_READ | ENGINE_REMOTE_WRITE,
                                       &w->clients[end].contexts[0].key));
        w->clients[end].contexts[0].region_open = true;
        driver_bind(d, 1 - end, end);
        driver_submit(d, driver_random_op(d, 1 - end, end));
        driver_finish(d);
    }
}

static void run_segment(struct driver *d)
{
    struct world *w = world_of(d);

    for (uint32_t i = 0; i < 4 && !d->failed; i++) {
        note_failure(d, "segment", world_spare_open(w, i % 2));
        turns(d, i / 2 * 20);
        note_failure(d, "segment's end", world_spare_close(w, i % 2));
        for (uint32_t k = 0; w->clients[i % 2].segments[WORLD_SPARE].open && !d->failed; k++)
            if (!driver_turn(d) || k > ROUNDS_MAX)
                driver_fail(d, "a segment does not close");
    }
    driver_finish(d);
}

/* A context of each node closes with operations under way, and is opened again. */
static void run_session(struct driver *d)
{
    for (uint32_t end = 0; end < 2; end++) {
        submit_some(d, 0, 1, 3);
        submit_some(d, 1, 0, 3);
        model_dead(&d->model, end);
        note_failure(d, "close", d->path->calls->close(d->path->context, end));
        for (uint32_t i = 0; i < d->model.op_count; i++)
            driver_finish_one(d, i);
        turns(d, 300);
        if (!d->failed)
            note_failure(d, "open", d->path->calls->open(d->path->context, end));
        model_again(&d->model, end);
        for (uint32_t other = 0; other < d->path->ends; other++)
            d->remotes[end][other].bound = d->remotes[other][end].bound = false;
    }
    driver_submit(d, driver_random_op(d, 0, 1));
    driver_submit(d, driver_random_op(d, 1, 0));
    driver_finish(d);
}

/* New clients of each node attach, are bound to, and leave. */
static void run_client(struct driver *d)
{
    struct world *w = world_of(d);

    for (uint32_t node = 0; node < 2 && !d->failed; node++) {
        int client = world_client_open(w, node, 8 + node, 1), request;

        if (client < 0)
            break;
        request =
            world_bind(w, 1 - node, 0, (uint32_t)client, 0, &w->clients[client].contexts[0].key);
        if (request >= 0)
            note_failure(d, "bind to the new one", world_await(w, request));
        world_client_close(w, (uint32_t)client);
        for (uint32_t i = 0; w->clients[client].open && !d->failed; i++)
            if (!driver_turn(d) || i > ROUNDS_MAX)
                driver_fail(d, "a client does not end");
    }
    note_failure(d, "clients", 0);
    driver_submit(d, driver_random_op(d, 0, 1));
    driver_finish(d);
}

/* The link between the nodes breaks and is made again, without any fault of the fabric: the control
 * thread's calls do both. */
static void run_link(struct driver *d)
{
    for (int i = 0; i < 3; i++) {
        submit_some(d, 0, 1, 2);
        submit_some(d, 1, 0, 2);
        turns(d, (uint32_t)i * 8);
        world_link_break(world_of(d), 0, 1);
    }
    driver_finish(d);
}

/* The peer is given up with operations under way, and comes back: remotes that are bound again
 * work. */
static void run_lost(struct driver *d)
{
    submit_some(d, 0, 1, 3);
    submit_some(d, 1, 0, 3);
    turns(d, 6);
    for (uint32_t a = 0; a < 4; a += 2)
        for (uint32_t b = 1; b < 4; b += 2)
            model_shake(&d->model, a, b);
    world_link_lost(world_of(d), 0, 1);
    for (uint32_t i = 0; i < d->model.op_count; i++)
        driver_finish_one(d, i);
    driver_bind(d, 0, 1);
    driver_bind(d, 1, 0);
    driver_submit(d, driver_random_op(d, 0, 1));
    driver_submit(d, driver_random_op(d, 1, 0));
    driver_finish(d);
}

/* All clients leave, with binds of all to all and operations in flight. */
static void run_leave(struct driver *d)
{
    submit_some(d, 0, 1, 2);
    submit_some(d, 1, 2, 2);
    for (uint32_t end = 0; end < 4; end++)
        model_dead(&d->model, end);
    if (!d->failed)
        world_leave(world_of(d));
    note_failure(d, "leaving", 0);
}

const struct crash_scenario crash_control_scenarios[] = {
    {"control: bind", run_bind, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"control: bind refused", run_bind_refused, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"control: region", run_region, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"control: segment", run_segment, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"control: context", run_session, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"control: client", run_client, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"control: link", run_link, 0, ENGINE_PROTOCOL_CHAIN, 1, NULL, 0},
    {"control: peer given up", run_lost, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"control: all leave", run_leave, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
};
const size_t crash_control_count = sizeof crash_control_scenarios / sizeof *crash_control_scenarios;
