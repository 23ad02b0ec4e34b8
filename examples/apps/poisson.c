/* Conjugate gradients on a strip of a grid; see poisson.h. */
#include "examples/apps/poisson.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The last residual divided by the first. On large grids, rounding keeps this form of the method
 * above 1e-10. */
#define REDUCED 1e-8
#define NEAR    1e-6 /* most that two solutions may differ by, relative to the greatest value */
#define LASTING 20u  /* most iterations for each column; about 3 are needed */

enum { X, R, P, S, Z, Q, VECTORS };

static size_t cells(const struct poisson *p)
{
    return (size_t)p->rows * p->columns;
}

static double *vector(const struct poisson *p, int which)
{
    return p->vectors + which * cells(p);
}

/* The first row of a rank's strip; for the rank after the last one, the number of all rows. */
static uint32_t first_row(uint32_t size, uint32_t rank, uint32_t ranks)
{
    return (uint32_t)((uint64_t)size * rank / ranks);
}

size_t poisson_cells(uint32_t size, uint32_t rank, uint32_t ranks)
{
    return (size_t)(first_row(size, rank + 1, ranks) - first_row(size, rank, ranks)) * size;
}

bool poisson_open(struct poisson *p, uint32_t size, uint32_t rank, uint32_t ranks, double *w)
{
    *p = (struct poisson){.columns = size, .first = first_row(size, rank, ranks), .w = w};
    p->rows = first_row(size, rank + 1, ranks) - p->first;
    p->vectors = calloc(VECTORS * cells(p), sizeof(double));
    if (!p->vectors)
        fprintf(stderr, "no memory for %u x %u cells\n", p->rows, p->columns);
    return p->vectors != NULL;
}

void poisson_close(struct poisson *p)
{
    free(p->vectors);
}

/* The right side of the equation at a cell, counted from 0; 0 for cells beside the grid. */
static double right_side(const struct poisson *p, int64_t row, int64_t column)
{
    int64_t size = p->columns;

    if (row < 0 || row >= size || column < 0 || column >= size)
        return 0;
    return 1 + (double)((row * 7 + column * 13) % 17) / 17;
}

/* Multiplies one row by the matrix. `above` and `below` are the rows beside it, or NULL at the
 * grid's edge, where the solution is 0. */
static void apply_row(double *to, const double *row, const double *above, const double *below,
                      uint32_t columns)
{
    for (uint32_t i = 0; i < columns; i++) {
        double sides = (i > 0 ? row[i - 1] : 0) + (i + 1 < columns ? row[i + 1] : 0);

        to[i] = 4 * row[i] - sides - (above ? above[i] : 0) - (below ? below[i] : 0);
    }
}

static void apply(const struct poisson *p, double *to, const double *from, const double *above,
                  const double *below)
{
    for (uint32_t row = 0; row < p->rows; row++) {
        size_t at = (size_t)row * p->columns;
        bool last = row + 1 == p->rows;

        apply_row(to + at, from + at, row == 0 ? above : from + at - p->columns,
                  last ? below : from + at + p->columns, p->columns);
    }
}

/* x = 0, so r is the right side, and w = A r. */
void poisson_start(struct poisson *p)
{
    double *r = vector(p, R);
    size_t at = 0;

    memset(p->vectors, 0, VECTORS * cells(p) * sizeof(double));
    for (int64_t i = p->first; i < p->first + p->rows; i++)
        for (int64_t k = 0; k < p->columns; k++, at++) {
            r[at] = right_side(p, i, k);
            p->w[at] = 4 * r[at] - right_side(p, i, k - 1) - right_side(p, i, k + 1) -
                       right_side(p, i - 1, k) - right_side(p, i + 1, k);
        }
    p->iterations = 0;
}

void poisson_dots(const struct poisson *p, double sums[POISSON_SUMS])
{
    const double *r = vector(p, R);
    double gamma = 0, delta = 0;

    for (size_t i = 0; i < cells(p); i++) {
        gamma += r[i] * r[i];
        delta += p->w[i] * r[i];
    }
    sums[0] = gamma;
    sums[1] = delta;
}

void poisson_apply(struct poisson *p, const double *above, const double *below)
{
    apply(p, vector(p, Q), p->w, above, below);
}

/* Updates all vectors of an iteration in one pass. */
static void update(struct poisson *p, double alpha, double beta)
{
    double *x = vector(p, X), *r = vector(p, R), *d = vector(p, P), *s = vector(p, S);
    double *z = vector(p, Z);
    const double *q = vector(p, Q);

    for (size_t i = 0; i < cells(p); i++) {
        z[i] = q[i] + beta * z[i];
        s[i] = p->w[i] + beta * s[i];
        d[i] = r[i] + beta * d[i];
        x[i] += alpha * d[i];
        r[i] -= alpha * s[i];
        p->w[i] -= alpha * z[i];
    }
}

bool poisson_step(struct poisson *p, const double sums[POISSON_SUMS])
{
    double gamma = sums[0], delta = sums[1], beta = 0;

    if (p->iterations == 0)
        p->goal = gamma * REDUCED * REDUCED;
    p->solved = gamma <= p->goal;
    if (p->solved || p->iterations == LASTING * p->columns)
        return false;
    if (p->iterations > 0) {
        beta = gamma / p->gamma;
        delta -= beta * gamma / p->alpha;
    }
    p->alpha = gamma / delta;
    p->gamma = gamma;
    p->iterations++;
    update(p, p->alpha, beta);
    return true;
}

/* Solves the whole grid on this rank alone. */
static bool solve_alone(struct poisson *whole, uint32_t size, double *w)
{
    double sums[POISSON_SUMS];

    if (!w || !poisson_open(whole, size, 0, 1, w))
        return false;
    poisson_start(whole);
    do {
        poisson_dots(whole, sums);
        poisson_apply(whole, NULL, NULL);
    } while (poisson_step(whole, sums));
    return true;
}

static bool is_near(const struct poisson *p, const struct poisson *whole)
{
    const double *own = vector(p, X), *all = vector(whole, X);
    double greatest = 0;

    for (size_t i = 0; i < cells(whole); i++)
        greatest = fmax(greatest, fabs(all[i]));
    all += (size_t)p->first * p->columns;
    for (size_t i = 0; i < cells(p); i++)
        if (!(fabs(own[i] - all[i]) <= NEAR * greatest)) {
            fprintf(stderr, "row %zu, column %zu is %.12g, not %.12g\n", p->first + i / p->columns,
                    i % p->columns, own[i], all[i]);
            return false;
        }
    return true;
}

bool poisson_check(const struct poisson *p, uint32_t size)
{
    double *w = calloc((size_t)size * size, sizeof(*w));
    struct poisson whole = {0};
    bool right = false;

    if (!p->solved)
        fprintf(stderr, "no solution after %u iterations\n", p->iterations);
    else
        right = solve_alone(&whole, size, w) && is_near(p, &whole);
    poisson_close(&whole);
    free(w);
    return right;
}
