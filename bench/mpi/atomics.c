/*
 * Atomics of MPI between two ranks, as a user of MPI has to write them:
 *
 *     atomics fetch|overlap|gups [options]
 *
 *   fetch    MPI_Fetch_and_op (MPI_SUM) on a word of the target, and a flush; meanwhile the target
 *            waits in a barrier
 *   overlap  the same while the target computes for --compute-us without a call
 *   gups     the rate of MPI_Accumulate (MPI_BXOR) of 64-bit words at random places of a table of
 *            16 MiB; a flush ends each window of --window words
 *
 * Each rank is one process with one thread. `fetch` and `overlap` check each value that they fetch.
 * `gups` makes all its updates twice, so that the target's words must be 0 at the end.
 */
#include "bench/mpi/ranks.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_WORDS (UINT64_C(1) << 21)
#define WARM_UP     10 /* a tenth */

struct table {
    struct ranks ranks;
    MPI_Win window;
    uint64_t *words; /* of this rank */
    uint64_t *values;
    double *samples;
};

static void open_window(struct table *t)
{
    MPI_Win_allocate((MPI_Aint)(TABLE_WORDS * 8), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &t->words,
                     &t->window);
    memset(t->words, 0, TABLE_WORDS * 8);
    t->values = ranks_memory(sizeof(uint64_t) * (size_t)t->ranks.options.window);
    t->samples = ranks_memory(sizeof(double) * (size_t)t->ranks.options.iterations);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, t->window);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void close_window(struct table *t)
{
    MPI_Win_unlock_all(t->window);
    MPI_Win_free(&t->window);
    free(t->values);
    free(t->samples);
}

static void fetch_add(struct table *t, uint64_t expected)
{
    uint64_t one = 1, before = 0;

    MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, t->ranks.other, 0, MPI_SUM, t->window);
    MPI_Win_flush(t->ranks.other, t->window);
    if (before != expected) {
        (void)fprintf(stderr, "fetched %llu, not %llu\n", (unsigned long long)before,
                      (unsigned long long)expected);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void fetch(struct table *t)
{
    int measured = t->ranks.options.iterations, warm = measured / WARM_UP;

    for (int i = 0; t->ranks.me == 0 && i < warm + measured; i++) {
        double start = ranks_now();

        fetch_add(t, (uint64_t)i);
        if (i >= warm)
            t->samples[i - warm] = ranks_now() - start;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    ranks_report(&t->ranks, "p50_us", ranks_median(t->samples, measured));
}

static void overlap(struct table *t)
{
    const struct ranks_options *o = &t->ranks.options;

    for (int i = 0; i < o->iterations; i++) {
        MPI_Barrier(MPI_COMM_WORLD);

        double start = ranks_now(), until = t->ranks.me ? o->compute_us : o->compute_us / 20;

        while (ranks_now() - start < until)
            ;
        if (t->ranks.me != 0)
            continue;
        start = ranks_now();
        fetch_add(t, (uint64_t)i);
        t->samples[i] = ranks_now() - start;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    ranks_report(&t->ranks, "p50_us", ranks_median(t->samples, o->iterations));
}

static uint64_t draw(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Returns million updates in a second. */
static double update(struct table *t, int count)
{
    int window = t->ranks.options.window;
    double start = ranks_now();
    uint64_t state = 0;

    for (int i = 0; i < count; i++) {
        for (int n = 0; n < window; n++) {
            t->values[n] = draw(&state);
            MPI_Accumulate(&t->values[n], 1, MPI_UINT64_T, t->ranks.other,
                           (MPI_Aint)(t->values[n] % TABLE_WORDS), 1, MPI_UINT64_T, MPI_BXOR,
                           t->window);
        }
        MPI_Win_flush(t->ranks.other, t->window);
    }
    return (double)count * window / (ranks_now() - start);
}

static void gups(struct table *t)
{
    int count = t->ranks.options.iterations / t->ranks.options.window + 1;
    double rate = 0;

    if (t->ranks.me == 0) {
        (void)update(t, count / WARM_UP + 1);
        (void)update(t, count / WARM_UP + 1);
        rate = update(t, count);
        (void)update(t, count);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(t->window);
    for (uint64_t i = 0; t->ranks.me == 1 && i < TABLE_WORDS; i++)
        if (t->words[i] != 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    ranks_report(&t->ranks, "rate_mps", rate);
}

static const struct {
    const char *name;
    void (*run)(struct table *t);
} kinds[] = {{"fetch", fetch}, {"overlap", overlap}, {"gups", gups}};

int main(int argc, char **argv)
{
    struct table t = {0};
    int rc = 2;

    ranks_start(&t.ranks, argc, argv, "fetch|overlap|gups");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, t.ranks.options.what) != 0)
            continue;
        open_window(&t);
        kinds[i].run(&t);
        close_window(&t);
        rc = 0;
    }
    ranks_end();
    return rc;
}
