/*
 * A pipelined stencil: each rank has some columns of a grid, and may compute a row as soon as the
 * row's last cell has arrived from the rank at its left. A put of one cell, and the notification
 * that it brings, are all that passes between ranks: nobody posts a receive, nobody waits for an
 * answer, and the cell stands where it is needed.
 *
 *     pwcrun --nodes 2 -n 2 -- ./stencil [--size COLUMNS] [--rounds N] [--cpu A,B]
 *
 * The target has a place for the cell of each row, so a rank may run ahead by all rows of a round.
 * A round begins with the corner of the previous round: by then no rank reads the cells of that
 * round any more.
 */
#include "examples/apps/grid.h"
#include "examples/apps/team.h"

#define TAG 1

static void compute_round(struct team *team, struct grid *grid, pwc_request *from_left)
{
    uint32_t after = (grid->rank + 1) % grid->ranks;
    bool first = grid->rank == 0, last = after == 0;

    for (uint32_t i = 1; i < GRID_ROWS; i++) {
        if (!first)
            team_wait(from_left);

        const double *cell = grid_row(grid, i);

        if (!last)
            team_put(team, after, i * sizeof(double), cell, sizeof(double), TAG, NULL);
        else if (i == GRID_ROWS - 1) /* the corner */
            team_put(team, after, 0, cell, sizeof(double), TAG, NULL);
    }
    if (first) {
        team_wait(from_left);
        grid_wrap(grid);
    }
}

int main(int argc, char **argv)
{
    struct app app = {.name = "stencil", .way = "pwcd", .size = 64, .rounds = 20};
    struct team team;
    struct grid grid;
    pwc_request *from_left;
    bool right;

    team_open(&team, &app, argc, argv);
    team_share(&team, GRID_ROWS * sizeof(double));
    if (!grid_open(&grid, app.rank, app.ranks, app.size, team.memory))
        return 1;
    from_left = team_request(&team, (app.rank + app.ranks - 1) % app.ranks, TAG, 1);
    for (uint32_t round = 0; round < app.rounds; round++) {
        compute_round(&team, &grid, from_left);
        app_round(&app, round);
    }
    right = grid_check(&grid, app.rounds);
    grid_close(&grid);
    CHECK(pwc_request_free(from_left));
    return team_end(&team, &app, right, "rows_per_s", GRID_ROWS - 1);
}
