/* Start, clock and report of the MPI programs; see ranks.h. */
#include "bench/mpi/ranks.h"

#include <getopt.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FINALIZE_SECONDS 1

static void give_up(const char *program, const char *kinds)
{
    (void)fprintf(stderr,
                  "usage: %s %s [--cpu A,B] [--iters N] [--size N] [--window N] [--compute-us N] "
                  "[--flag put|send], with two ranks\n",
                  program, kinds);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static bool parse_one(struct ranks_options *o, int c)
{
    switch (c) {
    case 'c':
        return sscanf(optarg, "%d,%d", &o->cpus[0], &o->cpus[1]) == 2;
    case 'n':
        o->iterations = atoi(optarg);
        return o->iterations > 0;
    case 's':
        o->size = atoi(optarg);
        return o->size > 0;
    case 'w':
        o->window = atoi(optarg);
        return o->window > 0;
    case 'u':
        o->compute_us = atoi(optarg);
        return o->compute_us > 0;
    case 'f':
        o->flag_sent = strcmp(optarg, "send") == 0;
        return o->flag_sent || strcmp(optarg, "put") == 0;
    default:
        return false;
    }
}

static void pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    if (cpu >= 0 && sched_setaffinity(0, sizeof(set), &set))
        perror("sched_setaffinity");
}

void ranks_start(struct ranks *ranks, int argc, char **argv, const char *kinds)
{
    static const struct option known[] = {
        {"cpu", required_argument, NULL, 'c'},
        {"iters", required_argument, NULL, 'n'},
        {"size", required_argument, NULL, 's'},
        {"window", required_argument, NULL, 'w'},
        {"flag", required_argument, NULL, 'f'},
        {"compute-us", required_argument, NULL, 'u'},
        {NULL, 0, NULL, 0},
    };
    int c, size;

    *ranks = (struct ranks){
        .options = {
            .cpus = {0, 1}, .iterations = 10000, .size = 8, .window = 64, .compute_us = 20000}};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks->me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    ranks->other = 1 - ranks->me;
    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1)
        if (!parse_one(&ranks->options, c))
            give_up(argv[0], kinds);
    if (size != 2 || optind + 1 != argc)
        give_up(argv[0], kinds);
    ranks->options.what = argv[optind];
    pin(ranks->options.cpus[ranks->me]);
}

double ranks_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1000;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double ranks_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), by_value);
    return values[count / 2];
}

void *ranks_memory(size_t length)
{
    void *memory = calloc(1, length);

    if (!memory) {
        perror("calloc");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    /* All pages that were never written are one page of zeros, which a copy finds in the first
     * cache: without this, puts of 1 MiB were twice as fast as memcpy. */
    memset(memory, 1, length);
    return memory;
}

void ranks_report(const struct ranks *ranks, const char *key, double value)
{
    if (ranks->me == 0)
        (void)printf("{\"test\":\"%s\",\"size\":%d,\"%s\":%.4f}\n", ranks->options.what,
                     ranks->options.size, key, value);
}

static void leave(int number)
{
    _exit(0);
}

void ranks_end(void)
{
    (void)fflush(stdout);
    (void)signal(SIGALRM, leave);
    (void)alarm(FINALIZE_SECONDS);
    MPI_Finalize();
}
