/*
 * Owns windows: their ranks' contributions, and the remotes that are bound so far. A window over
 * the job is created by an exchange, one over a team by an allreduce and an allgather; freeing a
 * window takes a barrier. Thread: the one that owns the context.
 */
#include "clientlib/memory/window.h"

#include <errno.h>
#include <stdlib.h>
#include "clientlib/memory/region.h"
#include "clientlib/teams/describe.h"
#include "clientlib/teams/team.h"

/* Chooses the number of a new window's space: above all spaces that a member has had. */
static int choose_space(const struct pwc_window *w, uint32_t *number)
{
    uint32_t highest = 0;

    for (uint32_t i = 0; i < w->size; i++)
        if (w->members[i].highest_space > highest)
            highest = w->members[i].highest_space;
    if (highest == UINT32_MAX)
        return -ENOSPC;
    *number = highest + 1;
    return 0;
}

static struct pwc_window *allocate(struct pwc_ctx *ctx, struct pwc_team *team)
{
    struct pwc_window *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->ctx = ctx;
    w->team = team;
    w->size = team ? pwc_team_size(team) : ctx->client->size;
    w->members = calloc(w->size, sizeof(*w->members));
    w->remotes = calloc(w->size, sizeof(*w->remotes));
    w->places = team ? calloc(w->size, sizeof(*w->places)) : NULL;
    if (w->members && w->remotes && (!team || w->places))
        return w;
    window_release(w);
    return NULL;
}

static int by_peer(const void *left, const void *right)
{
    const struct window_place *a = left, *b = right;

    return a->peer < b->peer ? -1 : a->peer > b->peer;
}

/* Fills in this rank's contribution: 0, or why this rank cannot take part, with the text. */
static int contribute(struct pwc_ctx *ctx, const struct pwc_team *team, const pwc_region *mine,
                      struct window_member *member)
{
    int rc = 0;

    *member = (struct window_member){
        .peer = pwc_peer_of(ctx->client->rank, ctx->number),
        .highest_space = ctx->channel.notify.highest_space,
        .regions = mine != NULL,
    };
    if (team && team->ctx != ctx)
        rc = daemon_link_refuse(&ctx->client->link, -EINVAL, "the team belongs to another context");
    else if (mine)
        rc = region_key_for_all(mine, ctx->client, &member->key);
    if (rc < 0)
        member->regions = rc;
    return rc;
}

/* ---- over all ranks of the job --------------------------------------------------------------- */

/* Exchanges all ranks' contributions. A rank that cannot take part, or has no memory (`w` is NULL),
 * still makes the exchange, so that no other rank waits for it. */
static int exchange(struct pwc_ctx *ctx, struct pwc_window *w, const struct window_member *mine)
{
    int rc = pwc_exchange(ctx, mine, sizeof(*mine), w ? w->members : NULL);

    if (mine->regions < 0)
        return mine->regions;
    for (uint32_t rank = 0; w && rank < w->size && rc == 0; rank++)
        if (w->members[rank].regions < 0)
            rc = region_refused_by(ctx->client, rank, w->members[rank].regions);
    return rc;
}

/* ---- over a team ----------------------------------------------------------------------------- */

/* Copies the reason for a team's break to pwc_error_text, too. */
static int explained(struct pwc_team *t, int rc)
{
    char text[256];

    if (rc == 0 || rc != t->status || pwc_team_error_text(t, text, sizeof(text)) == 0)
        return rc;
    return daemon_link_refuse(&t->ctx->client->link, rc, text);
}

/* Whether all members can take part; done before they allocate memory. The vote's memory is in the
 * team, because a call that times out still writes there. */
static int vote(struct pwc_team *t, int mine)
{
    const struct team_spec spec =
        describe_fold(TEAM_ALLREDUCE, &t->vote[0], &t->vote[1], 1, PWC_I64_AT, PWC_MINLOC, 0);
    int rc;

    t->vote[0] = (struct pwc_i64_at){.value = mine, .at = t->ctx->client->rank};
    rc = team_call_to_end(t, &spec);
    if (rc < 0 || mine < 0)
        return rc < 0 ? explained(t, rc) : mine;
    return t->vote[1].value == 0
               ? 0
               : region_refused_by(t->ctx->client, (uint32_t)t->vote[1].at, (int)t->vote[1].value);
}

/* Gathers all members' contributions. */
static int gather(struct pwc_window *w)
{
    const struct team_spec spec =
        describe_move(TEAM_ALLGATHER, &w->mine, w->members, sizeof(w->mine), 0);
    int rc = team_call_to_end(w->team, &spec);

    for (uint32_t rank = 0; rank < w->size && rc == 0; rank++)
        w->places[rank] = (struct window_place){w->members[rank].peer, rank};
    if (rc == 0)
        qsort(w->places, w->size, sizeof(*w->places), by_peer);
    return explained(w->team, rc);
}

/* ---- windows of a job or a team -------------------------------------------------------------- */

/* Waits until all ranks have called pwc_window_free. A call after an error waits for the same
 * barrier, because the other ranks make only one. Nobody is waited for where the team is broken, or
 * a rank of the job has ended. */
static int meet(struct pwc_window *w)
{
    const struct team_spec barrier = {.kind = TEAM_BARRIER};
    int rc;

    if (w->met)
        return 0;
    if (w->team) {
        rc = team_call_or_resume(w->team, &barrier, &w->barrier);
        w->met = rc == 0 || w->team->status < 0;
    } else {
        rc = pwc_barrier(w->ctx);
        w->met = rc == 0 || rc == -EHOSTDOWN;
    }
    return w->met ? 0 : rc;
}

/* Frees a window that could not be made; later, if a collective under way still writes into
 * `members`. */
static void give_up(struct pwc_window *w)
{
    if (w->team && w->team->called > w->team->over) {
        w->next = w->team->deserted;
        w->team->deserted = w;
    } else {
        window_release(w);
    }
}

int pwc_window_create(pwc_ctx *ctx, pwc_team *team, pwc_region *mine, pwc_window **out)
{
    int rc = client_may_ask(ctx->client), unable;
    struct window_member member;
    struct pwc_window *w;

    if (rc == 0 && !team)
        rc = client_needs_size(ctx->client, "a window over all ranks");
    if (rc < 0)
        return rc;
    w = allocate(ctx, team);
    unable = contribute(ctx, team, mine, &member);
    if (!w)
        member.regions = unable = -ENOMEM;
    rc = team ? vote(team, unable) : exchange(ctx, w, &member);
    if (team && rc == 0) {
        w->mine = member;
        rc = gather(w);
    }
    if (rc == 0)
        rc = choose_space(w, &w->space.number);
    if (rc < 0) {
        if (w)
            give_up(w);
        if (rc == unable) /* the exchange has cleared the text */
            (void)contribute(ctx, team, mine, &member);
        return rc;
    }
    channel_space_open(&ctx->channel, &w->space);
    w->next = ctx->windows;
    ctx->windows = w;
    *out = w;
    return 0;
}

void window_free(struct pwc_window *w)
{
    struct pwc_window **at = &w->ctx->windows;

    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    channel_space_close(&w->ctx->channel, &w->space);
    window_release(w);
}

int pwc_window_free(pwc_window *w)
{
    struct pwc_ctx *ctx = w->ctx;
    int rc = client_may_ask(ctx->client);

    if (rc < 0)
        return rc;
    if (matcher_started_in(&ctx->channel.notify.matcher, w->space.number) > 0 ||
        ctx->channel.submit.open)
        return -EBUSY;
    rc = pwc_flush(ctx, PWC_ANY, ctx->client->link.timeout_ms);
    if (rc == 0)
        rc = meet(w);
    for (uint32_t i = 0; i < w->size && rc == 0; i++) {
        if (w->remotes[i])
            rc = pwc_unbind(w->remotes[i]);
        if (rc == 0)
            w->remotes[i] = NULL;
    }
    if (rc == 0)
        window_free(w);
    return rc;
}

int pwc_window_remote(pwc_window *w, uint32_t rank, pwc_remote **out)
{
    int rc;

    if (rank >= w->size)
        return -EINVAL;
    if (!w->remotes[rank]) {
        const struct window_member *m = &w->members[rank];

        rc = pwc_bind(w->ctx, m->peer, m->regions ? &m->key : NULL, &w->remotes[rank]);
        if (rc < 0)
            return rc;
    }
    *out = w->remotes[rank];
    return 0;
}

int pwc_window_rank(const pwc_window *w, pwc_peer peer)
{
    const struct window_place wanted = {.peer = peer};
    const struct window_place *place;
    uint32_t rank = pwc_peer_rank(peer);

    if (w->team) {
        place = bsearch(&wanted, w->places, w->size, sizeof(*w->places), by_peer);
        return place ? (int)place->rank : -ENOENT;
    }
    return rank < w->size && w->members[rank].peer == peer ? (int)rank : -ENOENT;
}
