/*
 * Uses of handlers, carried out by the target's daemon or by its client, for bench/handlers:
 *
 *     handler_use USE SIDE MANNER SIZE ITERATIONS [BLOCK [placed]]
 *
 * USE is a row of the table in uses.c. SIDE is "client", or the object file of the handlers. MANNER
 * says what the target's client does: "polls" (it waits in pwc_wait), "sleeps" (the same, and the
 * origin pauses before each request for longer than pwc_wait polls) or "computes" (20 ms without a
 * call, again and again). Rank 0 is the origin. Rank 0 measures the time from its request until it
 * knows that all is done, and prints the median in a JSON line.
 *
 *     rank 0 --put, message--> data of rank 1 ... --answer, without bytes mostly--> answers of 0
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bench/handler_use/use.h"

enum { WARM_UP = 10 /* a tenth */, PAUSE_US = 1000, COMPUTE_US = 20000, RANKS_MAX = 32 };

int checked(const char *call, int rc)
{
    if (rc < 0) {
        (void)fprintf(stderr, "%s: %s\n", call, pwc_strerror(rc));
        exit(1);
    }
    return rc;
}

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1000;
}

unsigned char *data_at(const struct bench *b, size_t offset)
{
    return (unsigned char *)pwc_region_addr(b->data) + offset;
}

void put(struct bench *b, pwc_remote *to, size_t offset, const void *from, size_t size, uint64_t id,
         unsigned flags)
{
    struct pwc_event event;
    int rc;

    while ((rc = pwc_put(to, offset, from, size, PWC_CID_NONE, pwc_cid_u64(id), flags)) ==
           -EAGAIN) {
        if (CHECK(pwc_probe(b->ctx, PWC_ANY, PWC_LOCAL, &event)) == 1)
            checked("a put", event.status);
        else
            sched_yield(); /* the daemon is on this processor */
    }
    CHECK(rc);
}

/* ---- start -------------------------------------------------------------------------------------
 */

struct keys {
    struct pwc_key data, answers;
};

static pwc_program *load(struct bench *b, const char *path)
{
    static char elf[1 << 20];
    FILE *file = fopen(path, "rb");
    pwc_program *program;
    size_t size;

    if (!file) {
        perror(path);
        exit(1);
    }
    size = fread(elf, 1, sizeof(elf), file);
    (void)fclose(file);
    CHECK(pwc_program_load(b->client, elf, size, NULL, &program));
    return program;
}

/* Makes the offload. Its targets are rank 0, then the ranks that this one sends to. */
static void offload(struct bench *b, const char *path)
{
    pwc_remote *targets[1 + DOWN_MAX] = {b->home};
    struct pwc_offload_attr attr = {.flags = PWC_OFFLOAD_QUIET, .state_length = STATE};

    memcpy(targets + 1, b->down, sizeof(b->down));
    attr.targets = targets;
    attr.target_count = 1 + b->downs;
    attr.program = load(b, path);
    attr.flags |= b->placed ? PWC_OFFLOAD_PLACED : 0;
    attr.index = b->use->at_index ? INDEX : 0;
    *(b->use->at_index ? &attr.host : &attr.region) = b->data;
    CHECK(pwc_alloc(b->client, STATE, PWC_REMOTE_RW, &attr.state));
    b->use->fill(b);
    memcpy(pwc_region_addr(attr.state), b->state, STATE);
    CHECK(pwc_offload_create(b->ctx, &attr, &b->offload));
}

/* The ranks bind in turn, the highest first, each the ranks that it sends to: a region's offload
 * must be there before the region is bound, and senders have lower ranks. */
static void bind_in_turn(struct bench *b, const struct keys *keys, const char *side)
{
    uint32_t ranks[DOWN_MAX];

    b->downs = b->use->downs(b, ranks);
    for (uint32_t turn = b->ranks; turn-- > 0;) {
        if (turn == b->me) {
            CHECK(pwc_bind(b->ctx, pwc_peer_of(0, 0), &keys[0].answers, &b->home));
            for (uint32_t i = 0; i < b->downs; i++)
                CHECK(
                    pwc_bind(b->ctx, pwc_peer_of(ranks[i], 0), &keys[ranks[i]].data, &b->down[i]));
            if (b->handled && b->me > 0)
                offload(b, side);
        }
        CHECK(pwc_barrier(b->ctx));
    }
}

static void attach(struct bench *b, struct keys *keys, const char *side)
{
    size_t bytes;

    CHECK(pwc_init(NULL, &b->client));
    CHECK(pwc_ctx_create(b->client, NULL, &b->ctx));
    b->me = pwc_rank(b->client);
    b->ranks = pwc_size(b->client);
    checked("the number of ranks", b->ranks > RANKS_MAX ? -E2BIG : 0);
    bytes = b->use->bytes(b);
    CHECK(pwc_alloc(b->client, bytes, PWC_REMOTE_RW, &b->data));
    memset(pwc_region_addr(b->data), 0, bytes);
    CHECK(pwc_alloc(b->client, b->size, PWC_REMOTE_RW, &b->answers));
    CHECK(pwc_region_key(b->data, &keys[b->me].data));
    CHECK(pwc_region_key(b->answers, &keys[b->me].answers));
    CHECK(pwc_am_register(b->ctx, INDEX, on_message, b));
    CHECK(pwc_exchange(b->ctx, &keys[b->me], sizeof(keys[0]), keys));
    bind_in_turn(b, keys, side);
}

/* ---- the run -----------------------------------------------------------------------------------
 */

static void await(struct bench *b, uint32_t count)
{
    unsigned kinds = PWC_REMOTE | PWC_LOCAL | PWC_MESSAGE;
    struct pwc_event event;

    while (count-- > 0) {
        CHECK(pwc_wait(b->ctx, PWC_ANY, kinds, &event, -1));
        checked("a request", event.status);
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Rank 0 runs all requests. Returns the median time. */
static double run(struct bench *b)
{
    const struct timespec pause = {.tv_nsec = PAUSE_US * 1000};
    uint64_t warm = b->iterations / WARM_UP + 1;
    uint32_t count = b->use->answers(b);
    double *samples = calloc(b->iterations, sizeof(*samples)), median;

    for (uint64_t i = 0; samples && i < warm + b->iterations; i++) {
        double start;

        if (b->sleeps)
            nanosleep(&pause, NULL);
        start = now_us();
        b->use->ask(b);
        await(b, count);
        if (i >= warm)
            samples[i - warm] = now_us() - start;
    }
    if (!samples)
        exit(1);
    qsort(samples, b->iterations, sizeof(*samples), by_value);
    median = samples[b->iterations / 2];
    free(samples);
    return median;
}

static void show_fault(const struct pwc_event *event)
{
    const struct pwc_offload_event *fault = event->data;

    (void)fprintf(stderr, "handler %u: fault %u at instruction %u, value %llu\n",
                  (unsigned)fault->stage, (unsigned)fault->fault, (unsigned)fault->place,
                  (unsigned long long)fault->value);
    exit(1);
}

/* All other ranks serve until STOP. With handlers only STOP and faults reach the client. */
static void serve(struct bench *b)
{
    unsigned kinds = PWC_REMOTE | PWC_OFFLOAD | PWC_LOCAL;
    struct pwc_event event;

    for (;;) {
        double end = now_us() + COMPUTE_US;

        while (b->computes && now_us() < end)
            continue;
        while (CHECK(b->computes ? pwc_probe(b->ctx, PWC_ANY, kinds, &event)
                                 : pwc_wait(b->ctx, PWC_ANY, kinds, &event, -1)) == 1) {
            if (event.kind == PWC_OFFLOAD)
                show_fault(&event);
            checked("a request", event.status);
            if (event.id == STOP)
                return;
            b->use->serve(b, event.id);
        }
    }
}

static void stop_others(struct bench *b, const struct keys *keys)
{
    for (uint32_t rank = 1; rank < b->ranks; rank++) {
        pwc_remote *other;

        CHECK(pwc_bind(b->ctx, pwc_peer_of(rank, 0), &keys[rank].answers, &other));
        put(b, other, 0, NULL, 0, STOP, PWC_NO_LCE);
    }
}

static bool parse(struct bench *b, int argc, char **argv)
{
    if (argc < 6 || argc > 8)
        return false;
    for (size_t i = 0; i < use_count; i++)
        if (strcmp(argv[1], uses[i].name) == 0)
            b->use = &uses[i];
    b->handled = strcmp(argv[2], "client") != 0;
    b->sleeps = strcmp(argv[3], "sleeps") == 0;
    b->computes = strcmp(argv[3], "computes") == 0;
    b->size = strtoull(argv[4], NULL, 10);
    b->iterations = strtoull(argv[5], NULL, 10);
    b->placed = argc == 8 && strcmp(argv[7], "placed") == 0;
    b->block = argc >= 7 ? strtoull(argv[6], NULL, 10) : b->size;
    return b->use && b->size > 0 && b->iterations > 0 && b->block > 0;
}

int main(int argc, char **argv)
{
    static struct bench b;
    static struct keys keys[RANKS_MAX];
    double median = 0;

    if (!parse(&b, argc, argv)) {
        (void)fprintf(
            stderr,
            "usage: handler_use USE SIDE MANNER SIZE ITERATIONS [BLOCK [placed]], see use.c\n");
        return 2;
    }
    attach(&b, keys, argv[2]);
    if (b.me == 0) {
        median = run(&b);
        stop_others(&b, keys);
    } else {
        serve(&b);
    }
    CHECK(pwc_barrier(b.ctx));
    if (b.me == 0)
        (void)printf("{\"use\":\"%s\",\"p50_us\":%.3f}\n", argv[1], median);
    if (b.offload)
        CHECK(pwc_offload_destroy(b.offload));
    CHECK(pwc_finalize(b.client));
    return 0;
}
