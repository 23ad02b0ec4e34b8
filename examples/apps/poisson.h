/*
 * Poisson's equation on a square grid by conjugate gradients, on one rank: a strip of rows.
 *
 * The form is that of Ghysels and Vanroose (2014): an iteration needs one sum over all ranks, of
 * two numbers, and a product with the matrix that does not depend on the sum. So the sum may be
 * under way while the product is computed.
 *
 *     poisson_dots     this strip's part of the two sums
 *     poisson_apply    q = A w, with the rows of w beside the strip, from the ranks there
 *     poisson_step     uses both: updates all vectors, and says whether to go on
 *
 *      rank 0    +-----------------+     `above`, a row of w of the rank before
 *                +-----------------+
 *      rank 1    |  rows x columns |     w
 *                +-----------------+
 *      rank 2    +-----------------+     `below`, a row of w of the rank after
 *
 * Every rank stops in the same iteration, as all have the same bits of each sum.
 */
#ifndef EXAMPLES_APPS_POISSON_H
#define EXAMPLES_APPS_POISSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { POISSON_SUMS = 2 };

struct poisson {
    uint32_t columns, rows; /* of this strip */
    uint32_t first;         /* its first row in the grid */
    uint32_t iterations;    /* of this solution so far */
    double *vectors;        /* x, r, p, s, z and q, one after the other; owned */
    double *w;              /* poisson_cells numbers, which the caller lends */
    double alpha, gamma, goal;
    bool solved; /* the residual has come down to the goal */
};

/* Cells of a rank's strip of a grid with `size` rows and columns, at least one row for each rank.
 */
size_t poisson_cells(uint32_t size, uint32_t rank, uint32_t ranks);

/* False without memory. The caller lends the memory of `w`, and owns it. */
bool poisson_open(struct poisson *p, uint32_t size, uint32_t rank, uint32_t ranks, double *w);
void poisson_close(struct poisson *p);

/* Prepares the first iteration; poisson_step decides how many follow. */
void poisson_start(struct poisson *p);

void poisson_dots(const struct poisson *p, double sums[POISSON_SUMS]);

/* `above` and `below` are the rows of w beside this strip; NULL at the grid's edge. */
void poisson_apply(struct poisson *p, const double *above, const double *below);

/* `sums` are those over all ranks. Returns true while another iteration is needed; false when the
 * solution is there, and when too many iterations have not found it. */
bool poisson_step(struct poisson *p, const double sums[POISSON_SUMS]);

/* Whether there is a solution whose strip equals what one rank alone computes. Prints differences
 * on standard error. */
bool poisson_check(const struct poisson *p, uint32_t size);

#endif
