/* Sets the stress up, drives it, and prints the totals of what was moved and compared. */
#include "tools/pwcperf/stress/stress.h"
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include "tools/pwcperf/pattern.h"
#include "tools/pwcperf/report.h"

#define EVENTS_A_ROUND 64
#define WAIT_MS        20 /* then look at everything again */

static int bind_all(struct stress *stress)
{
    struct world *world = stress->world;
    struct pwc_key *keys = calloc(world->size, sizeof(*keys));
    stress->remotes = calloc(world->size, sizeof(pwc_remote *));
    int rc = keys != NULL && stress->remotes != NULL
                 ? world_keys(world, stress->region, keys)
                 : world_error(world, -ENOMEM, "exchanging keys");
    for (uint32_t i = 0; rc == 0 && i < world->size; i++) {
        rc = pwc_bind(world->ctx, pwc_peer_of(i, 0), &keys[i], &stress->remotes[i]);
        if (rc < 0)
            world_error(world, rc, "binding rank %u", i);
    }
    free(keys);
    return rc;
}

static int open_all(struct stress *stress)
{
    struct world *world = stress->world;
    uint64_t ops = world->options->ops / world->size;
    stress->shape = (struct stress_shape){
        .seed = world->options->seed,
        .ranks = world->size,
        .ops = ops > 0 ? ops : 1,
    };
    if (stress->shape.ops > STRESS_OPS_MAX)
        return world_refuse(world, "--ops %" PRIu64 ": at most %" PRIu64 " a rank",
                            world->options->ops, STRESS_OPS_MAX);
    uint64_t bytes = STRESS_SLICE * (1 + (uint64_t)world->size);
    int rc = pwc_alloc(world->client, bytes, PWC_REMOTE_RW, &stress->region);
    if (rc == 0)
        rc = pwc_alloc(world->client, STRESS_POOL, PWC_REMOTE_RW, &stress->pool);
    if (rc < 0)
        return world_error(world, rc, "allocating %" PRIu64 " bytes", bytes + STRESS_POOL);
    pattern_fill(pwc_region_addr(stress->region), STRESS_SLICE,
                 stress_library_seed(&stress->shape, world->rank), 0);
    rc = stress_outbound_open(stress);
    if (rc == 0)
        rc = stress_inbound_open(stress);
    if (rc == 0)
        rc = bind_all(stress);
    if (rc == 0) {
        rc = pwc_barrier(world->ctx); /* libraries are filled */
        if (rc < 0)
            world_error(world, rc, "waiting for all ranks");
    }
    return rc;
}

static void close_all(struct stress *stress)
{
    for (uint32_t i = 0; stress->remotes != NULL && i < stress->world->size; i++)
        if (stress->remotes[i] != NULL)
            pwc_unbind(stress->remotes[i]);
    free(stress->remotes);
    stress_inbound_close(stress);
    stress_outbound_close(stress);
    if (stress->pool != NULL)
        pwc_region_free(stress->pool);
    if (stress->region != NULL)
        pwc_region_free(stress->region);
}

static int take_event(struct stress *stress, const struct pwc_event *event)
{
    struct world *world = stress->world;
    uint32_t peer = pwc_peer_rank(event->peer);
    bool local = event->kind == PWC_LOCAL;
    if (event->status < 0)
        return world_error(world, event->status, "an operation with rank %u failed", peer);
    if (peer >= world->size)
        return world_wrong(world, "an event of rank %u: there is none", peer);
    struct stress_id id = {.origin = local ? world->rank : peer};
    if (stress_id_decode(&stress->shape, event, &id) < 0)
        return world_wrong(world, "the id of an event of rank %u is broken", peer);
    if (local)
        return stress_outbound_event(stress, event, &id);
    if (id.kind == STRESS_COMPARED)
        return stress_outbound_compared(stress, peer, id.number);
    if (id.kind == STRESS_OPERATION)
        return stress_inbound_event(stress, event, &id);
    return world_wrong(world, "a remote event of kind %u from rank %u was not due", id.kind, peer);
}

/* Takes up to a round of events. Returns how many, or an error. Waits for the first one when asked
 * to. */
static int take_events(struct stress *stress, int wait_ms)
{
    struct world *world = stress->world;
    struct pwc_event event;
    int taken = 0, rc = 0;
    while (taken < EVENTS_A_ROUND) {
        rc = wait_ms > 0 && taken == 0 ? pwc_wait(world->ctx, PWC_ANY, 0, &event, wait_ms)
                                       : pwc_probe(world->ctx, PWC_ANY, 0, &event);
        if (rc < 0)
            return world_error(world, rc, "waiting for events");
        if (rc == 0)
            break;
        rc = take_event(stress, &event);
        if (rc < 0)
            return rc;
        taken++;
    }
    return taken;
}

/* Does one round of everything. Returns the work done. */
static int round_of_work(struct stress *stress, bool idle, bool *stuck)
{
    *stuck = false;
    int submitted = stress_outbound_submit(stress, stuck);
    if (submitted < 0)
        return submitted;
    int acknowledged = stress_inbound_acknowledge(stress, idle, stuck);
    if (acknowledged < 0)
        return acknowledged;
    bool sleep = idle && submitted == 0 && acknowledged == 0 && !*stuck;
    int taken = take_events(stress, sleep ? WAIT_MS : 0);
    return taken < 0 ? taken : submitted + acknowledged + taken;
}

static int drive(struct stress *stress)
{
    struct world *world = stress->world;
    struct progress progress;
    uint64_t last_work = now_ns();
    bool idle = false, stuck = false;
    int rc = 0;
    progress_start(&progress, world, "operations of rank 0", stress->shape.ops);
    while (rc >= 0 && !(stress_outbound_done(stress) && stress_inbound_done(stress))) {
        rc = round_of_work(stress, idle, &stuck);
        idle = rc == 0;
        if (rc > 0) {
            last_work = now_ns();
        } else if (rc == 0) {
            if (stuck)
                sched_yield();
            if (now_ns() - last_work > world->options->timeout_s * UINT64_C(1000000000))
                rc = world_error(world, -ETIMEDOUT,
                                 "nothing happened for %u s: %" PRIu64 " operations submitted, %s",
                                 world->options->timeout_s, stress->totals.operations,
                                 stress_outbound_done(stress) ? "events of others are missing"
                                                              : "some of our own have not ended");
        }
        progress_at(&progress, stress->totals.operations);
    }
    progress_end(&progress);
    return rc < 0 ? rc : 0;
}

/* When all ranks are done, any event that still comes is one too many. */
static int expect_silence(struct stress *stress)
{
    struct world *world = stress->world;
    struct pwc_event event;
    int rc = pwc_barrier(world->ctx);
    if (rc < 0)
        return world_error(world, rc, "waiting for all ranks");
    rc = pwc_wait(world->ctx, PWC_ANY, 0, &event, WAIT_MS);
    if (rc > 0)
        return world_wrong(world, "an event of rank %u after the end", pwc_peer_rank(event.peer));
    return rc < 0 ? world_error(world, rc, "waiting for events") : 0;
}

static void print(const struct stress *stress, const struct stress_totals *t, double seconds)
{
    if (stress->world->options->json)
        printf("{\"test\":\"stress\",\"ranks\":%u,\"seed\":%" PRIu64 ",\"operations\":%" PRIu64
               ",\"puts\":%" PRIu64 ",\"gets\":%" PRIu64 ",\"read_backs\":%" PRIu64
               ",\"bytes\":%" PRIu64 ",\"compared_bytes\":%" PRIu64 ",\"local_events\":%" PRIu64
               ",\"remote_events\":%" PRIu64 ",\"seconds\":%.3f}\n",
               stress->world->size, stress->shape.seed, t->operations, t->puts, t->gets,
               t->read_backs, t->bytes, t->compared_bytes, t->local_events, t->remote_events,
               seconds);
    else
        printf("stress: %u ranks, seed %" PRIu64 ": %" PRIu64 " operations (%" PRIu64
               " puts, %" PRIu64 " gets, %" PRIu64 " read back), %.1f MB moved, %.1f MB compared,\n"
               "        %" PRIu64 " local and %" PRIu64
               " remote events in %.1f s: none lost, doubled, out of order or wrong\n",
               stress->world->size, stress->shape.seed, t->operations, t->puts, t->gets,
               t->read_backs, (double)t->bytes / 1e6, (double)t->compared_bytes / 1e6,
               t->local_events, t->remote_events, seconds);
}

static int report(struct stress *stress, double seconds)
{
    struct world *world = stress->world;
    struct stress_totals *all = calloc(world->size, sizeof(*all)), sum = {0};
    if (all == NULL)
        return world_error(world, -ENOMEM, "gathering totals");
    int rc = pwc_exchange(world->ctx, &stress->totals, sizeof(*all), all);
    if (rc < 0)
        world_error(world, rc, "gathering totals");
    for (uint32_t i = 0; i < world->size; i++) {
        sum.operations += all[i].operations;
        sum.puts += all[i].puts;
        sum.gets += all[i].gets;
        sum.bytes += all[i].bytes;
        sum.read_backs += all[i].read_backs;
        sum.local_events += all[i].local_events;
        sum.remote_events += all[i].remote_events;
        sum.compared_bytes += all[i].compared_bytes;
    }
    if (rc == 0 && world->rank == 0)
        print(stress, &sum, seconds);
    free(all);
    return rc;
}

int stress_run(struct world *world)
{
    struct stress stress = {.world = world};
    int rc = open_all(&stress);
    uint64_t started = now_ns();
    if (rc == 0)
        rc = drive(&stress);
    if (rc == 0)
        rc = expect_silence(&stress);
    if (rc == 0)
        rc = report(&stress, (double)(now_ns() - started) / 1e9);
    close_all(&stress);
    return rc;
}
