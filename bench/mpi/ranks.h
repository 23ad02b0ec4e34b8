/*
 * Code that the MPI programs share: two ranks, each single-threaded and pinned, the clock, and one
 * JSON line from rank 0. Plain MPI-3.1, so that the same source is built against every MPI.
 */
#ifndef BENCH_MPI_RANKS_H
#define BENCH_MPI_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ranks_options {
    const char *what;
    int cpus[2]; /* by rank */
    int iterations;
    int size;
    int window;     /* operations before a flush or a wait */
    int compute_us; /* overlap: how long the target computes */
    bool flag_sent; /* the flag is a message without bytes, not a put */
};

struct ranks {
    struct ranks_options options;
    int me;
    int other;
};

/* Starts MPI with exactly two ranks, reads the command line and pins. Exits if any of this fails.
 */
void ranks_start(struct ranks *ranks, int argc, char **argv, const char *kinds);

double ranks_now(void); /* microseconds */

/* Returns the median, and sorts the values. */
double ranks_median(double *values, int count);

/* Allocates memory and writes to it, so that it has pages of its own. Ends the job without memory.
 */
void *ranks_memory(size_t length);

/*
 * Ends MPI. MPICH 4.0 over UCX's tcp hangs in MPI_Finalize once in ten times: one rank waits for
 * the launcher and the other for the connection. All is measured and printed by then, so the
 * process exits.
 */
void ranks_end(void);

/* Prints one JSON line, on rank 0. */
void ranks_report(const struct ranks *ranks, const char *key, double value);

#endif
