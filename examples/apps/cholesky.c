/*
 * A Cholesky factorization in tiles of 32 x 32, as tasks: a rank computes a tile when the tiles
 * that it needs are there, and tiles arrive in any order from any rank. A tile is put directly to
 * its place at the target, and the tag of its notification says which tile it is. So one request,
 * for any rank and any tag, waits for all tiles, and no tile is copied on its way. Each tile
 * spreads along a binary tree of ranks: each rank forwards the tile as soon as it has arrived.
 *
 *     pwcrun --nodes 2 -n 2 -- ./cholesky [--size ROWS_OF_TILES] [--rounds N] [--cpu A,B]
 */
#include "examples/apps/team.h"
#include "examples/apps/tiles.h"

#include <sched.h>

struct cholesky {
    struct team team;
    struct tiles tiles;
    pwc_request *any;     /* waits for the next tile, whichever it is */
    pwc_request *sent[2]; /* the puts of tiles from each of the two copies of the matrix, which
                           * rounds use by turns (tiles.h) */
};

/* Sends a tile to this rank's children in the tree whose root is the tile's owner. */
static void forward(struct cholesky *c, uint32_t owner, uint32_t tag)
{
    uint32_t children[2], count = tiles_children(&c->tiles, owner, children);

    for (uint32_t i = 0; i < count; i++)
        team_put(&c->team, children[i], tag * TILE_BYTES, tiles_at(&c->tiles, tag), TILE_BYTES, tag,
                 c->sent[tiles_copy(&c->tiles, tag)]);
    /* A daemon that shares this processor can now send the tile, before the next one is computed.
     */
    if (count > 0)
        sched_yield();
}

static void receive(struct cholesky *c)
{
    uint32_t tag = team_wait(c->any);

    forward(c, tiles_arrived(&c->tiles, tag), tag);
}

/* Sends a tile that this rank has computed. Other ranks need no tile of the last row. */
static void spread(struct cholesky *c, uint32_t m, uint32_t tag)
{
    if (m < c->tiles.rows - 1)
        forward(c, c->tiles.rank, tag);
}

static void factor(struct cholesky *c)
{
    struct tiles *tiles = &c->tiles;

    for (uint32_t k = 0; k < tiles->rows; k++) {
        if (tiles_owner(tiles, k) == tiles->rank)
            spread(c, k, tiles_diagonal(tiles, k));
        for (uint32_t m = k + 1; m < tiles->rows; m++) {
            if (tiles_owner(tiles, m) != tiles->rank)
                continue;
            for (uint32_t n = 0; n <= k; n++)
                while (!tiles_there(tiles, k, n))
                    receive(c);
            spread(c, m, tiles_panel(tiles, m, k));
        }
    }
    while (tiles->missing > 0)
        receive(c);
}

/* Waits until all puts of tiles from this copy of the matrix are placed. */
static void end_puts(struct cholesky *c, uint32_t copy)
{
    struct pwc_status status;

    CHECK(pwc_request_wait(c->sent[copy], &status, -1));
    CHECK(status.status);
}

int main(int argc, char **argv)
{
    struct app app = {.name = "cholesky", .way = "pwcd", .size = 8, .rounds = 100};
    struct cholesky c;
    bool right;

    team_open(&c.team, &app, argc, argv);
    team_share(&c.team, tiles_bytes(app.size));
    if (!tiles_open(&c.tiles, app.rank, app.ranks, app.size, c.team.memory))
        return 1;
    c.any = team_request(&c.team, PWC_ANY_RANK, PWC_ANY_TAG, 1);
    for (uint32_t copy = 0; copy < 2; copy++)
        CHECK(pwc_request_create(c.team.ctx, &c.sent[copy]));
    for (uint32_t round = 0; round < app.rounds; round++) {
        end_puts(&c, round % 2); /* this round overwrites that copy */
        tiles_begin(&c.tiles, round);
        factor(&c);
        app_round(&app, round);
    }
    right = tiles_check(&c.tiles);
    tiles_close(&c.tiles);
    for (uint32_t copy = 0; copy < 2; copy++) {
        end_puts(&c, copy);
        CHECK(pwc_request_free(c.sent[copy]));
    }
    CHECK(pwc_request_free(c.any));
    return team_end(&c.team, &app, right, "gflops", tiles_flops(&c.tiles) / 1e9);
}
