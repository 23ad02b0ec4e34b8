/*
 * The stencil of the Parallel Research Kernels' Synch_p2p, on one rank: a block of columns of a
 * grid, computed row by row.
 *
 *     A(i,j) = A(i-1,j) + A(i,j-1) - A(i-1,j-1);   A(0,j) = j and A(i,0) = i at first
 *
 *        rank 0         rank 1         rank 2      a row needs the last cell of the same row at
 *     +-----------+  +-----------+  +-----------+  the left: `left`, one cell for each row
 *     | row 0     |->| row 0     |->| row 0     |
 *     | row 1     |->| row 1     |->| row 1     |  after the last row the corner, negated,
 *     |  ...      |  |  ...      |  |  ...      |  becomes A(0,0) of the next round
 *     +-----------+  +-----------+  +-----------+
 *           ^                  corner |
 *           +-------------------------+
 */
#ifndef EXAMPLES_APPS_GRID_H
#define EXAMPLES_APPS_GRID_H

#include <stdbool.h>
#include <stdint.h>

#define GRID_ROWS 1280u

struct grid {
    uint32_t columns;     /* of each rank, at least 2 */
    uint32_t rank, ranks; /* this block's place */
    double *cells;        /* GRID_ROWS rows; owned */
    double *left;         /* GRID_ROWS cells from the left, which the caller lends; rank 0 gets only
                             the corner, in left[0] */
};

/* False without memory. */
bool grid_open(struct grid *grid, uint32_t rank, uint32_t ranks, uint32_t columns, double *left);
void grid_close(struct grid *grid);

/*
 * Computes row `i` (1 to GRID_ROWS - 1); left[i] must be there, except on rank 0. Returns the row's
 * last cell, which belongs into left[i] of the rank at the right, and does not change until the
 * next round. In the last row of the last rank this cell is the corner.
 */
const double *grid_row(struct grid *grid, uint32_t i);

/* Prepares the next round; rank 0 calls it when the corner is in left[0]. */
void grid_wrap(struct grid *grid);

/* Whether the block equals what `rounds` rounds of a serial computation of the whole grid give.
 * Prints differences on standard error. */
bool grid_check(const struct grid *grid, uint32_t rounds);

#endif
