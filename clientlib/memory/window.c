/*
 * Owns windows: what their ranks contribute, and the remotes that are bound so far. Creating and
 * freeing one is an exchange of all ranks, or an allgather and a barrier of a team. Thread: the one
 * that owns the context.
 */
#include "clientlib/memory/window.h"

#include <errno.h>
#include <stdlib.h>
#include "clientlib/teams/team.h"

/* The number of a new window's space: above all that a member has had. */
static int choose_space(const struct pwc_window *w, uint32_t *number)
{
    uint32_t highest = 0;

    for (uint32_t i = 0; i < w->size; i++) {
        if (w->members[i].regions < 0)
            return -ECANCELED;
        if (w->members[i].highest_space > highest)
            highest = w->members[i].highest_space;
    }
    if (highest == UINT32_MAX)
        return -ENOSPC;
    *number = highest + 1;
    return 0;
}

static void release(struct pwc_window *w)
{
    free(w->members);
    free(w->remotes);
    free(w->places);
    free(w);
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
    release(w);
    return NULL;
}

static int by_peer(const void *left, const void *right)
{
    const struct window_place *a = left, *b = right;

    return a->peer < b->peer ? -1 : a->peer > b->peer;
}

/* Gathers what all ranks contribute. Blocks. */
static int gather(struct pwc_window *w, const struct window_member *mine)
{
    int rc;

    if (!w->team)
        return pwc_exchange(w->ctx, mine, sizeof(*mine), w->members);
    rc = pwc_team_allgather(w->team, mine, w->members, sizeof(*mine), PWC_CID_NONE, PWC_NO_LCE);
    if (rc == 0)
        rc = team_finish(w->team);
    for (uint32_t rank = 0; rank < w->size && rc == 0; rank++)
        w->places[rank] = (struct window_place){w->members[rank].peer, rank};
    if (rc == 0)
        qsort(w->places, w->size, sizeof(*w->places), by_peer);
    return rc;
}

/* Waits until all ranks have come here. */
static int meet(struct pwc_window *w)
{
    int rc;

    if (!w->team)
        return pwc_barrier(w->ctx);
    rc = pwc_team_barrier(w->team, PWC_CID_NONE, PWC_NO_LCE);
    return rc < 0 ? rc : team_finish(w->team);
}

/* Fills in this rank's contribution: 0, or why it has no part. */
static int contribute(struct pwc_ctx *ctx, const pwc_region *mine, struct window_member *member)
{
    int rc = 0;

    *member = (struct window_member){
        .peer = pwc_peer_of(ctx->client->rank, ctx->number),
        .highest_space = ctx->channel.notify.highest_space,
        .regions = mine != NULL,
    };
    if (mine)
        rc = pwc_region_key(mine, &member->key);
    if (rc < 0)
        member->regions = rc;
    return rc;
}

int pwc_window_create(pwc_ctx *ctx, pwc_team *team, pwc_region *mine, pwc_window **out)
{
    int rc = client_may_ask(ctx->client);
    struct window_member member;
    struct pwc_window *w;

    if (rc < 0)
        return rc;
    if (team && team->ctx != ctx)
        return -EINVAL;
    rc = contribute(ctx, mine, &member);
    w = allocate(ctx, team);
    if (!w) {
        member.regions = -ENOMEM;
        if (!team) /* members of a team wait for this one until their timeout */
            (void)pwc_exchange(ctx, &member, sizeof(member), NULL);
        return -ENOMEM;
    }
    /* A rank that has no part takes part in the exchange, so that no other waits for it. */
    if (rc < 0) {
        (void)gather(w, &member);
    } else {
        rc = gather(w, &member);
        if (rc == 0)
            rc = choose_space(w, &w->space.number);
    }
    if (rc < 0) {
        release(w);
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
    release(w);
}

int pwc_window_free(pwc_window *w)
{
    struct pwc_ctx *ctx = w->ctx;
    int rc = client_may_ask(ctx->client);

    if (rc < 0)
        return rc;
    if (matcher_started_in(&ctx->channel.notify.matcher, w->space.number) > 0)
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
