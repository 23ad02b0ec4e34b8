/*
 * Owns nothing: calls that ask about a team. Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/teams/team.h"

uint32_t pwc_team_rank(const pwc_team *t)
{
    return t->rank;
}

uint32_t pwc_team_size(const pwc_team *t)
{
    return t->roster.size;
}

int pwc_team_peer(const pwc_team *t, uint32_t rank, pwc_peer *out)
{
    if (rank >= t->roster.size)
        return -EINVAL;
    *out = roster_peer(&t->roster, rank);
    return 0;
}

size_t pwc_team_small_max(const pwc_team *t)
{
    return team_small_max(t->roster.fullest);
}
