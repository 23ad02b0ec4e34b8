/*
 * Code that the applications over MPI share: start, the choice of a way, and the end. Plain
 * MPI-3.1, so that the same source is built against every MPI; each rank is a process with one
 * thread.
 */
#ifndef BENCH_APPS_RANKS_H
#define BENCH_APPS_RANKS_H

#include "examples/apps/app.h"

#include <mpi.h>
#include <stddef.h>

/* One way to move the data: a row of a program's table. The last row has no name. */
struct way {
    const char *name;
    void (*run)(void *state);
};

/*
 * Starts MPI, reads `WAY [OPTION]...`, and returns the way. `app` holds the defaults. Ends the job
 * if the command line is wrong.
 */
const struct way *apps_start(struct app *app, const struct way *ways, int argc, char **argv);

/* Ends the job unless `right`. */
void apps_demand(bool right, const char *what);

/* Makes memory that other ranks may put to, and its window; displacements are in bytes. */
void *apps_window(size_t bytes, MPI_Win *window);

/* A group of these ranks, for post and start. */
MPI_Group apps_group(const uint32_t *ranks, uint32_t count);

/* Every rank calls this when it has checked its part. Rank 0 reports if all parts are right.
 * Returns the exit status. */
int apps_end(const struct app *app, bool right, const char *unit, double work);

#endif
