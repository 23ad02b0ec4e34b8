/*
 * Leaves teams: the members of a team that is not broken wait for one another. Owns nothing.
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/calls/wait.h"
#include "clientlib/memory/window.h"
#include "clientlib/teams/team.h"
#include "shm_ring/fault.h"

enum { LOOK_NS = 1000000 }; /* the daemon may have taken the records before the arm */

/* Waits by a barrier until all members have called pwc_team_free: 0, or an error, after which the
 * team stays. A member that calls again after a timeout waits for the same barrier. */
static int meet(struct pwc_team *t)
{
    const struct team_spec barrier = {.kind = TEAM_BARRIER, .count = TEAM_FREEING};
    int rc = t->leaving ? 0 : team_call_unshown(t, &barrier);

    if (rc < 0)
        return t->status < 0 ? 0 : rc;
    t->leaving = true;
    rc = team_finish(t);
    if (rc == -ETIMEDOUT)
        return team_refuse(t, rc, "not all members have called pwc_team_free in time");
    return t->status < 0 ? 0 : rc;
}

/* Waits until the daemon has taken this member's records, also a report that still waits for room,
 * because it accepts them only from a member. */
static void settle(struct pwc_team *t)
{
    struct pwc_ctx *ctx = t->ctx;
    int64_t now = clock_now();
    int64_t deadline = deadline_after_ms(ctx->client->link.timeout_ms);

    while (channel_state(&ctx->channel) == 0 &&
           (team_owes(t) || !channel_is_taken(&ctx->channel)) && now < deadline) {
        wait_pause(ctx, wait_taken_too(PWC_LOCAL), NULL, now, now + LOOK_NS);
        team_pay(t);
        now = clock_now();
    }
}

static uint32_t windows_over(const struct pwc_team *t)
{
    uint32_t count = 0;

    for (const struct pwc_window *w = t->ctx->windows; w; w = w->next)
        count += w->team == t;
    return count;
}

int pwc_team_free(pwc_team *t)
{
    struct pwc_ctx *ctx = t->ctx;
    uint32_t windows = windows_over(t);
    int rc = client_may_ask(ctx->client);

    if (rc < 0)
        return rc;
    team_progress(t);
    if (t->persistent > 0)
        return team_refuse(t, -EBUSY,
                           "%u persistent requests of the team are left: free them first",
                           t->persistent);
    if (windows > 0)
        return team_refuse(t, -EBUSY, "%u windows over the team are left: free them first",
                           windows);
    if (ctx->channel.submit.open)
        return team_refuse(t, -EBUSY, "an active message is prepared: send or cancel it first");
    if (!t->leaving && t->called > t->over)
        return team_refuse(t, -EBUSY, "%llu collectives are under way: wait for them first",
                           (unsigned long long)(t->called - t->over));
    rc = t->status == 0 ? meet(t) : 0;
    if (rc < 0)
        return rc;
    settle(t);
    /* Without its report the daemon still has to break the team for the others. */
    team_leave(ctx, t->number, t->report.kind != SUBMIT_PAD);
    FAULT(TEAM_LEFT);
    team_drop(t);
    return 0;
}
