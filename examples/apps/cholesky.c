/*
 * A Cholesky factorization in tiles of 32 x 32, as tasks: a rank computes a tile when those that it
 * needs are there, and tiles come in any order from any rank. A tile is put to its place at the
 * target, and its tag says which one it is; so there is no receive to post, no message to match,
 * and no copy. Each tile spreads along a binary tree of ranks, forwarded as soon as it has come.
 *
 *     pwcrun --nodes 2 -n 2 -- ./cholesky [--size ROWS_OF_TILES] [--rounds N] [--cpu A,B]
 */
#include "examples/apps/team.h"
#include "examples/apps/tiles.h"

#include <sched.h>

/* To the next ranks of the tree of the tile's owner. */
static void forward(struct team *team, const struct tiles *tiles, uint32_t owner, uint32_t tag)
{
    uint32_t children[2], count = tiles_children(tiles, owner, children);

    for (uint32_t i = 0; i < count; i++)
        team_put(team, children[i], tag * TILE_BYTES, tiles_at(tiles, tag), TILE_BYTES, tag);
    /* Where the daemon shares this processor, the tile leaves before the next one is computed. */
    if (count > 0)
        sched_yield();
}

/* Waits for a tile, whichever comes. */
static void receive(struct team *team, struct tiles *tiles)
{
    uint32_t tag = (uint32_t)team_wait(team, PWC_ANY);

    forward(team, tiles, tiles_arrived(tiles, tag), tag);
}

/* A tile of this rank is computed. The last row is for its owner alone. */
static void spread(struct team *team, const struct tiles *tiles, uint32_t m, uint32_t tag)
{
    if (m < tiles->rows - 1)
        forward(team, tiles, tiles->rank, tag);
}

static void factor(struct team *team, struct tiles *tiles)
{
    for (uint32_t k = 0; k < tiles->rows; k++) {
        if (tiles_owner(tiles, k) == tiles->rank)
            spread(team, tiles, k, tiles_diagonal(tiles, k));
        for (uint32_t m = k + 1; m < tiles->rows; m++) {
            if (tiles_owner(tiles, m) != tiles->rank)
                continue;
            for (uint32_t n = 0; n <= k; n++)
                while (!tiles_there(tiles, k, n))
                    receive(team, tiles);
            spread(team, tiles, m, tiles_panel(tiles, m, k));
        }
    }
    while (tiles->missing > 0)
        receive(team, tiles);
}

int main(int argc, char **argv)
{
    struct app app = {.name = "cholesky", .way = "pwcd", .size = 8, .rounds = 100};
    struct team team;
    struct tiles tiles;
    bool right;

    team_open(&team, &app, argc, argv);
    team_share(&team, tiles_bytes(app.size));
    if (!tiles_open(&tiles, app.rank, app.ranks, app.size, team.memory))
        return 1;
    for (uint32_t round = 0; round < app.rounds; round++) {
        team_flush(&team); /* puts from the places that this round computes into */
        tiles_begin(&tiles, round);
        factor(&team, &tiles);
        app_round(&app, round);
    }
    right = tiles_check(&tiles);
    tiles_close(&tiles);
    return team_end(&team, &app, right, "gflops", tiles_flops(&tiles) / 1e9);
}
