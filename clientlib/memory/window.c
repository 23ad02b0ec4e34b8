/*
 * Owns windows: what their ranks contribute, and the remotes that are bound so far. Creating and
 * freeing one is an exchange of all ranks. Thread: the one that owns the context.
 */
#include "clientlib/memory/window.h"

#include <errno.h>
#include <stdlib.h>

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

static struct pwc_window *allocate(struct pwc_ctx *ctx)
{
    struct pwc_window *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->ctx = ctx;
    w->size = ctx->client->size;
    w->members = calloc(w->size, sizeof(*w->members));
    w->remotes = calloc(w->size, sizeof(*w->remotes));
    if (w->members && w->remotes)
        return w;
    free(w->members);
    free(w->remotes);
    free(w);
    return NULL;
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
    int rc = client_may_block(ctx->client);
    struct window_member member;
    struct pwc_window *w;

    if (rc < 0)
        return rc;
    if (team)
        return -EINVAL;
    rc = contribute(ctx, mine, &member);
    w = allocate(ctx);
    if (!w)
        return -ENOMEM; /* the others wait for this rank until their timeout */
    /* A rank that has no part takes part in the exchange, so that no other waits for it. */
    if (rc < 0) {
        (void)pwc_exchange(ctx, &member, sizeof(member), w->members);
    } else {
        rc = pwc_exchange(ctx, &member, sizeof(member), w->members);
        if (rc == 0)
            rc = choose_space(w, &w->space.number);
    }
    if (rc < 0) {
        free(w->members);
        free(w->remotes);
        free(w);
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
    free(w->members);
    free(w->remotes);
    free(w);
}

int pwc_window_free(pwc_window *w)
{
    struct pwc_ctx *ctx = w->ctx;
    int rc = client_may_block(ctx->client);

    if (rc < 0)
        return rc;
    if (matcher_started_in(&ctx->channel.notify.matcher, w->space.number) > 0)
        return -EBUSY;
    rc = pwc_flush(ctx, PWC_ANY, ctx->client->link.timeout_ms);
    if (rc == 0)
        rc = pwc_barrier(ctx);
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
    uint32_t rank = pwc_peer_rank(peer);

    return rank < w->size && w->members[rank].peer == peer ? (int)rank : -ENOENT;
}
