/*
 * Collectives: how long they take, how far they continue while the program computes, and how much
 * longer the program computes because of them.
 *
 *     collective FIGURE KIND BYTES ITERATIONS [RANKS_A_PROCESSOR]
 *
 * KIND is barrier, bcast or allreduce, FIGURE one of the list below. Ranks are pinned to the
 * processors 0 and 1 in turn, RANKS_A_PROCESSOR at a time. Rank 0 prints one JSON line, with a mean
 * over all ranks, and for at_once its own:
 *
 *     latency   us            blocking calls (calls_do), one after the other; all other figures
 *                             are of begin and wait
 *     overlap   percent       as OSU's programs have it: the rank computes between begin and wait
 *                             for the time that a collective takes alone. The figure is the part of
 *                             this time that the call and its wait do not take in addition.
 *     overlap_of_work  percent   the same for a fixed amount of computing, whose time is measured
 *                             without collectives. So the processor time that a daemon takes from
 *                             the computing counts, too.
 *     at_once   us            begin and wait of rank 0, while the others compute for 300 us between
 *                             begin and wait: a rank that computes must not delay others
 *     added     us            the time that a collective adds to 1 ms of computing between begin
 *                             and wait
 */
#include "bench/collective/calls.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UP = 10 /* a tenth */, TRIES = 5, ADDED_US = 1000, OTHERS_US = 300, PROCESSORS = 2 };

static double time_us(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1000;
}

static double now_us(void)
{
    return time_us(CLOCK_MONOTONIC);
}

/* ---- computing ------------------------------------------------------------------------------- */

/* Computes for some nanoseconds in each unit. The compiler must assume that the empty statement
 * changes x: else it would leave the loop out, because x is not used. */
static void compute(long units)
{
    uint64_t x = 1;

    for (long i = 0; i < units; i++) {
        x = x * 6364136223846793005u + 1;
        __asm__ volatile("" : "+r"(x));
    }
}

/* Returns how many units of work this processor does in a microsecond: the most of some tries. */
static double units_a_us(void)
{
    const long units = 1000000;
    double most = 0;

    for (int i = 0; i < TRIES; i++) {
        double start = time_us(CLOCK_THREAD_CPUTIME_ID), took;

        compute(units);
        took = time_us(CLOCK_THREAD_CPUTIME_ID) - start;
        if ((double)units / took > most)
            most = (double)units / took;
    }
    return most;
}

/* ---- figures --------------------------------------------------------------------------------- */

struct bench {
    struct calls *calls;
    enum kind kind;
    size_t bytes;
    long iterations; /* of each block */
};

/* Other work on the machine comes and goes. So measurements that are compared alternate in BLOCKS
 * blocks, and the median counts. */
enum { BLOCKS = 5 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double middle(double *values)
{
    qsort(values, BLOCKS, sizeof(values[0]), by_value);
    return values[BLOCKS / 2];
}

static double mean(const struct bench *b, double value)
{
    return calls_sum(b->calls, value) / calls_size(b->calls);
}

static void one(const struct bench *b, long units)
{
    calls_begin(b->calls, b->kind, b->bytes);
    compute(units);
    calls_wait(b->calls);
}

static void blocking(const struct bench *b, long units)
{
    (void)units;
    calls_do(b->calls, b->kind, b->bytes);
}

static void together(const struct bench *b)
{
    calls_begin(b->calls, BARRIER, 0);
    calls_wait(b->calls);
}

/* Makes `count` collectives by `make`, with `units` of work in each, and returns the mean time of
 * one. All ranks end together: otherwise a rank that has had more than its share of its
 * processor would end early. */
static double in_a_row(const struct bench *b, long count,
                       void (*make)(const struct bench *b, long units), long units)
{
    double start;

    together(b);
    start = now_us();
    for (long i = 0; i < count; i++)
        make(b, units);
    together(b);
    return mean(b, (now_us() - start) / (double)count);
}

/* Does this much work without collectives. Returns its time: the nominal one, or longer where ranks
 * share a processor. */
static double work_alone(const struct bench *b, double wanted_us, long units)
{
    double start, took;

    together(b);
    start = now_us();
    for (long i = 0; i < b->iterations; i++)
        compute(units);
    together(b);
    took = mean(b, (now_us() - start) / (double)b->iterations);
    if (took < wanted_us / 2) {
        (void)fprintf(stderr, "collective: computing for %.1f us took %.1f us\n", wanted_us, took);
        exit(1);
    }
    return took;
}

/* Computes for this time, whatever the processor does meanwhile. Returns how long that took. */
static double compute_for(double wanted_us)
{
    const long units = 100; /* a fraction of a microsecond */
    double start = now_us(), took;

    do {
        compute(units);
        took = now_us() - start;
    } while (took < wanted_us);
    return took;
}

/* As in_a_row, but each collective starts when all ranks are there, after a barrier that is not in
 * the time. Returns this rank's mean time of one. */
static double each_alone(const struct bench *b, long units)
{
    double sum = 0;

    for (long i = 0; i < b->iterations; i++) {
        double start;

        together(b);
        start = now_us();
        one(b, units);
        sum += now_us() - start;
    }
    return sum / (double)b->iterations;
}

static double latency(const struct bench *b)
{
    double blocks[BLOCKS];

    (void)in_a_row(b, b->iterations / WARM_UP + 1, blocking, 0);
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = in_a_row(b, b->iterations, blocking, 0);
    return middle(blocks);
}

static double percent(double blocks[BLOCKS])
{
    double hidden = middle(blocks);

    return hidden < 0 ? 0 : hidden > 100 ? 100 : hidden;
}

/* Returns the mean time that a call and its wait take in addition to computing for `wanted_us`. */
static double beside_computing(const struct bench *b, double wanted_us)
{
    double sum = 0;

    for (long i = 0; i < b->iterations; i++) {
        double start, computed;

        together(b);
        start = now_us();
        calls_begin(b->calls, b->kind, b->bytes);
        computed = compute_for(wanted_us);
        calls_wait(b->calls);
        sum += now_us() - start - computed;
    }
    return mean(b, sum / (double)b->iterations);
}

static double overlap(const struct bench *b)
{
    double blocks[BLOCKS];

    (void)each_alone(b, 0);
    for (int i = 0; i < BLOCKS; i++) {
        double alone = mean(b, each_alone(b, 0));

        blocks[i] = 100 - beside_computing(b, alone) / alone * 100;
    }
    return percent(blocks);
}

static double overlap_of_work(const struct bench *b)
{
    double first = mean(b, each_alone(b, 0)), blocks[BLOCKS];
    long units = (long)(first * units_a_us());

    for (int i = 0; i < BLOCKS; i++) {
        double alone = mean(b, each_alone(b, 0)), work = work_alone(b, first, units);

        blocks[i] = 100 - (mean(b, each_alone(b, units)) - work) / alone * 100;
    }
    return percent(blocks);
}

/* The time of rank 0, which waits at once, while the others compute between begin and wait. */
static double at_once(const struct bench *b)
{
    bool waits = calls_rank(b->calls) == 0;
    long units = waits ? 0 : (long)(OTHERS_US * units_a_us());
    double blocks[BLOCKS];

    for (int i = 0; i < BLOCKS; i++) {
        double own = each_alone(b, units);

        blocks[i] = calls_sum(b->calls, waits ? own : 0);
    }
    return middle(blocks);
}

static double added(const struct bench *b)
{
    long units = (long)(ADDED_US * units_a_us());
    double blocks[BLOCKS];

    (void)in_a_row(b, b->iterations / WARM_UP + 1, one, units);
    for (int i = 0; i < BLOCKS; i++) {
        double work = work_alone(b, ADDED_US, units);

        blocks[i] = in_a_row(b, b->iterations, one, units) - work;
    }
    return middle(blocks);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void pin(uint32_t rank, int ranks_a_processor)
{
    cpu_set_t set;

    if (ranks_a_processor <= 0)
        return;
    CPU_ZERO(&set);
    CPU_SET(rank / (unsigned)ranks_a_processor % PROCESSORS, &set);
    if (sched_setaffinity(0, sizeof(set), &set))
        perror("sched_setaffinity");
}

static int kind_of(const char *name)
{
    static const char *const names[] = {"barrier", "bcast", "allreduce"};

    for (int i = BARRIER; i <= ALLREDUCE; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

static int usage(void)
{
    (void)fprintf(stderr, "usage: collective latency|overlap|overlap_of_work|at_once|added "
                          "barrier|bcast|allreduce BYTES ITERATIONS [RANKS_A_PROCESSOR]\n");
    return 2;
}

static const struct figure {
    const char *name, *unit;
    double (*measure)(const struct bench *b);
} figures[] = {
    {"latency", "us", latency},
    {"overlap", "percent", overlap},
    {"overlap_of_work", "percent", overlap_of_work},
    {"at_once", "us", at_once},
    {"added", "us", added},
};

static const struct figure *figure_of(const char *name)
{
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
        if (strcmp(name, figures[i].name) == 0)
            return &figures[i];
    return NULL;
}

int main(int argc, char **argv)
{
    struct bench b = {.calls = calls_start(&argc, &argv)};
    const struct figure *figure;
    double value;
    int kind;

    if (argc < 5 || argc > 6 || !(figure = figure_of(argv[1])) || (kind = kind_of(argv[2])) < 0)
        return usage();
    b.kind = (enum kind)kind;
    b.bytes = strtoull(argv[3], NULL, 10);
    b.iterations = (atol(argv[4]) + BLOCKS - 1) / BLOCKS;
    pin(calls_rank(b.calls), argc == 6 ? atoi(argv[5]) : 0);
    calls_memory(b.calls, b.bytes);
    if (b.iterations <= 0)
        return usage();
    value = figure->measure(&b);
    if (calls_rank(b.calls) == 0)
        (void)printf("{\"test\":\"%s\",\"kind\":\"%s\",\"bytes\":%zu,\"%s\":%.4f}\n", figure->name,
                     argv[2], b.bytes, figure->unit, value);
    (void)fflush(stdout);
    calls_end(b.calls);
    return 0;
}
