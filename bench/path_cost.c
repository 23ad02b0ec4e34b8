/*
 * The cost of each part of an operation's way: submission, the origin's daemon, the target's
 * daemon, the receiver. Two engines over the simulated fabric and two clients run in one process,
 * without any system call, so that instructions can be counted (bench/instructions) and a change
 * that adds work is noticed. Prints times, too; these are of one thread whose caches hold
 * everything.
 *
 *     path_cost [--size N] [--batch N] [--ops N] [--atomic]
 *
 * With --atomic the operations are exclusive ors of 8 bytes, else puts of `size` bytes.
 *
 * Thread: one.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "daemon/engine/state/state.h"
#include "proto/word_abi.h"
#include "tests/engine/world/world.h"

enum { MARKS = 64 }; /* operations, of which one asks for a local event */

struct options {
    uint32_t size, batch;
    uint64_t ops;
    bool atomic;
};

/* One run, and the time of each part of the way. */
struct run {
    struct world *world;
    const struct options *options;
    uint32_t remote;
    uint64_t submitted, marked, arrived;
    uint64_t submit_ns, probe_ns;
    uint8_t payload[4096];
};

/* The costs of each node's engine: the linker wraps engine_step. */
static uint64_t step_ns[2], step_work[2];

int __real_engine_step(struct engine *e, uint64_t now, int budget, uint64_t *deadline);
int __wrap_engine_step(struct engine *e, uint64_t now, int budget, uint64_t *deadline);

/* These are separate functions, so that instructions can be counted for each. */
int path_origin_step(struct engine *e, uint64_t now, int budget, uint64_t *deadline);
int path_target_step(struct engine *e, uint64_t now, int budget, uint64_t *deadline);
int path_submit(struct run *run);
int path_probe(struct run *run);

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

__attribute__((noinline)) int path_origin_step(struct engine *e, uint64_t now, int budget,
                                               uint64_t *deadline)
{
    return __real_engine_step(e, now, budget, deadline);
}

__attribute__((noinline)) int path_target_step(struct engine *e, uint64_t now, int budget,
                                               uint64_t *deadline)
{
    return __real_engine_step(e, now, budget, deadline);
}

int __wrap_engine_step(struct engine *e, uint64_t now, int budget, uint64_t *deadline)
{
    uint32_t self = e->config.self;
    uint64_t start = now_ns();
    int work = self == 0 ? path_origin_step(e, now, 256, deadline)
                         : path_target_step(e, now, 256, deadline);

    if (work > 0) {
        step_ns[self] += now_ns() - start;
        step_work[self]++;
    }
    return work;
}

static struct channel *channel_of(struct run *run, uint32_t client)
{
    return &run->world->clients[client].contexts[0].channel;
}

static int submit_one(struct run *run, uint16_t flags)
{
    struct channel *ch = channel_of(run, 0);

    if (run->options->atomic)
        return channel_atomic(ch, word_code(WORD_XOR, WORD_U64), run->remote, 0, run->payload,
                              sizeof(uint64_t), run->submitted, run->submitted, flags);
    return channel_put(ch, run->remote, 0, run->payload, run->options->size, run->submitted,
                       run->submitted, flags);
}

/* Submits a batch, or as much of it as there is room for. 0, or a negative errno. */
__attribute__((noinline)) int path_submit(struct run *run)
{
    for (uint32_t i = 0; i < run->options->batch && run->submitted < run->options->ops; i++) {
        bool mark = (run->submitted + 1) % MARKS == 0 || run->submitted + 1 == run->options->ops;
        int rc;

        rc = submit_one(run, mark ? 0 : SUBMIT_NO_LCE);
        if (rc == -EAGAIN)
            return 0;
        if (rc < 0)
            return rc;
        run->submitted++;
    }
    return 0;
}

__attribute__((noinline)) int path_probe(struct run *run)
{
    struct pwc_event event;
    int rc;

    while ((rc = channel_probe(channel_of(run, 1), PWC_ANY, PWC_REMOTE, &event)) == 1)
        if (event.status != 0 || event.id != run->arrived++)
            return -EPROTO;
    if (rc < 0)
        return rc;
    while ((rc = channel_probe(channel_of(run, 0), PWC_ANY, PWC_LOCAL, &event)) == 1)
        run->marked++;
    return rc;
}

static int drive(struct run *run)
{
    int rc = 0;

    while (rc == 0 && run->arrived < run->options->ops) {
        uint64_t start = now_ns(), middle;

        rc = path_submit(run);
        middle = now_ns();
        run->submit_ns += middle - start;
        world_round(run->world);
        start = now_ns();
        if (rc == 0)
            rc = path_probe(run);
        run->probe_ns += now_ns() - start;
        if (run->world->failed)
            return -EPROTO;
    }
    return rc;
}

static int open_path(struct run *run)
{
    const struct world_options options = {
        .seed = 1,
        .nodes = 2,
        .submit_bytes = 1u << 18,
        .local_bytes = 1u << 20,
        .remote_bytes = 1u << 18,
        .limits = {.ops_max = 65536,
                   .chunks_max = 4096,
                   .ledger_start = 1u << 18,
                   .ledger_max = 1u << 20,
                   .ledger_bytes = 8u << 20},
        .sim = {.ordered_write_max = UINT64_MAX, .delay_max_ns = 300},
    };
    int request, rc = world_open(&options, &run->world);

    if (rc == 0)
        rc = world_client_open(run->world, 0, 0, 1);
    if (rc >= 0)
        rc = world_client_open(run->world, 1, 1, 1);
    if (rc < 0)
        return rc;
    world_settle(run->world, 100000);
    request = world_bind(run->world, 0, 0, 1, 0, &run->world->clients[1].contexts[0].key);
    if (request < 0)
        return request;
    rc = world_await(run->world, request);
    run->remote = run->world->requests[request].handle;
    return rc;
}

static int number(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
    char *end;

    *out = strtoull(text, &end, 10);
    if (*end == '\0' && *out >= least && *out <= most)
        return 0;
    fprintf(stderr, "path_cost: \"%s\" is no number from %" PRIu64 " to %" PRIu64 "\n", text, least,
            most);
    return -EINVAL;
}

static int parse(int argc, char **argv, struct options *options)
{
    static const struct option flags[] = {{"size", required_argument, NULL, 's'},
                                          {"batch", required_argument, NULL, 'b'},
                                          {"ops", required_argument, NULL, 'n'},
                                          {"atomic", no_argument, NULL, 'a'},
                                          {0}};
    uint64_t value = 0;
    int flag, rc = 0;

    *options = (struct options){.size = 8, .batch = 64, .ops = 100000};
    while (rc == 0 && (flag = getopt_long(argc, argv, "", flags, NULL)) != -1) {
        if (flag == 's')
            rc = number(optarg, 1, 1024, &value), options->size = (uint32_t)value;
        else if (flag == 'b')
            rc = number(optarg, 1, 4096, &value), options->batch = (uint32_t)value;
        else if (flag == 'n')
            rc = number(optarg, 1, UINT32_MAX, &options->ops);
        else if (flag == 'a')
            options->atomic = true;
        else
            rc = -EINVAL;
    }
    if (rc == 0 && options->atomic && options->size != sizeof(uint64_t)) {
        fprintf(stderr, "path_cost: --atomic has words of 8 bytes, so --size %u is refused\n",
                options->size);
        rc = -EINVAL;
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct options options;
    struct run run = {.options = &options};
    int rc;

    if (parse(argc, argv, &options) < 0)
        return 2;
    rc = open_path(&run);
    memset(step_ns, 0, sizeof(step_ns));
    memset(step_work, 0, sizeof(step_work));
    if (rc == 0)
        rc = drive(&run);
    if (rc < 0)
        fprintf(stderr, "path_cost: %s%s%s\n", strerror(-rc),
                run.world && run.world->failed ? ": " : "",
                run.world && run.world->failed ? run.world->failure : "");
    else
        printf("{\"test\":\"path_cost\",\"size\":%u,\"batch\":%u,\"ops\":%" PRIu64
               ",\"submit_ns\":%.1f,\"origin_ns\":%.1f,\"target_ns\":%.1f,\"probe_ns\":%.1f"
               ",\"origin_steps\":%" PRIu64 ",\"target_steps\":%" PRIu64 "}\n",
               options.size, options.batch, options.ops,
               (double)run.submit_ns / (double)options.ops,
               (double)step_ns[0] / (double)options.ops, (double)step_ns[1] / (double)options.ops,
               (double)run.probe_ns / (double)options.ops, step_work[0], step_work[1]);
    if (run.world)
        world_close(run.world);
    return rc < 0;
}
