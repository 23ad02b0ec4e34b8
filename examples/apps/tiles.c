/* The tiles of a rank, the four kernels, and the serial factorization that checks them; see
 * tiles.h. */
#include "examples/apps/tiles.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define N TILE_SIDE

static uint32_t tiles_of_copy(uint32_t rows)
{
    return rows * (rows + 1) / 2;
}

uint32_t tiles_tags(const struct tiles *tiles)
{
    return 2 * tiles_of_copy(tiles->rows);
}

uint32_t tiles_copy(const struct tiles *tiles, uint32_t tag)
{
    return tag / tiles_of_copy(tiles->rows);
}

uint32_t tiles_tag(const struct tiles *tiles, uint32_t m, uint32_t k)
{
    return tiles->round % 2 * tiles_of_copy(tiles->rows) + tiles_of_copy(m) + k;
}

double *tiles_at(const struct tiles *tiles, uint32_t tag)
{
    return tiles->memory + (size_t)tag * TILE_CELLS;
}

uint64_t tiles_bytes(uint32_t rows)
{
    return 2ull * tiles_of_copy(rows) * TILE_BYTES;
}

/* Each round multiplies the matrix by another power of 4; so L is multiplied by a power of 2. */
static double scale(uint32_t round)
{
    return (double)(1u << (round % 4 * 2));
}

/* Symmetric, and positive definite because its diagonal outweighs all else. */
static double matrix(uint32_t i, uint32_t j)
{
    return i == j ? 16 : 1.0 / (1 + (i > j ? i - j : j - i));
}

bool tiles_open(struct tiles *tiles, uint32_t rank, uint32_t ranks, uint32_t rows, double *memory)
{
    *tiles = (struct tiles){.rank = rank, .ranks = ranks, .rows = rows, .memory = memory};
    if (rows <= ranks) {
        fprintf(stderr, "cholesky: %u rows of tiles for %u ranks: give more\n", rows, ranks);
        return false;
    }
    tiles->there = calloc(tiles_tags(tiles), sizeof(*tiles->there));
    tiles->first = calloc(rows, TILE_BYTES);
    if (tiles->there == NULL || tiles->first == NULL)
        return false;
    for (uint32_t i = 0; i < rows * N; i++)
        for (uint32_t j = 0; j < N; j++)
            tiles->first[i * N + j] = matrix(i, j);
    return true;
}

void tiles_close(struct tiles *tiles)
{
    free(tiles->there);
    free(tiles->first);
}

void tiles_begin(struct tiles *tiles, uint32_t round)
{
    uint32_t own = 0;

    for (uint32_t m = tiles->rank; m < tiles->rows - 1; m += tiles->ranks)
        own += m + 1;
    tiles->round = round;
    tiles->missing = tiles_of_copy(tiles->rows - 1) - own;
    /* A tile of this round may have arrived while the last one was computed. */
    for (uint32_t m = 0; m < tiles->rows - 1; m++)
        for (uint32_t k = 0; k <= m && tiles_owner(tiles, m) != tiles->rank; k++)
            tiles->missing -= tiles_there(tiles, m, k);
}

bool tiles_there(const struct tiles *tiles, uint32_t m, uint32_t k)
{
    return tiles->there[tiles_tag(tiles, m, k)] == tiles->round + 1;
}

uint32_t tiles_arrived(struct tiles *tiles, uint32_t tag)
{
    uint32_t index = tag % tiles_of_copy(tiles->rows);
    bool now = tiles_copy(tiles, tag) == tiles->round % 2;
    uint32_t m = 0;

    /* A tile that is not of this round is of the next one. */
    tiles->there[tag] = tiles->round + 1 + !now;
    tiles->missing -= now;
    while (tiles_of_copy(m + 1) <= index)
        m++;
    return tiles_owner(tiles, m);
}

uint32_t tiles_children(const struct tiles *tiles, uint32_t owner, uint32_t children[2])
{
    uint32_t place = (tiles->rank + tiles->ranks - owner) % tiles->ranks, count = 0;

    for (uint32_t next = 2 * place + 1; next <= 2 * place + 2 && next < tiles->ranks; next++)
        children[count++] = (owner + next) % tiles->ranks;
    return count;
}

/* ---- the kernels ----------------------------------------------------------------------------- */

/* All tiles with the same m - k are the same at first. */
static void fill(const struct tiles *tiles, double *a, uint32_t m, uint32_t k)
{
    const double *first = tiles->first + (size_t)(m - k) * TILE_CELLS;

    for (uint32_t i = 0; i < TILE_CELLS; i++)
        a[i] = scale(tiles->round) * first[i];
}

static void transpose(double *restrict out, const double *restrict in)
{
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t j = 0; j < N; j++)
            out[j * N + i] = in[i * N + j];
}

/* C -= A * B^T: DGEMM, and DSYRK where A is B. */
static void gemm(double *restrict c, const double *a, const double *b)
{
    double bt[TILE_CELLS];

    transpose(bt, b);
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t l = 0; l < N; l++)
            for (uint32_t j = 0; j < N; j++)
                c[i * N + j] -= a[i * N + l] * bt[l * N + j];
}

/* C becomes its Cholesky factor, in the lower triangle: DPOTRF. Works by columns. */
static void potrf(double *c)
{
    double t[TILE_CELLS];

    transpose(t, c);
    for (uint32_t j = 0; j < N; j++) {
        double *column = t + j * N, root;

        for (uint32_t l = 0; l < j; l++)
            for (uint32_t i = 0; i < N; i++)
                column[i] -= t[l * N + i] * t[l * N + j];
        root = sqrt(column[j]);
        for (uint32_t i = 0; i < N; i++)
            column[i] /= root;
    }
    transpose(c, t);
}

/* C becomes X with X * D^T = C, where D is a diagonal tile's factor: DTRSM. Works by columns. */
static void trsm(double *c, const double *d)
{
    double t[TILE_CELLS];

    transpose(t, c);
    for (uint32_t j = 0; j < N; j++) {
        for (uint32_t l = 0; l < j; l++)
            for (uint32_t i = 0; i < N; i++)
                t[j * N + i] -= t[l * N + i] * d[j * N + l];
        for (uint32_t i = 0; i < N; i++)
            t[j * N + i] /= d[j * N + j];
    }
    transpose(c, t);
}

/* Fills a tile, and subtracts the products of the tiles at its left. */
static uint32_t update(struct tiles *tiles, uint32_t m, uint32_t k)
{
    uint32_t tag = tiles_tag(tiles, m, k);
    double *c = tiles_at(tiles, tag);

    fill(tiles, c, m, k);
    for (uint32_t n = 0; n < k; n++)
        gemm(c, tiles_at(tiles, tiles_tag(tiles, m, n)), tiles_at(tiles, tiles_tag(tiles, k, n)));
    tiles->there[tag] = tiles->round + 1;
    return tag;
}

uint32_t tiles_diagonal(struct tiles *tiles, uint32_t k)
{
    uint32_t tag = update(tiles, k, k);

    potrf(tiles_at(tiles, tag));
    return tag;
}

uint32_t tiles_panel(struct tiles *tiles, uint32_t m, uint32_t k)
{
    uint32_t tag = update(tiles, m, k);

    trsm(tiles_at(tiles, tag), tiles_at(tiles, tiles_tag(tiles, k, k)));
    return tag;
}

double tiles_flops(const struct tiles *tiles)
{
    double n = (double)tiles->rows * N;

    return n * n * n / 3;
}

/* ---- check ----------------------------------------------------------------------------------- */

/* The textbook's factorization of the whole matrix, without tiles. */
static double *serial(uint32_t n)
{
    double *l = calloc((size_t)n * n, sizeof(double));

    for (uint32_t i = 0; l != NULL && i < n; i++)
        for (uint32_t j = 0; j <= i; j++) {
            double sum = matrix(i, j);

            for (uint32_t p = 0; p < j; p++)
                sum -= l[(size_t)i * n + p] * l[(size_t)j * n + p];
            l[(size_t)i * n + j] = i == j ? sqrt(sum) : sum / l[(size_t)j * n + j];
        }
    return l;
}

static bool tile_same(const struct tiles *tiles, uint32_t m, uint32_t k, const double *whole)
{
    const double *tile = tiles_at(tiles, tiles_tag(tiles, m, k));
    double factor = sqrt(scale(tiles->round));
    size_t width = (size_t)tiles->rows * N;

    for (uint32_t i = 0; i < N; i++)
        for (uint32_t j = 0; j < N && (k < m || j <= i); j++) {
            double wanted = factor * whole[(m * N + i) * width + (k * N + j)];

            if (!(fabs(tile[i * N + j] - wanted) < 1e-9)) {
                fprintf(stderr, "cholesky: rank %u, tile %u,%u, cell %u,%u: %.17g, not %.17g\n",
                        tiles->rank, m, k, i, j, tile[i * N + j], wanted);
                return false;
            }
        }
    return true;
}

bool tiles_check(const struct tiles *tiles)
{
    double *whole = serial(tiles->rows * N);
    bool right = whole != NULL;

    for (uint32_t m = 0; m < tiles->rows; m++) {
        if (m == tiles->rows - 1 && tiles_owner(tiles, m) != tiles->rank)
            break; /* nobody needs the last row */
        for (uint32_t k = 0; right && k <= m; k++)
            right = tile_same(tiles, m, k, whole);
    }
    free(whole);
    return right;
}
