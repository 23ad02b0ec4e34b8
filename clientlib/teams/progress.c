/*
 * Owns the list of active teams: ends steps and calls, in the order of calls, and notes that a
 * member sleeps or is awake. Only the oldest step of each team is looked at.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/attach/wake.h"
#include "clientlib/teams/team.h"
#include "clientlib/teams/teams.h"
#include "shm_ring/fault.h"

enum { ROUNDS_MAX = 8 }; /* windows of steps that one call ends, at most */

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

    if (rc == CHANNEL_WAKES)
        wake_daemon(t->ctx);
    t->wake_due = rc == -EAGAIN || rc == -EBUSY;
    if (t->wake_due)
        team_activate(t);
}

static void submit_report(struct pwc_team *t)
{
    int rc = channel_note(&t->ctx->channel, &t->report);

    if (rc == CHANNEL_WAKES)
        wake_daemon(t->ctx);
    if (rc == -EAGAIN || rc == -EBUSY)
        team_activate(t);
    else
        t->report.kind = SUBMIT_PAD;
}

void team_report(struct pwc_team *t, const struct team_reason *reason)
{
    if (t->status < 0)
        return;
    team_explain(t, reason);
    team_fail(t, reason->status);
    t->report = (struct submit_record){
        .kind = SUBMIT_COLLECTIVE,
        .code = TEAM_MISMATCH,
        .remote = t->handle,
        .instance = reason->sequence,
        .lid = reason->signature[0],
        .rid = reason->signature[1],
        .segment = reason->rank[0],
        .local_offset = reason->rank[1],
    };
    submit_report(t);
}

void team_distrust(struct pwc_team *t)
{
    team_report(t, &(struct team_reason){
                       .status = -EPROTO,
                       .rank = {t->rank, UINT32_MAX},
                       .sequence = t->ended,
                       .signature = {t->over < t->called ? team_call_at(t, t->over)->signature : 0},
                   });
}

bool team_owes(const struct pwc_team *t)
{
    return t->wake_due || t->report.kind != SUBMIT_PAD;
}

void team_pay(struct pwc_team *t)
{
    if (t->report.kind != SUBMIT_PAD)
        submit_report(t);
    if (t->wake_due)
        team_wake(t);
}

/* Shows the end of the oldest call. */
static void end_call(struct pwc_team *t, int status)
{
    const struct team_call *call = team_call_at(t, t->over);
    struct channel *ch = &t->ctx->channel;
    pwc_peer peer = pwc_peer_of(t->ctx->client->rank, t->ctx->number);
    uint64_t bytes = status == 0 ? spec_received(t, &call->spec) : 0;
    pwc_cid lid;

    t->over++;
    if (call->unshown)
        return;
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
    /* When the session is over, no events are added, as for operations. */
    if (status == -ESHUTDOWN || (call->silent && status == 0))
        return;
    lid = call->lid_size > 0 ? pwc_cid_bytes(team_ids_of(t, call), call->lid_size)
                             : pwc_cid_u64(call->lid);
    channel_own(ch, PWC_OP_COLLECTIVE, peer, bytes, &lid, status);
}

/* Whether the length that a step has found can be that of the longest block. */
static bool length_makes_sense(const struct pwc_team *t, const struct team_call *call)
{
    return call->whole >= spec_longest(t, &call->spec) && call->whole <= SPEC_COUNT_MAX;
}

/* Takes the result of the oldest step, which has ended here. */
static void end_step(struct pwc_team *t)
{
    uint64_t sequence = t->ended;
    const struct team_step *step = team_step_at(t, sequence);
    const struct team_call *call = step->call;
    bool is_last = step->last;
    bool freed = false;

    work_take(t, sequence);
    if (step->asks && !length_makes_sense(t, call))
        team_distrust(t);
    FAULT(STEP_READ);
    if (step->way == TEAM_BY_DATA)
        freed = team_take_data(&t->area, step->turn);
    freed |= team_take(&t->area, sequence);
    FAULT(STEP_TAKEN);
    t->ended++;
    if (is_last)
        end_call(t, 0);
    if (freed && team_others_sleep(&t->area, t->me))
        team_wake(t);
}

/* Whether the oldest step has ended for this member: 1, 0, -EPROTO. */
static int oldest_has_ended(const struct pwc_team *t)
{
    return work_only_gives(t, team_step_at(t, t->ended)) ? 1 : team_ended(&t->area, t->ended);
}

/* Ends all calls under way with the team's error. */
static void end_all(struct pwc_team *t)
{
    while (t->over < t->called)
        end_call(t, t->status);
    t->whole = t->called;
    t->ended = t->begun;
}

static void find_broken(struct pwc_team *t)
{
    struct team_reason reason;

    if (t->status < 0 || !team_is_broken(&t->area))
        return;
    team_reason(&t->area, &reason);
    if (reason.status == -EPROTO) {
        team_distrust(t);
        return;
    }
    team_explain(t, &reason);
    team_fail(t, reason.status);
}

void team_progress(struct pwc_team *t)
{
    unsigned rounds = ROUNDS_MAX;
    int rc = 0;

    if (t->ending)
        return;
    t->ending = true;
    /* An instance that has ended counts as ended, even if the team broke afterwards. */
    do {
        while (t->status == 0 && t->ended < t->begun && (rc = oldest_has_ended(t)) == 1)
            end_step(t);
        if (rc < 0)
            team_distrust(t);
        team_begin_steps(t);
    } while (t->status == 0 && t->ended < t->begun && oldest_has_ended(t) == 1 && --rounds > 0);
    find_broken(t);
    if (t->status < 0)
        end_all(t);
    t->ending = false;
    team_pay(t);
}

static bool is_idle(const struct pwc_team *t)
{
    return t->over == t->called && !team_owes(t);
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

/* Whether only the daemon is awaited: all members of this engine have arrived, or a call waits for
 * room that no other member here can make. */
static bool awaits_daemon(const struct pwc_team *t)
{
    return !team_is_alone(t) &&
           (t->ended < t->begun ? team_have_come(&t->area, t->ended) : t->area.members == 1);
}

bool teams_await_members(const struct pwc_ctx *ctx)
{
    for (const struct pwc_team *t = ctx->teams.active; t; t = t->next_active)
        if (!awaits_daemon(t))
            return true;
    return false;
}

/* ---- sleeping -------------------------------------------------------------------------------- */

/* Whether there is something that the member has not seen yet. */
static bool has_news(const struct pwc_team *t)
{
    return (t->ended < t->begun && oldest_has_ended(t) != 0) || team_can_begin(t) ||
           (t->status == 0 && team_is_broken(&t->area)) ||
           (team_owes(t) && channel_note_room(&t->ctx->channel) == 0);
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
