/*
 * Conjugate gradients (examples/apps/poisson.h) over MPI, in two ways:
 *
 *     conjugate blocking|overlapped [--cpu A,B] [--size N] [--rounds N]
 *
 *   blocking     MPI_Allreduce, then the product with the matrix
 *   overlapped   MPI_Iallreduce, waited for after the product
 *
 * Edge rows travel as messages; receives are posted before the messages are sent.
 */
#include "bench/apps/ranks.h"
#include "examples/apps/poisson.h"

#include <stdlib.h>

enum { FROM_ABOVE, FROM_BELOW, SIDES };

struct solver {
    struct app app;
    struct poisson poisson;
    double *w, *edges[SIDES]; /* NULL: no rank there */
    double sums[POISSON_SUMS], total[POISSON_SUMS];
    MPI_Request rows[2 * SIDES];
};

static int send_edges(struct solver *s)
{
    const struct poisson *p = &s->poisson;
    const double *last = p->w + (size_t)(p->rows - 1) * p->columns;
    int columns = (int)p->columns, rank = (int)s->app.rank, n = 0;

    if (s->edges[FROM_ABOVE]) {
        MPI_Irecv(s->edges[FROM_ABOVE], columns, MPI_DOUBLE, rank - 1, FROM_ABOVE, MPI_COMM_WORLD,
                  &s->rows[n++]);
        MPI_Isend(p->w, columns, MPI_DOUBLE, rank - 1, FROM_BELOW, MPI_COMM_WORLD, &s->rows[n++]);
    }
    if (s->edges[FROM_BELOW]) {
        MPI_Irecv(s->edges[FROM_BELOW], columns, MPI_DOUBLE, rank + 1, FROM_BELOW, MPI_COMM_WORLD,
                  &s->rows[n++]);
        MPI_Isend(last, columns, MPI_DOUBLE, rank + 1, FROM_ABOVE, MPI_COMM_WORLD, &s->rows[n++]);
    }
    return n;
}

static void multiply(struct solver *s, int rows)
{
    MPI_Waitall(rows, s->rows, MPI_STATUSES_IGNORE);
    poisson_apply(&s->poisson, s->edges[FROM_ABOVE], s->edges[FROM_BELOW]);
}

static void solve_blocking(struct solver *s)
{
    poisson_start(&s->poisson);
    do {
        int rows = send_edges(s);

        poisson_dots(&s->poisson, s->sums);
        MPI_Allreduce(s->sums, s->total, POISSON_SUMS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        multiply(s, rows);
    } while (poisson_step(&s->poisson, s->total));
}

static void solve_overlapped(struct solver *s)
{
    MPI_Request summed;

    poisson_start(&s->poisson);
    do {
        int rows = send_edges(s);

        poisson_dots(&s->poisson, s->sums);
        MPI_Iallreduce(s->sums, s->total, POISSON_SUMS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                       &summed);
        multiply(s, rows);
        MPI_Wait(&summed, MPI_STATUS_IGNORE);
    } while (poisson_step(&s->poisson, s->total));
}

static void run_blocking(void *state)
{
    struct solver *s = state;

    for (uint32_t round = 0; round < s->app.rounds; round++) {
        solve_blocking(s);
        app_round(&s->app, round);
    }
}

static void run_overlapped(void *state)
{
    struct solver *s = state;

    for (uint32_t round = 0; round < s->app.rounds; round++) {
        solve_overlapped(s);
        app_round(&s->app, round);
    }
}

static const struct way ways[] = {
    {"blocking", run_blocking},
    {"overlapped", run_overlapped},
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    struct solver s = {.app = {.name = "conjugate", .size = 64, .rounds = 3}};
    const struct way *way = apps_start(&s.app, ways, argc, argv);
    uint32_t rank = s.app.rank, ranks = s.app.ranks, size = s.app.size;
    bool right;

    apps_demand(size >= ranks, "fewer rows than ranks");
    s.w = calloc(poisson_cells(size, rank, ranks), sizeof(double));
    s.edges[FROM_ABOVE] = rank > 0 ? calloc(size, sizeof(double)) : NULL;
    s.edges[FROM_BELOW] = rank + 1 < ranks ? calloc(size, sizeof(double)) : NULL;
    apps_demand(s.w && poisson_open(&s.poisson, size, rank, ranks, s.w), "no memory");
    way->run(&s);
    right = poisson_check(&s.poisson, size);
    poisson_close(&s.poisson);
    for (int side = 0; side < SIDES; side++)
        free(s.edges[side]);
    free(s.w);
    return apps_end(&s.app, right, "iterations_per_s", s.poisson.iterations);
}
