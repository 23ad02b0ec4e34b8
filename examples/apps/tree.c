/*
 * A reduction over a tree of ranks with up to 16 children each: a child puts its vector into its
 * own place at its parent, and one request of the parent ends when the notifications of all its
 * children are there, in whatever order they come. Then rank 0 has the sum, and releases the others
 * by notifications without data.
 *
 *     pwcrun -n 17 -- ./tree [--size NUMBERS] [--rounds N] [--cpu A,B]
 */
#include "examples/apps/sums.h"
#include "examples/apps/team.h"

#define TAG_SUM     1
#define TAG_RELEASE 2

static void reduce(struct team *team, struct sums *sums, pwc_request *from_children)
{
    size_t bytes = sums->count * sizeof(double);

    if (sums->children > 0)
        team_wait(from_children);
    sums_add(sums);
    if (sums->rank != 0)
        team_put(team, sums->parent, sums->place * bytes, sums->own, bytes, TAG_SUM, NULL);
}

static void release(struct team *team, const struct sums *sums, pwc_request *from_parent)
{
    if (sums->rank != 0)
        team_wait(from_parent);
    for (uint32_t i = 0; i < sums->children; i++)
        team_put(team, sums->first + i, 0, NULL, 0, TAG_RELEASE, NULL);
}

int main(int argc, char **argv)
{
    struct app app = {.name = "tree", .way = "pwcd", .size = 1, .rounds = 1000};
    struct team team;
    struct sums sums;
    pwc_request *from_children = NULL, *from_parent;
    bool right = true;

    team_open(&team, &app, argc, argv);
    team_share(&team, sums_bytes(app.size));
    sums_open(&sums, app.rank, app.ranks, app.size, team.memory);
    if (sums.children > 0)
        from_children = team_request(&team, PWC_ANY_RANK, TAG_SUM, sums.children);
    from_parent = team_request(&team, sums.parent, TAG_RELEASE, 1);
    for (uint32_t round = 0; round < app.rounds; round++) {
        sums_contribute(&sums, round);
        reduce(&team, &sums, from_children);
        release(&team, &sums, from_parent);
        if (app.rank == 0)
            right = right && sums_check(&sums, round);
        app_round(&app, round);
    }
    CHECK(pwc_request_free(from_parent));
    if (sums.children > 0)
        CHECK(pwc_request_free(from_children));
    return team_end(&team, &app, right, "rounds_per_s", 1);
}
