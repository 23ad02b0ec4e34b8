/*
 * The Cholesky factorization in tiles (examples/apps/tiles.h) over MPI, in four ways:
 *
 *     cholesky send|ring|fence|pscw [--cpu A,B] [--size ROWS_OF_TILES] [--rounds N]
 *
 *   send    a tile is a message with the tile's tag; receivers probe for any source and tag
 *   ring    a tile is put, and flushed; then its tag is put into a place of a ring at the target,
 *           which polls the ring; a fetch-and-add gives the place
 *   fence   the tiles of a column are put to all ranks; a fence follows each diagonal tile
 *   pscw    as fence, but with post, start, complete and wait instead of fences
 *
 * With send and ring a tile spreads along a binary tree, and is forwarded as soon as it has
 * arrived.
 */
#include "bench/apps/ranks.h"
#include "examples/apps/tiles.h"

#include <stdlib.h>

#define POLLS 32 /* looks into the ring for each call that lets MPI make progress */

struct cholesky {
    struct app app;
    struct tiles tiles;
    MPI_Win window; /* of the tiles */
    /* send: messages under way, from tiles of even and of odd rounds */
    MPI_Request *sent[2];
    int sent_count[2];
    /* ring: a counter, and after it tags plus 1, in the target's memory */
    MPI_Win ring_window;
    volatile uint32_t *ring;
    uint32_t ring_places, taken;
};

/* The steps that differ between `send` and `ring`, in which each tile announces itself. */
struct courier {
    void (*send)(struct cholesky *c, uint32_t to, uint32_t tag);
    uint32_t (*receive)(struct cholesky *c); /* waits for a tile, returns its tag */
};

/* Sends a tile to this rank's children in the tree whose root is the tile's owner. */
static void forward(struct cholesky *c, const struct courier *courier, uint32_t owner, uint32_t tag)
{
    uint32_t children[2], count = tiles_children(&c->tiles, owner, children);

    for (uint32_t i = 0; i < count; i++)
        courier->send(c, children[i], tag);
}

static void receive(struct cholesky *c, const struct courier *courier)
{
    uint32_t tag = courier->receive(c);

    forward(c, courier, tiles_arrived(&c->tiles, tag), tag);
}

/* Sends a tile that this rank has computed. */
static void spread(struct cholesky *c, const struct courier *courier, uint32_t m, uint32_t tag)
{
    if (m < c->tiles.rows - 1)
        forward(c, courier, c->tiles.rank, tag);
}

static void factor(struct cholesky *c, const struct courier *courier)
{
    struct tiles *tiles = &c->tiles;

    for (uint32_t k = 0; k < tiles->rows; k++) {
        if (tiles_owner(tiles, k) == tiles->rank)
            spread(c, courier, k, tiles_diagonal(tiles, k));
        for (uint32_t m = k + 1; m < tiles->rows; m++) {
            if (tiles_owner(tiles, m) != tiles->rank)
                continue;
            for (uint32_t n = 0; n <= k; n++)
                while (!tiles_there(tiles, k, n))
                    receive(c, courier);
            spread(c, courier, m, tiles_panel(tiles, m, k));
        }
    }
    while (tiles->missing > 0)
        receive(c, courier);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void send_tile(struct cholesky *c, uint32_t to, uint32_t tag)
{
    uint32_t odd = tiles_copy(&c->tiles, tag);

    MPI_Isend(tiles_at(&c->tiles, tag), TILE_CELLS, MPI_DOUBLE, (int)to, (int)tag, MPI_COMM_WORLD,
              &c->sent[odd][c->sent_count[odd]++]);
}

static uint32_t receive_tile(struct cholesky *c)
{
    MPI_Status status;

    MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Recv(tiles_at(&c->tiles, (uint32_t)status.MPI_TAG), TILE_CELLS, MPI_DOUBLE,
             status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return (uint32_t)status.MPI_TAG;
}

static void end_sends(struct cholesky *c, uint32_t odd)
{
    MPI_Waitall(c->sent_count[odd], c->sent[odd], MPI_STATUSES_IGNORE);
    c->sent_count[odd] = 0;
}

static void run_send(void *state)
{
    static const struct courier courier = {send_tile, receive_tile};
    struct cholesky *c = state;

    for (int odd = 0; odd < 2; odd++) {
        /* At most two messages for each tile, of two rounds: one that has ended, and one that other
         * ranks have begun. */
        c->sent[odd] = calloc(2ul * tiles_tags(&c->tiles), sizeof(MPI_Request));
        apps_demand(c->sent[odd] != NULL, "no memory");
    }
    for (uint32_t round = 0; round < c->app.rounds; round++) {
        end_sends(c, round % 2); /* this round computes into the places of their tiles */
        tiles_begin(&c->tiles, round);
        factor(c, &courier);
        app_round(&c->app, round);
    }
    for (uint32_t odd = 0; odd < 2; odd++) {
        end_sends(c, odd);
        free(c->sent[odd]);
    }
}

/* ---- puts, and a ring of tags ---------------------------------------------------------------- */

static void put_tile(struct cholesky *c, uint32_t to, uint32_t tag)
{
    MPI_Put(tiles_at(&c->tiles, tag), TILE_CELLS, MPI_DOUBLE, (int)to,
            (MPI_Aint)tag * (MPI_Aint)TILE_BYTES, TILE_CELLS, MPI_DOUBLE, c->window);
}

static void put_in_ring(struct cholesky *c, uint32_t to, uint32_t tag)
{
    uint32_t one = 1, place, word = tag + 1;

    put_tile(c, to, tag);
    MPI_Fetch_and_op(&one, &place, MPI_UINT32_T, (int)to, 0, MPI_SUM, c->ring_window);
    MPI_Win_flush((int)to, c->ring_window);
    MPI_Win_flush((int)to, c->window);
    MPI_Put(&word, 1, MPI_UINT32_T, (int)to,
            (MPI_Aint)((1 + place % c->ring_places) * sizeof(word)), 1, MPI_UINT32_T,
            c->ring_window);
    MPI_Win_flush((int)to, c->ring_window);
}

static uint32_t take_from_ring(struct cholesky *c)
{
    volatile uint32_t *place = c->ring + 1 + c->taken++ % c->ring_places;
    int polls = 0, there;
    uint32_t word;

    while ((word = *place) == 0)
        if (++polls % POLLS == 0) {
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
            MPI_Win_sync(c->ring_window);
        }
    *place = 0;
    MPI_Win_sync(c->ring_window);
    MPI_Win_sync(c->window);
    return word - 1;
}

static void run_ring(void *state)
{
    static const struct courier courier = {put_in_ring, take_from_ring};
    struct cholesky *c = state;

    c->ring_places = tiles_tags(&c->tiles); /* no more tags are under way to a rank */
    c->ring = apps_window((1 + c->ring_places) * sizeof(uint32_t), &c->ring_window);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, c->window);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, c->ring_window);
    for (uint32_t round = 0; round < c->app.rounds; round++) {
        tiles_begin(&c->tiles, round);
        factor(c, &courier);
        app_round(&c->app, round);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(c->ring_window);
    MPI_Win_unlock_all(c->window);
    MPI_Win_free(&c->ring_window);
}

/* ---- puts in epochs -------------------------------------------------------------------------- */

static void put_to_all(struct cholesky *c, uint32_t m, uint32_t tag)
{
    for (uint32_t to = 0; to < c->tiles.ranks && m < c->tiles.rows - 1; to++)
        if (to != c->tiles.rank)
            put_tile(c, to, tag);
}

/* When `turn` returns, all that other ranks have put before is there, and they may put again. */
static void factor_in_epochs(struct cholesky *c, void (*turn)(struct cholesky *, MPI_Group),
                             MPI_Group others)
{
    struct tiles *tiles = &c->tiles;

    for (uint32_t k = 0; k < tiles->rows; k++) {
        if (tiles_owner(tiles, k) == tiles->rank)
            put_to_all(c, k, tiles_diagonal(tiles, k));
        turn(c, others);
        for (uint32_t m = k + 1; m < tiles->rows; m++)
            if (tiles_owner(tiles, m) == tiles->rank)
                put_to_all(c, m, tiles_panel(tiles, m, k));
    }
}

static void turn_fence(struct cholesky *c, MPI_Group others)
{
    (void)others;
    MPI_Win_fence(0, c->window);
}

static void open_epoch(struct cholesky *c, MPI_Group others)
{
    MPI_Win_post(others, 0, c->window);
    MPI_Win_start(others, 0, c->window);
}

static void close_epoch(struct cholesky *c)
{
    MPI_Win_complete(c->window);
    MPI_Win_wait(c->window);
}

static void turn_pscw(struct cholesky *c, MPI_Group others)
{
    close_epoch(c);
    open_epoch(c, others);
}

static void run_fence(void *state)
{
    struct cholesky *c = state;

    MPI_Win_fence(0, c->window);
    for (uint32_t round = 0; round < c->app.rounds; round++) {
        tiles_begin(&c->tiles, round);
        factor_in_epochs(c, turn_fence, MPI_GROUP_NULL);
        app_round(&c->app, round);
    }
    MPI_Win_fence(0, c->window);
}

static void run_pscw(void *state)
{
    struct cholesky *c = state;
    uint32_t ranks[64], count = 0;
    MPI_Group others;

    apps_demand(c->tiles.ranks <= 64, "pscw takes up to 64 ranks");
    for (uint32_t rank = 0; rank < c->tiles.ranks; rank++)
        if (rank != c->tiles.rank)
            ranks[count++] = rank;
    others = apps_group(ranks, count);
    open_epoch(c, others);
    for (uint32_t round = 0; round < c->app.rounds; round++) {
        tiles_begin(&c->tiles, round);
        factor_in_epochs(c, turn_pscw, others);
        app_round(&c->app, round);
    }
    close_epoch(c);
    MPI_Group_free(&others);
}

int main(int argc, char **argv)
{
    static const struct way ways[] = {{"send", run_send},
                                      {"ring", run_ring},
                                      {"fence", run_fence},
                                      {"pscw", run_pscw},
                                      {NULL, NULL}};
    struct cholesky c = {.app = {.name = "cholesky", .size = 8, .rounds = 100}};
    const struct way *way = apps_start(&c.app, ways, argc, argv);
    double *memory = apps_window(tiles_bytes(c.app.size), &c.window);
    bool right;

    apps_demand(tiles_open(&c.tiles, c.app.rank, c.app.ranks, c.app.size, memory), "no tiles");
    way->run(&c);
    right = tiles_check(&c.tiles);
    tiles_close(&c.tiles);
    MPI_Win_free(&c.window);
    return apps_end(&c.app, right, "gflops", tiles_flops(&c.tiles) / 1e9);
}
