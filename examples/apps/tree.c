/*
 * A reduction over a tree of ranks with up to 16 children each: a child puts its vector into its
 * own place at its parent, and the parent waits for all of its children, in whatever order they
 * come. Then rank 0 has the sum, and releases the others by puts of no bytes.
 *
 *     pwcrun -n 17 -- ./tree [--size NUMBERS] [--rounds N] [--cpu A,B]
 */
#include "examples/apps/sums.h"
#include "examples/apps/team.h"

static void reduce(struct team *team, struct sums *sums)
{
    size_t bytes = sums->count * sizeof(double);

    for (uint32_t i = 0; i < sums->children; i++)
        team_wait(team, PWC_ANY);
    sums_add(sums);
    if (sums->rank != 0)
        team_put(team, sums->parent, sums->place * bytes, sums->own, bytes, 0);
}

static void release(struct team *team, const struct sums *sums)
{
    if (sums->rank != 0)
        team_wait(team, sums->parent);
    for (uint32_t i = 0; i < sums->children; i++)
        team_put(team, sums->first + i, 0, NULL, 0, 0);
}

int main(int argc, char **argv)
{
    struct app app = {.name = "tree", .way = "pwcd", .size = 1, .rounds = 1000};
    struct team team;
    struct sums sums;
    bool right = true;

    team_open(&team, &app, argc, argv);
    team_share(&team, sums_bytes(app.size));
    sums_open(&sums, app.rank, app.ranks, app.size, team.memory);
    for (uint32_t round = 0; round < app.rounds; round++) {
        sums_contribute(&sums, round);
        reduce(&team, &sums);
        release(&team, &sums);
        if (app.rank == 0)
            right = right && sums_check(&sums, round);
        app_round(&app, round);
    }
    return team_end(&team, &app, right, "rounds_per_s", 1);
}
