/*
 * The rates of memory between two processors, which limit all communication on one node:
 *
 *     memory_limits cache_line|slot_stream|copy|shared_word [--cpu A,B] [--iters N] [--between N]
 *
 *   cache_line   half a round trip of one cache line. This also shows how busy the machine is:
 *                other programs delay only few of the short batches.
 *   slot_stream  8-byte slots in a ring of 64 KiB, one writer and one reader
 *   copy         memcpy of 1 MiB between two mappings by one process
 *   shared_word  fetch-and-add on a word to which another process adds all the time; with --between
 *                N multiplications are done between two of our additions, in place of a call's code
 *
 * Prints one JSON line. Both processes spin without yielding, each on a processor of its own.
 */
#include "bench/limits/pair.h"

#include <getopt.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES  64
#define SLOTS    8192u
#define REPORTED 1024u /* the reader publishes its place once in REPORTED slots */
#define COPIED   ((size_t)1 << 20)

struct options {
    int cpus[2];
    uint64_t iterations; /* of all batches together */
    uint64_t between;    /* multiplications between two additions to the shared word */
};

/* One cache line for each direction. */
struct line_pair {
    _Alignas(64) _Atomic uint64_t there;
    _Alignas(64) _Atomic uint64_t back;
};

/* A slot holds the number of its turn, from 1, so that a slot of the turn before is not mistaken
 * for a new one. */
struct slot_ring {
    _Alignas(64) _Atomic uint64_t consumed;
    _Alignas(64) _Atomic uint64_t slots[SLOTS];
};

static uint64_t batch_of(const struct options *o)
{
    return o->iterations / BATCHES + 1;
}

static int line_answers(void *shared, const void *options)
{
    struct line_pair *line = shared;
    uint64_t turns = (BATCHES + 1) * batch_of(options);

    for (uint64_t turn = 1; turn <= turns; turn++) {
        while (atomic_load_explicit(&line->there, memory_order_acquire) != turn)
            ;
        atomic_store_explicit(&line->back, turn, memory_order_release);
    }
    return 0;
}

static int line_asks(void *shared, const void *options)
{
    struct line_pair *line = shared;
    double halves[BATCHES + 1];
    uint64_t turn = 0, batch = batch_of(options);

    for (int i = 0; i <= BATCHES; i++) {
        uint64_t start = pair_now();

        for (uint64_t n = 0; n < batch; n++) {
            atomic_store_explicit(&line->there, ++turn, memory_order_release);
            while (atomic_load_explicit(&line->back, memory_order_acquire) != turn)
                ;
        }
        halves[i] = (double)(pair_now() - start) / (double)batch / 2000;
    }

    double median = pair_median(halves + 1, BATCHES); /* the first batch warms up */

    (void)printf("{\"test\":\"cache_line\",\"min_us\":%.4f,\"p50_us\":%.4f}\n", halves[1], median);
    return 0;
}

static int slots_read(void *shared, const void *options)
{
    struct slot_ring *ring = shared;
    const struct options *o = options;

    for (uint64_t turn = 1; turn <= o->iterations; turn++) {
        while (atomic_load_explicit(&ring->slots[turn % SLOTS], memory_order_acquire) != turn)
            ;
        if (turn % REPORTED == 0 || turn == o->iterations)
            atomic_store_explicit(&ring->consumed, turn, memory_order_release);
    }
    return 0;
}

static uint64_t wait_consumed(struct slot_ring *ring, uint64_t least)
{
    uint64_t consumed;

    do
        consumed = atomic_load_explicit(&ring->consumed, memory_order_acquire);
    while (consumed < least);
    return consumed;
}

static int slots_written(void *shared, const void *options)
{
    struct slot_ring *ring = shared;
    const struct options *o = options;
    uint64_t start = pair_now(), consumed = 0;

    for (uint64_t turn = 1; turn <= o->iterations; turn++) {
        if (turn - consumed >= SLOTS)
            consumed = wait_consumed(ring, turn - SLOTS + 1);
        atomic_store_explicit(&ring->slots[turn % SLOTS], turn, memory_order_release);
    }
    (void)wait_consumed(ring, o->iterations);
    (void)printf("{\"test\":\"slot_stream\",\"rate_mps\":%.3f}\n",
                 (double)o->iterations * 1000 / (double)(pair_now() - start));
    return 0;
}

static int copies(void *shared, const void *options)
{
    uint8_t *from = shared, *to = from + COPIED;
    double rates[BATCHES + 1];
    uint64_t batch = batch_of(options);

    for (int i = 0; i <= BATCHES; i++) {
        uint64_t start = pair_now();

        for (uint64_t n = 0; n < batch; n++) {
            from[n % COPIED]++; /* so that no copy can be left out */
            memcpy(to, from, COPIED);
            __asm__ volatile("" ::: "memory");
        }
        rates[i] = (double)(batch * COPIED) * 1000 / (double)(pair_now() - start);
    }
    (void)printf("{\"test\":\"copy\",\"size\":%zu,\"bw_mbps\":%.1f}\n", COPIED,
                 pair_median(rates + 1, BATCHES));
    return 0;
}

/* A word, and on another cache line the flags of begin and end. */
struct shared_word {
    _Alignas(64) _Atomic uint64_t word;
    _Alignas(64) atomic_bool begun, ended;
};

static int word_contended(void *shared, const void *options)
{
    struct shared_word *s = shared;

    while (!atomic_load_explicit(&s->ended, memory_order_relaxed)) {
        (void)atomic_fetch_add(&s->word, 1);
        atomic_store_explicit(&s->begun, true, memory_order_relaxed);
    }
    return 0;
}

/* Multiplies `count` times; each multiplication needs the result of the one before. */
static uint64_t word_between(uint64_t value, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        value = value * UINT64_C(6364136223846793005) + 1;
    return value;
}

/* Returns how long these multiplications take, in ns. */
static double word_between_time(uint64_t count)
{
    enum { TIMES = 100000 };
    uint64_t value = 1, start = pair_now();

    for (int i = 0; i < TIMES; i++)
        value = word_between(value, count);
    return value == 0 ? 0 : (double)(pair_now() - start) / TIMES;
}

static int word_added(void *shared, const void *options)
{
    const struct options *o = options;
    struct shared_word *s = shared;
    double each[BATCHES];
    uint64_t batch = batch_of(options), last = 0;

    while (!atomic_load(&s->begun))
        ;
    for (int i = 0; i < BATCHES; i++) {
        uint64_t start = pair_now();

        for (uint64_t n = 0; n < batch; n++) {
            uint64_t before = atomic_fetch_add(&s->word, 1);

            if (before < last || word_between(before, o->between) == 0) /* used, so not left out */
                return 1;
            last = before;
        }
        each[i] = (double)(pair_now() - start) / (double)batch;
    }
    atomic_store(&s->ended, true);
    (void)printf("{\"test\":\"shared_word\",\"between_ns\":%.2f,\"p50_ns\":%.2f}\n",
                 word_between_time(o->between), pair_median(each, BATCHES));
    return 0;
}

struct limit {
    const char *name;
    pair_role roles[2];
    int count;
    size_t memory;
    uint64_t iterations;
};

static const struct limit limits[] = {
    {"cache_line", {line_answers, line_asks}, 2, sizeof(struct line_pair), 64 * 500},
    {"slot_stream", {slots_read, slots_written}, 2, sizeof(struct slot_ring), 20000000},
    {"copy", {copies}, 1, 2 * COPIED, 4000},
    {"shared_word", {word_contended, word_added}, 2, sizeof(struct shared_word), 4000000},
};

static int usage(void)
{
    (void)fprintf(stderr, "usage: memory_limits cache_line|slot_stream|copy|shared_word "
                          "[--cpu A,B] [--iters N] [--between N]\n");
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {
        {"cpu", required_argument, NULL, 'c'},
        {"iters", required_argument, NULL, 'n'},
        {"between", required_argument, NULL, 'b'},
        {NULL, 0, NULL, 0},
    };
    struct options options = {.cpus = {0, 1}};
    const struct limit *limit = NULL;
    void *shared;
    int c;

    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (c == 'n')
            options.iterations = strtoull(optarg, NULL, 0);
        else if (c == 'b')
            options.between = strtoull(optarg, NULL, 0);
        else if (c != 'c' || pair_parse_cpus("memory_limits", optarg, options.cpus))
            return usage();
    }
    for (size_t i = 0; optind + 1 == argc && i < sizeof(limits) / sizeof(limits[0]); i++)
        if (strcmp(argv[optind], limits[i].name) == 0)
            limit = &limits[i];
    if (!limit)
        return usage();
    if (options.iterations == 0)
        options.iterations = limit->iterations;
    shared = pair_memory(limit->memory);
    if (!shared) {
        perror("memory_limits: mmap");
        return 1;
    }
    return pair_run(limit->roles, options.cpus, limit->count, shared, &options);
}
