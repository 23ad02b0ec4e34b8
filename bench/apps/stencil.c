/*
 * The pipelined stencil (examples/apps/grid.h) over MPI, in three ways:
 *
 *     stencil send|fence|pscw [--cpu A,B] [--size COLUMNS] [--rounds N]
 *
 *   send    a message with the last cell of each row
 *   fence   a put of this cell, and a fence of all ranks after each row
 *   pscw    a put of this cell between start and complete; its target posts, and waits
 *
 * A rank computes a row when the cell at its left has arrived, so a fence lets a row start only in
 * the rank that is next: the ranks work in turns, one row apart.
 */
#include "bench/apps/ranks.h"
#include "examples/apps/grid.h"

#define TAG 1

struct stencil {
    struct app app;
    struct grid grid;
    MPI_Win window;    /* of the column `left` */
    int before, after; /* the ranks at the left and at the right */
};

static bool first(const struct stencil *s)
{
    return s->grid.rank == 0;
}

static bool last(const struct stencil *s)
{
    return s->grid.rank == s->grid.ranks - 1;
}

/* ---- messages -------------------------------------------------------------------------------- */

static void receive_left(struct stencil *s, uint32_t i)
{
    MPI_Recv(&s->grid.left[i], 1, MPI_DOUBLE, s->before, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void run_send(void *state)
{
    struct stencil *s = state;

    for (uint32_t round = 0; round < s->app.rounds; round++) {
        for (uint32_t i = 1; i < GRID_ROWS; i++) {
            if (!first(s))
                receive_left(s, i);

            const double *cell = grid_row(&s->grid, i);

            if (!last(s) || i == GRID_ROWS - 1)
                MPI_Send(cell, 1, MPI_DOUBLE, s->after, TAG, MPI_COMM_WORLD);
        }
        if (first(s)) {
            receive_left(s, 0);
            grid_wrap(&s->grid);
        }
        app_round(&s->app, round);
    }
}

/* ---- puts ------------------------------------------------------------------------------------ */

static void put_right(struct stencil *s, const double *cell, uint32_t i)
{
    MPI_Put(cell, 1, MPI_DOUBLE, s->after, (MPI_Aint)(i * sizeof(double)), 1, MPI_DOUBLE,
            s->window);
}

/* In step t rank r computes row t - r + 1; a fence ends each step. */
static void run_fence(void *state)
{
    struct stencil *s = state;
    uint32_t steps = GRID_ROWS - 1 + s->grid.ranks - 1;

    MPI_Win_fence(0, s->window);
    for (uint32_t round = 0; round < s->app.rounds; round++) {
        for (uint32_t t = 0; t < steps; t++) {
            uint32_t i = t - s->grid.rank + 1;

            if (t >= s->grid.rank && i < GRID_ROWS) {
                const double *cell = grid_row(&s->grid, i);

                if (!last(s))
                    put_right(s, cell, i);
                else if (i == GRID_ROWS - 1)
                    put_right(s, cell, 0);
            }
            MPI_Win_fence(0, s->window);
        }
        if (first(s))
            grid_wrap(&s->grid);
        app_round(&s->app, round);
    }
}

/* Lets the left rank put, and waits until it has. */
static void expose(struct stencil *s, MPI_Group before)
{
    MPI_Win_post(before, 0, s->window);
    MPI_Win_wait(s->window);
}

static void access_right(struct stencil *s, MPI_Group after, const double *cell, uint32_t i)
{
    MPI_Win_start(after, 0, s->window);
    put_right(s, cell, i);
    MPI_Win_complete(s->window);
}

static void run_pscw(void *state)
{
    struct stencil *s = state;
    MPI_Group before = apps_group(&(uint32_t){(uint32_t)s->before}, 1);
    MPI_Group after = apps_group(&(uint32_t){(uint32_t)s->after}, 1);

    for (uint32_t round = 0; round < s->app.rounds; round++) {
        for (uint32_t i = 1; i < GRID_ROWS; i++) {
            if (!first(s))
                expose(s, before);

            const double *cell = grid_row(&s->grid, i);

            if (!last(s))
                access_right(s, after, cell, i);
            else if (i == GRID_ROWS - 1)
                access_right(s, after, cell, 0);
        }
        if (first(s)) {
            expose(s, before);
            grid_wrap(&s->grid);
        }
        app_round(&s->app, round);
    }
    MPI_Group_free(&before);
    MPI_Group_free(&after);
}

int main(int argc, char **argv)
{
    static const struct way ways[] = {
        {"send", run_send}, {"fence", run_fence}, {"pscw", run_pscw}, {NULL, NULL}};
    struct stencil s = {.app = {.name = "stencil", .size = 64, .rounds = 20}};
    const struct way *way = apps_start(&s.app, ways, argc, argv);
    double *left = apps_window(GRID_ROWS * sizeof(double), &s.window);
    bool right;

    apps_demand(grid_open(&s.grid, s.app.rank, s.app.ranks, s.app.size, left), "no memory");
    s.before = (int)((s.app.rank + s.app.ranks - 1) % s.app.ranks);
    s.after = (int)((s.app.rank + 1) % s.app.ranks);
    way->run(&s);
    right = grid_check(&s.grid, s.app.rounds);
    grid_close(&s.grid);
    MPI_Win_free(&s.window);
    return apps_end(&s.app, right, "rows_per_s", GRID_ROWS - 1);
}
