/* A rank's block of the grid, and the serial computation that checks it; see grid.h. */
#include "examples/apps/grid.h"

#include <stdio.h>
#include <stdlib.h>

bool grid_open(struct grid *grid, uint32_t rank, uint32_t ranks, uint32_t columns, double *left)
{
    *grid = (struct grid){.columns = columns,
                          .rank = rank,
                          .ranks = ranks,
                          .cells = calloc((size_t)GRID_ROWS * columns, sizeof(double)),
                          .left = left};
    if (grid->cells == NULL)
        return false;
    for (uint32_t j = 0; j < columns; j++)
        grid->cells[j] = (double)rank * columns + j;
    if (rank == 0)
        for (uint32_t i = 0; i < GRID_ROWS; i++)
            grid->cells[(size_t)i * columns] = i;
    else
        left[0] = (double)rank * columns - 1;
    return true;
}

void grid_close(struct grid *grid)
{
    free(grid->cells);
}

const double *grid_row(struct grid *grid, uint32_t i)
{
    double *row = grid->cells + (size_t)i * grid->columns;
    const double *above = row - grid->columns;
    /* On rank 0 the first column is given; elsewhere the column before the first has arrived. */
    uint32_t first = grid->rank == 0;
    double west = first ? row[0] : grid->left[i];
    double north_west = first ? above[0] : grid->left[i - 1];

    for (uint32_t j = first; j < grid->columns; j++) {
        west += above[j] - north_west; /* so only one addition depends on the cell before */
        north_west = above[j];
        row[j] = west;
    }
    return row + grid->columns - 1;
}

void grid_wrap(struct grid *grid)
{
    grid->cells[0] = -grid->left[0];
}

/* One row of the whole grid, from the row above. */
static void serial_row(double *row, uint32_t width, double first)
{
    double north_west = row[0];

    row[0] = first;
    for (uint32_t j = 1; j < width; j++) {
        double above = row[j];

        row[j] = above + row[j - 1] - north_west;
        north_west = above;
    }
}

/* Compares exactly, because all numbers are whole. */
static bool same(const struct grid *grid, uint32_t i, const double *row)
{
    const double *mine = grid->cells + (size_t)i * grid->columns;
    const double *wanted = row + (size_t)grid->rank * grid->columns;
    /* After the last round, rank 0 has prepared one more in its cell (0,0). */
    uint32_t first = grid->rank == 0 && i == 0;

    for (uint32_t j = first; j < grid->columns; j++)
        if (mine[j] != wanted[j]) {
            fprintf(stderr, "stencil: rank %u, row %u, column %u: %g instead of %g\n", grid->rank,
                    i, j, mine[j], wanted[j]);
            return false;
        }
    return true;
}

bool grid_check(const struct grid *grid, uint32_t rounds)
{
    uint32_t width = grid->columns * grid->ranks;
    double *row = calloc(width, sizeof(double)), corner = 0;
    bool right = row != NULL;

    for (uint32_t round = 0; right && round < rounds; round++) {
        row[0] = -corner;
        for (uint32_t j = 1; j < width; j++)
            row[j] = j;
        for (uint32_t i = 0; right && i < GRID_ROWS; i++) {
            if (i > 0)
                serial_row(row, width, i);
            right = round + 1 < rounds || same(grid, i, row);
        }
        corner = row[width - 1];
    }
    free(row);
    return right;
}
