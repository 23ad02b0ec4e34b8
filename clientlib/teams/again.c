/*
 * Owns the calls of persistent requests of teams, by the number of the request. Thread: the one
 * that owns the context.
 */
#include <errno.h>
#include <stdlib.h>
#include "clientlib/requests/request.h"
#include "clientlib/teams/team.h"

static int make_place(struct context_teams *teams, uint32_t number)
{
    uint32_t count = teams->again_count > 0 ? teams->again_count : REQUESTS_A_CHUNK;
    struct team_again **again;

    if (number < teams->again_count)
        return 0;
    while (count <= number)
        count *= 2;
    again = realloc(teams->again, count * sizeof(struct team_again *));
    if (!again)
        return -ENOMEM;
    for (uint32_t i = teams->again_count; i < count; i++)
        again[i] = NULL;
    teams->again = again;
    teams->again_count = count;
    return 0;
}

int team_make_again(struct pwc_team *t, struct team_spec spec, pwc_cid lid, pwc_request **out)
{
    struct context_teams *teams = &t->ctx->teams;
    struct team_again *again;
    struct pwc_request *r;
    int rc;

    if (client_is_forked(t->ctx->client))
        return -EOWNERDEAD;
    rc = spec_settle(t, &spec);
    if (rc < 0)
        return rc;
    rc = request_pool_take(&t->ctx->channel.requests, REQUEST_COLLECTIVE, &r);
    if (rc < 0)
        return rc;
    r->wanted = 1;
    again = malloc(sizeof(*again));
    rc = request_set_lid(r, &lid);
    if (rc == 0)
        rc = again ? make_place(teams, request_number(r)) : -ENOMEM;
    if (rc < 0) {
        free(again);
        (void)request_pool_give(r);
        return rc;
    }
    *again = (struct team_again){.team = t, .spec = spec};
    teams->again[request_number(r)] = again;
    t->persistent++;
    *out = r;
    return 0;
}

static int start(struct pwc_ctx *ctx, struct pwc_request *r)
{
    const struct team_again *again = ctx->teams.again[request_number(r)];

    return team_call_again(again->team, &again->spec, r);
}

static void forget(struct pwc_ctx *ctx, uint32_t number)
{
    struct team_again *again = ctx->teams.again[number];

    again->team->persistent--;
    free(again);
    ctx->teams.again[number] = NULL;
}

const struct request_kind request_collective = {.start = start, .forget = forget};
