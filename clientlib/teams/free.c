/*
 * Leaves teams: the members of one that is not broken wait for one another. Thread: the one that
 * owns the context.
 */
#include <errno.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/calls/wait.h"
#include "clientlib/teams/team.h"

enum { LOOK_NS = 1000000 }; /* no bell rings when the daemon has taken a note */

/* Begins the barrier by which all members show that they leave; only once, also where a member
 * comes here again after its time was up. */
static int begin_farewell(struct pwc_team *t)
{
    int rc = t->farewell ? 0 : pwc_request_create(t->ctx, &t->farewell);

    if (rc < 0)
        return rc;
    rc = pwc_team_barrier(t, pwc_cid_request(t->farewell), 0);
    if (rc < 0) {
        (void)pwc_request_free(t->farewell);
        t->farewell = NULL;
    }
    return rc;
}

/* Waits until all members have come here: 0, or an error after which the team stays. */
static int meet(struct pwc_team *t)
{
    int rc = t->farewell ? 0 : begin_farewell(t);

    if (rc == 0)
        rc = pwc_request_wait(t->farewell, NULL, t->ctx->client->link.timeout_ms);
    if (rc == 0)
        return team_refuse(t, -ETIMEDOUT, "not all members have called pwc_team_free in time");
    return rc == 1 || t->status < 0 ? 0 : rc;
}

/* Waits until the daemon has taken what this member has submitted, which is a member's to submit.
 */
static void settle(struct pwc_team *t)
{
    struct pwc_ctx *ctx = t->ctx;
    int64_t now = clock_now();
    int64_t deadline = deadline_after_ms(ctx->client->link.timeout_ms);

    while (channel_state(&ctx->channel) == 0 && !channel_is_taken(&ctx->channel) &&
           now < deadline) {
        wait_pause(ctx, PWC_LOCAL, now, now + LOOK_NS);
        if (t->wake_due)
            team_wake(t);
        now = clock_now();
    }
}

int pwc_team_free(pwc_team *t)
{
    struct pwc_ctx *ctx = t->ctx;
    int rc = client_may_block(ctx->client);

    if (rc < 0)
        return rc;
    team_progress(t);
    if (t->persistent > 0)
        return team_refuse(t, -EBUSY,
                           "%u persistent requests of the team are left: free them first",
                           t->persistent);
    if (!t->farewell && t->called > t->over)
        return team_refuse(t, -EBUSY, "%llu collectives are under way: wait for them first",
                           (unsigned long long)(t->called - t->over));
    rc = t->status == 0 ? meet(t) : 0;
    if (rc < 0)
        return rc;
    if (t->farewell)
        (void)pwc_request_free(t->farewell);
    settle(t);
    team_leave(ctx, t->number);
    team_drop(t);
    return 0;
}
