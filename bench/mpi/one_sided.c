/*
 * MPI_Put between two ranks, as a user of MPI has to write it:
 *
 *     one_sided latency|completion|rate|bandwidth|inject|overlap [options]
 *
 * MPI has no put that notifies its target. So `latency` is half of: put, flush, flag, and the same
 * back. The flag is another put, flushed, which the target polls (and makes progress now and then,
 * which some MPIs need); with --flag send it is a message without bytes.
 *
 *   completion  put and flush
 *   rate        puts in a second, in windows of --window puts, each ended by a flush
 *   bandwidth   the same in bytes
 *   inject      the time of MPI_Put alone in such windows
 *   overlap     put and flush while the target computes for --compute-us without a call
 *
 * Each rank is one process with one thread.
 */
#include "bench/mpi/ranks.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLLS   32 /* looks at the flag for each call into the library */
#define WARM_UP 10 /* a tenth */

struct put {
    struct ranks ranks;
    MPI_Win window;
    uint8_t *memory; /* of this rank: the data, then on a line of its own the flag */
    uint8_t *source;
    MPI_Aint flag_at;
    double *samples;
};

static void open_window(struct put *p)
{
    int size = p->ranks.options.size;

    p->flag_at = (size + 63) & ~63;
    MPI_Win_allocate(p->flag_at + 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &p->memory, &p->window);
    memset(p->memory, 0, (size_t)p->flag_at + 64);
    p->source = ranks_memory((size_t)size);
    p->samples = ranks_memory(sizeof(double) * (size_t)p->ranks.options.iterations);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, p->window);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void close_window(struct put *p)
{
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(p->window);
    MPI_Win_free(&p->window);
    free(p->source);
    free(p->samples);
}

static void put_data(struct put *p)
{
    int size = p->ranks.options.size;

    MPI_Put(p->source, size, MPI_BYTE, p->ranks.other, 0, size, MPI_BYTE, p->window);
}

static void flush(struct put *p)
{
    MPI_Win_flush(p->ranks.other, p->window);
}

static void notify(struct put *p, uint64_t turn)
{
    if (p->ranks.options.flag_sent) {
        MPI_Send(NULL, 0, MPI_BYTE, p->ranks.other, 0, MPI_COMM_WORLD);
        return;
    }
    MPI_Put(&turn, 8, MPI_BYTE, p->ranks.other, p->flag_at, 8, MPI_BYTE, p->window);
    flush(p);
}

static void await_flag(struct put *p, uint64_t turn)
{
    volatile uint64_t *flag = (volatile uint64_t *)(p->memory + p->flag_at);
    int polls = 0, there;

    if (p->ranks.options.flag_sent) {
        MPI_Recv(NULL, 0, MPI_BYTE, p->ranks.other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    while (*flag != turn)
        if (++polls % POLLS == 0) {
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
            MPI_Win_sync(p->window);
        }
    MPI_Win_sync(p->window);
}

static void latency(struct put *p)
{
    int measured = p->ranks.options.iterations, warm = measured / WARM_UP;

    for (int i = 0; i < warm + measured; i++) {
        double start = ranks_now();

        if (p->ranks.me == 1)
            await_flag(p, (uint64_t)i + 1);
        put_data(p);
        flush(p);
        notify(p, (uint64_t)i + 1);
        if (p->ranks.me == 0)
            await_flag(p, (uint64_t)i + 1);
        if (i >= warm)
            p->samples[i - warm] = (ranks_now() - start) / 2;
    }
    ranks_report(&p->ranks, "p50_us", ranks_median(p->samples, measured));
}

static void completion(struct put *p)
{
    int measured = p->ranks.options.iterations, warm = measured / WARM_UP;

    if (p->ranks.me != 0)
        return; /* waits in the barrier, where it makes progress */
    for (int i = 0; i < warm + measured; i++) {
        double start = ranks_now();

        put_data(p);
        flush(p);
        if (i >= warm)
            p->samples[i - warm] = ranks_now() - start;
    }
    ranks_report(&p->ranks, "p50_us", ranks_median(p->samples, measured));
}

/* Puts whole windows; also measures the time of the submissions alone. */
static void windows(struct put *p, int count, double *whole, double *inject)
{
    double start = ranks_now();

    for (int i = 0; i < count; i++) {
        double before = ranks_now();

        for (int n = 0; n < p->ranks.options.window; n++)
            put_data(p);
        inject[i] = (ranks_now() - before) / p->ranks.options.window;
        flush(p);
    }
    *whole = ranks_now() - start;
}

static void throughput(struct put *p)
{
    const struct ranks_options *o = &p->ranks.options;
    int count = (o->iterations + o->window - 1) / o->window;
    double whole, puts = (double)count * o->window;

    if (p->ranks.me != 0)
        return;
    windows(p, count / WARM_UP + 1, &whole, p->samples);
    windows(p, count, &whole, p->samples);
    if (strcmp(o->what, "inject") == 0)
        ranks_report(&p->ranks, "p50_ns", ranks_median(p->samples, count) * 1000);
    else if (strcmp(o->what, "rate") == 0)
        ranks_report(&p->ranks, "rate_mps", puts / whole);
    else
        ranks_report(&p->ranks, "bw_mbps", puts * o->size / whole);
}

/* The target leaves the barrier and computes; the origin waits until it surely computes. */
static void overlap(struct put *p)
{
    const struct ranks_options *o = &p->ranks.options;

    for (int i = 0; i < o->iterations; i++) {
        MPI_Barrier(MPI_COMM_WORLD);

        double start = ranks_now(), until = p->ranks.me ? o->compute_us : o->compute_us / 20;

        while (ranks_now() - start < until)
            ;
        if (p->ranks.me != 0)
            continue;
        start = ranks_now();
        put_data(p);
        flush(p);
        p->samples[i] = ranks_now() - start;
    }
    ranks_report(&p->ranks, "p50_us", ranks_median(p->samples, o->iterations));
}

static const struct {
    const char *name;
    void (*run)(struct put *p);
} kinds[] = {
    {"latency", latency},      {"completion", completion}, {"rate", throughput},
    {"bandwidth", throughput}, {"inject", throughput},     {"overlap", overlap},
};

int main(int argc, char **argv)
{
    struct put p = {0};
    int rc = 2;

    ranks_start(&p.ranks, argc, argv, "latency|completion|rate|bandwidth|inject|overlap");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, p.ranks.options.what) != 0)
            continue;
        open_window(&p);
        kinds[i].run(&p);
        close_window(&p);
        rc = 0;
    }
    ranks_end();
    return rc;
}
