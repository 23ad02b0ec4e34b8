/*
 * Ends collectives, in the order of calls, and puts members to sleep and awake. Only the oldest
 * instance of each team is looked at.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/attach/wake.h"
#include "clientlib/teams/team.h"
#include "clientlib/teams/teams.h"

void team_activate(struct pwc_team *t)
{
    if (t->active)
        return;
    t->active = true;
    t->next_active = t->ctx->teams.active;
    t->ctx->teams.active = t;
}

void team_fail(struct pwc_team *t, int status)
{
    if (t->status == 0)
        t->status = status;
}

void team_wake(struct pwc_team *t)
{
    const struct submit_record record = {.kind = SUBMIT_TEAM_WAKE, .remote = t->handle};
    int rc = channel_note(&t->ctx->channel, &record);

    if (rc == 1)
        wake_daemon(t->ctx);
    t->wake_due = rc == -EAGAIN || rc == -EBUSY;
    if (t->wake_due)
        team_activate(t);
}

/* Shows the end of a call that is no longer among those under way. */
static void show_end(struct pwc_team *t, uint64_t sequence, const struct team_call *call,
                     int status, uint64_t bytes)
{
    struct channel *ch = &t->ctx->channel;
    pwc_peer peer = pwc_peer_of(t->ctx->client->rank, t->ctx->number);

    if (call->request != REQUEST_NONE) {
        struct pwc_request *r = request_at(&ch->requests, call->request);

        if (!call->persistent) {
            (void)request_end_one(&ch->requests, request_cid(r).value, status, peer, bytes);
            return;
        }
        r->status.count = 1;
        r->status.peer = peer;
        r->status.bytes = bytes;
        channel_end_request(ch, r, status);
        return;
    }
    channel_own_release(ch, call->lid_size);
    if (status == -ESHUTDOWN) /* as of operations: nobody looks for events any more */
        return;
    if (!call->silent || status < 0) {
        pwc_cid lid = call->lid_size > 0 ? pwc_cid_bytes(team_ids_at(t, sequence), call->lid_size)
                                         : pwc_cid_u64(call->lid);

        channel_own(ch, PWC_OP_COLLECTIVE, peer, bytes, &lid, status);
    }
}

/* Takes the result of an instance that has ended here. */
static void end_one(struct pwc_team *t)
{
    uint64_t sequence = t->ended;
    struct team_call call = *team_call_at(t, sequence);
    uint64_t bytes = work_take(t, sequence, &call);
    bool last = call.way == TEAM_BY_DATA && team_take_data(&t->area, call.turn);

    last |= team_take(&t->area, sequence);
    t->ended++;
    show_end(t, sequence, &call, 0, bytes);
    if (last && team_others_sleep(&t->area, t->me))
        team_wake(t);
}

/* Whether the oldest call has ended for this member: 1, 0, -EPROTO. */
static int oldest_has_ended(const struct pwc_team *t)
{
    return work_only_gives(t, team_call_at(t, t->ended)) ? 1 : team_ended(&t->area, t->ended);
}

/* All that is under way ends with the team's error. */
static void end_all(struct pwc_team *t)
{
    while (t->ended < t->begun) {
        uint64_t sequence = t->ended++;
        const struct team_call call = *team_call_at(t, sequence);

        show_end(t, sequence, &call, t->status, 0);
    }
}

static void find_broken(struct pwc_team *t)
{
    struct team_reason reason;

    if (t->status < 0 || !team_is_broken(&t->area))
        return;
    team_reason(&t->area, &reason);
    team_explain(t, &reason);
    team_fail(t, reason.status);
}

void team_progress(struct pwc_team *t)
{
    int rc = 0;

    if (t->ending)
        return;
    t->ending = true;
    /* What has ended has, also where the team broke behind it. */
    while (t->status == 0 && t->ended < t->begun && (rc = oldest_has_ended(t)) == 1)
        end_one(t);
    if (rc < 0)
        team_fail(t, rc);
    find_broken(t);
    if (t->status < 0)
        end_all(t);
    t->ending = false;
    if (t->wake_due)
        team_wake(t);
}

int team_has_room(const struct pwc_team *t, uint8_t way)
{
    const struct team_area *a = &t->area;
    int rc = t->begun - t->ended > a->row_mask ? -EAGAIN : team_row_room(a, t->begun);

    if (rc == 0 && way == TEAM_BY_DATA)
        rc = team_data_room(a, t->turns, t->used_by[t->turns % TEAM_DATA_ROWS]);
    return rc;
}

static bool is_idle(const struct pwc_team *t)
{
    return t->ended == t->begun && !t->lacks_room && !t->wake_due;
}

void teams_progress_active(struct pwc_ctx *ctx)
{
    struct pwc_team **at = &ctx->teams.active;

    while (*at) {
        struct pwc_team *t = *at;

        team_progress(t);
        if (is_idle(t) && *at == t) {
            *at = t->next_active;
            t->active = false;
        } else {
            at = &(*at)->next_active;
        }
    }
}

/* ---- sleeping ------------------------------------------------------------------------------- */

/* Whether there is something that the member does not know of yet. Room that others have made shows
 * once: a caller that waits for something else may sleep then. */
static bool has_news(struct pwc_team *t)
{
    if (t->ended < t->begun && oldest_has_ended(t) != 0)
        return true;
    if (t->status == 0 && team_is_broken(&t->area))
        return true;
    if (t->lacks_room && team_has_room(t, t->lacking_way) == 0) {
        t->lacks_room = false;
        return true;
    }
    return false;
}

int teams_arm(struct pwc_ctx *ctx)
{
    for (struct pwc_team *t = ctx->teams.active; t; t = t->next_active)
        team_sleep(&t->area, t->me);
    for (struct pwc_team *t = ctx->teams.active; t; t = t->next_active)
        if (has_news(t)) {
            teams_disarm(ctx);
            return 1;
        }
    return 0;
}

void teams_disarm(struct pwc_ctx *ctx)
{
    for (struct pwc_team *t = ctx->teams.active; t; t = t->next_active)
        team_awake(&t->area, t->me);
}

void teams_over(struct pwc_ctx *ctx)
{
    for (struct pwc_team *t = ctx->teams.active; t; t = t->next_active) {
        team_fail(t, -ESHUTDOWN);
        team_progress(t);
    }
}
