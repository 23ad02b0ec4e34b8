/*
 * Owns nothing: waits for collectives, for calls that block. Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/calls/wait.h"
#include "clientlib/teams/team.h"

/* Waits until this member's first `all` calls over the team have ended. */
static int finish(struct pwc_team *t, uint64_t all)
{
    struct pwc_ctx *ctx = t->ctx;
    int64_t deadline = deadline_after_ms(ctx->client->link.timeout_ms);
    int64_t now = clock_now();
    int rc = 0;

    patience_worked(&ctx->patience, (uint64_t)now);
    for (;;) {
        rc = wait_collect(ctx, 0);
        if (t->over >= all || rc < 0)
            break;
        rc = channel_state(&ctx->channel);
        if (rc == 0 && now >= deadline)
            rc = -ETIMEDOUT;
        if (rc < 0)
            break;
        wait_pause(ctx, PWC_MESSAGE, NULL, now, deadline); /* events stay for probes */
        now = clock_now();
    }
    return t->over >= all ? t->status : rc;
}

int team_finish(struct pwc_team *t)
{
    wait_begin(t->ctx, SESSION_WAITS_EXCHANGE);
    int rc = finish(t, t->called);

    wait_end(t->ctx);
    return rc;
}

/* Makes a call as soon as there is room for it. Returns the result of team_call_unshown, or an
 * error that makes waiting useless. */
static int begin(struct pwc_team *t, const struct team_spec *spec)
{
    struct pwc_ctx *ctx = t->ctx;
    int64_t now = clock_now(), deadline = deadline_after_ms(ctx->client->link.timeout_ms);
    int rc;

    patience_worked(&ctx->patience, (uint64_t)now);
    while ((rc = team_call_unshown(t, spec)) == -EAGAIN || rc == -EBUSY) {
        rc = wait_collect(ctx, 0);
        if (rc == 0)
            rc = channel_state(&ctx->channel);
        if (rc == 0 && now >= deadline)
            rc = -ETIMEDOUT;
        if (rc < 0)
            return rc;
        wait_pause(ctx, PWC_MESSAGE, NULL, now, deadline);
        now = clock_now();
    }
    return rc;
}

int team_call_or_resume(struct pwc_team *t, const struct team_spec *spec, uint64_t *calls)
{
    wait_begin(t->ctx, SESSION_WAITS_EXCHANGE);
    int rc = *calls > 0 ? 0 : begin(t, spec);

    if (rc == 0 && *calls == 0)
        *calls = t->called;
    if (rc == 0)
        rc = finish(t, *calls);
    wait_end(t->ctx);
    return rc;
}

int team_call_to_end(struct pwc_team *t, const struct team_spec *spec)
{
    uint64_t calls = 0;

    return team_call_or_resume(t, spec, &calls);
}
