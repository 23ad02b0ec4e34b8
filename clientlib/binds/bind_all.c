/*
 * pwc_bind_all: each rank sends the address of its context and the key of its region to all ranks,
 * then makes a late remote for each rank. Owns nothing.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include <stdlib.h>
#include "clientlib/binds/bind.h"
#include "clientlib/memory/region.h"

/* A rank's contribution; plain data, exchanged as it is. */
struct member {
    pwc_peer peer; /* the context that it passes */
    struct pwc_key key;
    uint64_t length;
    uint32_t rights;
    int32_t regions; /* 1, or 0: the rank passes none; a negative errno: the rank cannot take
                        part */
};
static_assert(sizeof(struct member) == 56, "member");

/* Fills in this rank's contribution: 0, or why this rank cannot take part, with the text. */
static int contribute(struct pwc_ctx *ctx, const pwc_region *region, struct member *mine)
{
    int rc = 0;

    *mine = (struct member){.peer = pwc_peer_of(ctx->client->rank, ctx->number),
                            .regions = region != NULL};
    if (region) {
        rc = region_key_for_all(region, ctx->client, &mine->key);
        mine->length = region->len;
        mine->rights = region->rights;
    }
    if (rc < 0)
        mine->regions = rc;
    return rc;
}

static int make_all(struct pwc_ctx *ctx, const struct member *members, pwc_remote **remotes)
{
    uint32_t size = ctx->client->size, made = 0;

    for (; made < size; made++) {
        const struct member *m = &members[made];

        remotes[made] = remote_new_late(ctx, m->peer, m->regions ? &m->key : NULL,
                                        m->regions ? m->length : 0, m->regions ? m->rights : 0);
        if (!remotes[made])
            break;
    }
    if (made == size)
        return 0;
    while (made-- > 0) {
        unbound_forget(remotes[made]);
        free(remotes[made]);
    }
    return -ENOMEM;
}

/* 0, or -ECANCELED with the text that names a rank. */
static int all_take_part(struct pwc_client *client, const struct member *members)
{
    for (uint32_t rank = 0; rank < client->size; rank++)
        if (members[rank].regions < 0)
            return region_refused_by(client, rank, members[rank].regions);
    return 0;
}

int pwc_bind_all(pwc_ctx *ctx, pwc_region *region, pwc_remote **remotes)
{
    struct member mine, *members;
    pwc_remote **made;
    uint32_t size;
    int rc, unable;
    bool room;

    if (!ctx || !remotes)
        return -EINVAL;
    rc = client_may_ask(ctx->client);
    if (rc == 0)
        rc = client_needs_size(ctx->client, "pwc_bind_all");
    if (rc < 0)
        return rc;
    size = ctx->client->size;
    members = calloc(size, sizeof(*members));
    made = calloc(size, sizeof(*made));
    room = members && made;
    unable = contribute(ctx, region, &mine);
    if (unable == 0 && !room)
        unable = mine.regions = -ENOMEM;
    /* A rank that fails still makes the exchange, so that no other waits for it, and the ranks'
     * next exchanges match. */
    rc = pwc_exchange(ctx, &mine, sizeof(mine), room ? members : NULL);
    if (rc == 0 && unable == 0)
        rc = all_take_part(ctx->client, members);
    if (rc == 0 && unable == 0)
        rc = make_all(ctx, members, made);
    for (uint32_t i = 0; i < size && rc == 0 && unable == 0; i++)
        remotes[i] = made[i];
    free(made);
    free(members);
    if (unable < 0) /* the exchange has cleared the text */
        (void)contribute(ctx, region, &mine);
    return unable < 0 ? unable : rc;
}
