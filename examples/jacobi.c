/*
 * Jacobi's method for heat in a rod. Each rank has a part of the rod, and in each step puts its
 * border cells into the ghost cells of its neighbours. Three calls do this: pwc_alloc makes a
 * rank's ghost cells, pwc_bind_all lets each rank reach those of all others, and pwc_put writes.
 *
 *     rank 0   | 1 | . . . | g |          g: ghost cells, which neighbours write
 *     rank 1           | g | . . . | g |
 *     rank 2                   | g | . . . | 0 |
 *
 * The remote event of a put says that a ghost cell has arrived. A neighbour may be a step ahead, so
 * each ghost cell has two places, for even and odd steps.
 *
 * Run: pwcrun --nodes 2 -n 4 -- ./jacobi
 */
#include <pwc/pwc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 4, STEPS = 4000 }; /* cells of a rank */
enum { LEFT, RIGHT };

/* The region of a rank: what its neighbours write. */
struct ghosts {
    double from[2][2]; /* side, parity of the step */
};

#define CHECK(call) check(#call, call)
static int check(const char *call, int rc)
{
    if (rc < 0) {
        fprintf(stderr, "jacobi: %s: %s\n", call, pwc_strerror(rc));
        exit(1);
    }
    return rc;
}

/* Puts a border cell into a neighbour's ghost cell, at the neighbour's left or right side. */
static void give(pwc_remote *to, int side, unsigned step, double cell)
{
    size_t off = sizeof(double) * (2 * (size_t)side + step % 2);

    CHECK(pwc_put(to, off, &cell, sizeof(cell), PWC_CID_NONE, pwc_cid_u64(step),
                  PWC_NO_LCE | PWC_WAIT));
}

/* Waits for the event of a neighbour's put of this step. */
static void await(pwc_ctx *ctx, uint32_t rank, unsigned step)
{
    struct pwc_event event;

    if (CHECK(pwc_wait(ctx, rank, PWC_REMOTE, &event, 30000)) == 0 || event.id != step)
        exit(1);
}

int main(void)
{
    double now[CELLS + 2] = {0}, next[CELLS + 2] = {0}, worst = 0;
    const struct ghosts *ghosts;
    pwc_remote **ranks;
    pwc_client *client;
    pwc_region *region;
    pwc_ctx *ctx;

    CHECK(pwc_init(NULL, &client));
    CHECK(pwc_ctx_create(client, NULL, &ctx));
    CHECK(pwc_alloc(client, sizeof(*ghosts), PWC_REMOTE_WRITE, &region));
    ghosts = pwc_region_addr(region);
    uint32_t rank = pwc_rank(client), size = pwc_size(client);
    ranks = calloc(size, sizeof(pwc_remote *));
    if (!ranks)
        return 1;
    CHECK(pwc_bind_all(ctx, region, ranks));

    if (rank == 0)
        now[0] = 1; /* one end is hot, and the other cold */
    for (unsigned step = 0; step < STEPS; step++) {
        if (rank > 0)
            give(ranks[rank - 1], RIGHT, step, now[1]);
        if (rank + 1 < size)
            give(ranks[rank + 1], LEFT, step, now[CELLS]);
        if (rank > 0) {
            await(ctx, rank - 1, step);
            now[0] = ghosts->from[LEFT][step % 2];
        }
        if (rank + 1 < size) {
            await(ctx, rank + 1, step);
            now[CELLS + 1] = ghosts->from[RIGHT][step % 2];
        }
        for (size_t i = 1; i <= CELLS; i++)
            next[i] = (now[i - 1] + now[i + 1]) / 2;
        memcpy(now + 1, next + 1, CELLS * sizeof(double));
    }

    for (size_t i = 1; i <= CELLS; i++) /* the heat falls evenly from end to end */
        worst = fmax(worst, fabs(now[i] - (1 - (double)(rank * CELLS + i) / (size * CELLS + 1))));
    printf("jacobi: rank %u is right to %.0e\n", (unsigned)rank, worst);
    CHECK(pwc_barrier(ctx));
    free(ranks);
    CHECK(pwc_finalize(client));
    return worst > 1e-6;
}
