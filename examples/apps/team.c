/* A rank's attachment, and puts with a tag; see team.h. */
#include "examples/apps/team.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int team_check(const char *call, int rc)
{
    if (rc < 0) {
        fprintf(stderr, "%s: %s\n", call, pwc_strerror(rc));
        exit(1);
    }
    return rc;
}

void team_open(struct team *team, struct app *app, int argc, char **argv)
{
    CHECK(pwc_init(NULL, &team->client)); /* socket, job, rank and size from the environment */
    CHECK(pwc_ctx_create(team->client, NULL, &team->ctx));
    app->rank = pwc_rank(team->client);
    app->ranks = pwc_size(team->client);
    if (!app_parse(app, argc, argv))
        exit(2);
}

void team_share(struct team *team, size_t bytes)
{
    uint32_t size = pwc_size(team->client);
    struct pwc_key mine, *keys = calloc(size, sizeof(*keys));

    team->peers = calloc(size, sizeof(pwc_remote *));
    if (keys == NULL || team->peers == NULL)
        CHECK(-ENOMEM);
    CHECK(pwc_alloc(team->client, bytes, PWC_REMOTE_WRITE, &team->region));
    CHECK(pwc_region_key(team->region, &mine));
    CHECK(pwc_exchange(team->ctx, &mine, sizeof(mine), keys));
    for (uint32_t rank = 0; rank < size; rank++)
        CHECK(pwc_bind(team->ctx, rank, &keys[rank], &team->peers[rank]));
    team->memory = pwc_region_addr(team->region);
    free(keys);
}

void team_put(struct team *team, uint32_t to, uint64_t off, const void *src, size_t len,
              uint64_t tag)
{
    struct pwc_event failed;
    int rc;

    do {
        rc = pwc_put(team->peers[to], off, src, len, PWC_CID_NONE, pwc_cid_u64(tag), PWC_NO_LCE);
        /* Without local events asked for, only a put that failed has one. */
        if (rc == -EAGAIN && CHECK(pwc_probe(team->ctx, PWC_ANY, PWC_LOCAL, &failed)) == 1)
            CHECK(failed.status);
    } while (rc == -EAGAIN);
    CHECK(rc);
}

uint64_t team_wait(struct team *team, pwc_peer from)
{
    struct pwc_event event;

    CHECK(pwc_wait(team->ctx, from, PWC_REMOTE, &event, -1));
    return event.id;
}

void team_flush(struct team *team)
{
    CHECK(pwc_flush(team->ctx, PWC_ANY, -1));
}

int team_end(struct team *team, const struct app *app, bool right, const char *unit, double work)
{
    uint8_t mine = right, *all = calloc(app->ranks, sizeof(*all));
    bool everywhere = all != NULL;

    team_flush(team);
    CHECK(pwc_exchange(team->ctx, &mine, sizeof(mine), all));
    for (uint32_t rank = 0; everywhere && rank < app->ranks; rank++)
        everywhere = all[rank];
    if (everywhere && app->rank == 0)
        app_report(app, unit, work);
    CHECK(pwc_finalize(team->client));
    free(team->peers);
    free(all);
    return everywhere ? 0 : 1;
}
