/*
 * Owns nothing: frees teams in this process, and asks the daemon to forget a member. Thread: the
 * one that owns the context.
 */
#include <stdlib.h>
#include "clientlib/memory/window.h"
#include "clientlib/teams/team.h"
#include "clientlib/teams/teams.h"

void team_drop(struct pwc_team *t)
{
    struct context_teams *teams = &t->ctx->teams;
    struct pwc_window *w;
    struct pwc_team **at;

    for (at = &teams->all; *at != t; at = &(*at)->next)
        ;
    *at = t->next;
    for (at = &teams->active; *at && *at != t; at = &(*at)->next_active)
        ;
    if (*at)
        *at = t->next_active;
    roster_free(&t->roster);
    mapping_destroy(&t->mapping);
    free(t->ids);
    free(t->calls);
    free(t->steps);
    while ((w = t->deserted) != NULL) {
        t->deserted = w->next;
        window_release(w);
    }
    free(t);
}

void team_leave(struct pwc_ctx *ctx, uint64_t number, bool broken)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__TeamLeave leave = PWC__TEAM_LEAVE__INIT;

    leave.session = ctx->session;
    leave.number = number;
    leave.broken = broken;
    request.body_case = PWC__CLIENT_REQUEST__BODY_TEAM_LEAVE;
    request.team_leave = &leave;
    /* If this fails, the daemon forgets the member later, at the latest with the client. */
    (void)daemon_end(&ctx->client->link, &request);
}

void teams_drop(struct pwc_ctx *ctx)
{
    while (ctx->teams.all)
        team_drop(ctx->teams.all);
    for (uint32_t i = 0; i < ctx->teams.again_count; i++)
        free(ctx->teams.again[i]);
    free(ctx->teams.again);
}
