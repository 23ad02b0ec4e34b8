/*
 * Each rank has a tile of a matrix; rank 0 has all of the matrix, the tiles side by side. Every
 * rank puts its tile into rank 0's matrix by one call: the rows of the tile are the elements of a
 * shape (pwc/vector.h). Rank 0 gets one event for each tile.
 *
 *     rank 0's matrix      | tile 0 | tile 1 | ... |      a row: size * COLUMNS numbers
 *                          | tile 0 | tile 1 | ... |
 *                               ^
 *     a rank's tile        | ROWS x COLUMNS numbers |     side by side in its memory
 */
#include <pwc/vector.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS       8u
#define COLUMNS    16u
#define RANKS_MAX  64u
#define TIMEOUT_MS 30000

static void check(const char *what, int rc)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "tiles: %s: %s\n", what, pwc_strerror(rc));
    exit(1);
}

static double number_at(uint32_t tile, size_t row, size_t column)
{
    return tile * 1000.0 + (double)(row * COLUMNS + column);
}

/* Rank 0 waits for as many events as there are tiles, and looks at every number. */
static int check_matrix(pwc_ctx *ctx, const double *matrix, uint32_t size)
{
    struct pwc_event event;

    for (uint32_t tile = 0; tile < size; tile++)
        if (pwc_wait(ctx, PWC_ANY, PWC_REMOTE, &event, TIMEOUT_MS) != 1)
            return 1;
    for (size_t i = 0; i < ROWS * size * (size_t)COLUMNS; i++) {
        size_t row = i / (size * COLUMNS), column = i % (size * COLUMNS);

        if (matrix[i] != number_at((uint32_t)(column / COLUMNS), row, column % COLUMNS))
            return 1;
    }
    printf("%u tiles of %u x %u numbers are in place\n", size, ROWS, COLUMNS);
    return 0;
}

int main(void)
{
    double tile[ROWS * COLUMNS];
    pwc_remote *ranks[RANKS_MAX];
    struct pwc_event event;
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_region *region;
    uint32_t rank, size;
    int rc, failed = 0;

    check("attaching", pwc_init(NULL, &client));
    rank = pwc_rank(client);
    size = pwc_size(client);
    if (size > RANKS_MAX)
        return 2;
    check("a context", pwc_ctx_create(client, NULL, &ctx));
    check("memory", pwc_alloc(client, sizeof(tile) * size, PWC_REMOTE_WRITE, &region));
    check("remotes of all ranks", pwc_bind_all(ctx, region, ranks));
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        tile[i] = number_at(rank, i / COLUMNS, i % COLUMNS);

    const struct pwc_shape shape = {
        .dims = 1,
        .element = COLUMNS * sizeof(double), /* a row of the tile */
        .count = {ROWS},
        .local_stride = {COLUMNS * sizeof(double)},
        .remote_stride = {(ptrdiff_t)(size * COLUMNS * sizeof(double))},
    };

    check("putting the tile", pwc_put_shape(ranks[0], rank * COLUMNS * sizeof(double), tile, &shape,
                                            pwc_cid_u64(1), pwc_cid_u64(rank), 0));
    rc = pwc_wait(ctx, 0, PWC_LOCAL, &event, TIMEOUT_MS);
    if (rc != 1 || event.status != 0)
        failed = 1;
    if (rank == 0)
        failed |= check_matrix(ctx, pwc_region_addr(region), size);
    check("a barrier", pwc_barrier(ctx));
    check("leaving", pwc_finalize(client));
    return failed;
}
