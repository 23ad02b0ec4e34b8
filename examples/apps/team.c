/* A rank's attachment, its puts and its waits; see team.h. */
#include "examples/apps/team.h"

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

/* Handles local events. With PWC_NO_LCE only a put that failed has one. */
static void check_end(pwc_ctx *ctx, const struct pwc_event *event, void *argument)
{
    (void)ctx;
    (void)argument;
    CHECK(event->status);
}

void team_open(struct team *team, struct app *app, int argc, char **argv)
{
    CHECK(pwc_init(NULL, &team->client)); /* socket, job, rank and size from the environment */
    CHECK(pwc_ctx_create(team->client, NULL, &team->ctx));
    CHECK(pwc_set_handler(team->ctx, PWC_LOCAL, check_end, NULL));
    app->rank = pwc_rank(team->client);
    app->ranks = pwc_size(team->client);
    if (!app_parse(app, argc, argv))
        exit(2);
}

void team_share(struct team *team, size_t bytes)
{
    CHECK(pwc_alloc(team->client, bytes, PWC_REMOTE_WRITE, &team->region));
    CHECK(pwc_window_create(team->ctx, NULL, team->region, &team->window));
    team->memory = pwc_region_addr(team->region);
}

void team_put(struct team *team, uint32_t to, uint64_t off, const void *src, size_t len,
              uint32_t tag, pwc_request *sent)
{
    pwc_cid lid = sent == NULL ? PWC_CID_NONE : pwc_cid_request(sent);
    CHECK(pwc_put_notify(team->window, to, off, src, len, tag, lid, PWC_NO_LCE | PWC_WAIT));
}

pwc_request *team_request(struct team *team, uint32_t from, uint32_t tag, uint32_t count)
{
    pwc_request *request;

    CHECK(pwc_notify_init(team->window, from, tag, count, PWC_CID_NONE, &request));
    return request;
}

uint32_t team_wait(pwc_request *request)
{
    struct pwc_status status;

    CHECK(pwc_start(request));
    CHECK(pwc_request_wait(request, &status, -1));
    CHECK(status.status);
    return (uint32_t)status.id;
}

int team_end(struct team *team, const struct app *app, bool right, const char *unit, double work)
{
    uint8_t mine = right, *all = calloc(app->ranks, sizeof(*all));
    bool everywhere = all != NULL;

    CHECK(pwc_exchange(team->ctx, &mine, sizeof(mine), all));
    for (uint32_t rank = 0; everywhere && rank < app->ranks; rank++)
        everywhere = all[rank];
    if (everywhere && app->rank == 0)
        app_report(app, unit, work);
    CHECK(pwc_window_free(team->window)); /* also flushes */
    CHECK(pwc_finalize(team->client));
    free(all);
    return everywhere ? 0 : 1;
}
