/*
 * Code that the applications share, whatever moves their data: the command line, the
 * clock, and the line with the result. Each rank is a process with one thread.
 *
 *     stencil.c   values flow from rank to rank, row by row     grid.h    the computation
 *     tree.c      sums flow up a tree of ranks                  sums.h
 *     cholesky.c  tiles flow to the ranks that need them    tiles.h
 *     conjugate.c edges to neighbours, sums over all ranks  poisson.h
 *
 * The computations know nothing of communication: the programs of bench/apps do the same work with
 * the same code over MPI.
 */
#ifndef EXAMPLES_APPS_APP_H
#define EXAMPLES_APPS_APP_H

#include <stdbool.h>
#include <stdint.h>

struct app {
    const char *name;
    const char *way;       /* how data moves */
    uint32_t rank, ranks;  /* set before app_parse */
    uint32_t size;         /* columns of a rank or of a grid, numbers to sum, tiles in a column */
    uint32_t rounds;       /* how often the computation is done; the first round is not measured */
    double started, ended; /* seconds */
};

/*
 * Reads `[--cpu A,B...] [--size N] [--rounds N]` into `app`, which holds the defaults. Pins rank r
 * to the processor at place r of the list; the list repeats. Returns false after a message.
 */
bool app_parse(struct app *app, int argc, char **argv);

/* Takes the time; a rank calls this after each round. Rounds are counted from 0. */
void app_round(struct app *app, uint32_t round);

/*
 * Prints one JSON line: the time of a round, and the rate, where each round does `work`. The rank
 * that reports calls this.
 */
void app_report(const struct app *app, const char *unit, double work);

#endif
