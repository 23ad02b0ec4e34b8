/*
 * Owns nothing: cuts calls into steps, and begins the steps. A step begins only when it has all
 * that it needs, before the member counts itself as arrived; else the area stays unchanged.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/attach/wake.h"
#include "clientlib/teams/team.h"
#include "proto/word_abi.h"
#include "shm_ring/fault.h"

/* ---- cutting --------------------------------------------------------------------------------- */

static uint32_t find_slice(const struct pwc_team *t, uint8_t shape)
{
    uint32_t low = 0, high = TEAM_INPUT_MAX + 1;

    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;

        if (team_way(shape, middle, t->roster.size, t->roster.fullest) == TEAM_LARGE)
            high = middle;
        else
            low = middle;
    }
    return low;
}

void team_find_slices(struct pwc_team *t)
{
    for (uint8_t shape = TEAM_BARRIER; shape <= TEAM_ALLTOALL; shape++)
        t->slice[shape] = find_slice(t, shape);
}

uint64_t team_slice_max(const struct pwc_team *t, const struct team_spec *spec)
{
    uint64_t most = t->slice[spec_shape(t, spec->kind)];

    if (spec->kind >= TEAM_REDUCE && spec->kind <= TEAM_REDUCE_SCATTER)
        return most >> fold_shift(spec->code) << fold_shift(spec->code);
    if (spec->kind == TEAM_USER && spec->length > most)
        return most / spec->element * spec->element;
    return most;
}

/* The next step of a call, except for its `call`. */
static struct team_step cut(const struct pwc_team *t, const struct team_call *call)
{
    struct team_step step = {.shape = spec_shape(t, call->spec.kind), .offset = call->next};
    uint64_t left = call->whole - call->next, most = team_slice_max(t, &call->spec);

    step.length = left < most ? left : most;
    step.last = step.length == left;
    if (call->asks && !call->asked)
        step =
            (struct team_step){.shape = TEAM_ALLREDUCE, .length = sizeof(uint64_t), .asks = true};
    step.way = (uint8_t)team_way(step.shape, step.length, t->roster.size, t->roster.fullest);
    return step;
}

/* ---- room ------------------------------------------------------------------------------------ */

/* Whether the next step has a row, a data row if it needs one, and room for its records: 0,
 * -EAGAIN, -EBUSY, -EPROTO, -ESHUTDOWN. */
static int step_room(const struct pwc_team *t, const struct team_step *step)
{
    const struct team_area *a = &t->area;
    int rc = t->begun - t->ended > a->row_mask ? -EAGAIN : team_row_room(a, t->begun);

    if (rc == 0 && step->way == TEAM_BY_DATA)
        rc = team_data_room(a, t->turns, t->used_by[t->turns % TEAM_DATA_ROWS]);
    return rc == 0 ? channel_note_room(&t->ctx->channel) : rc;
}

/* Whether the step that finds the call's length is under way. */
static bool is_asking(const struct team_call *call)
{
    return call->asked && call->whole == UINT64_MAX;
}

bool team_can_begin(const struct pwc_team *t)
{
    const struct team_call *call = team_call_at(t, t->whole);
    struct team_step step;

    if (t->status < 0 || t->whole == t->called || is_asking(call))
        return false;
    step = cut(t, call);
    return step_room(t, &step) == 0;
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* Submits a record to the daemon. The caller has checked that there is room for it. */
static void submit(struct pwc_team *t, const struct submit_record *record)
{
    if (channel_note(&t->ctx->channel, record) == CHANNEL_WAKES)
        wake_daemon(t->ctx);
}

/* The root's participant. The step that finds the length has no root, since all members get its
 * result. */
static uint32_t root_of(const struct pwc_team *t, const struct team_step *step)
{
    return step->asks ? 0 : roster_run(&t->roster, step->call->spec.root)->participant;
}

static void submit_instance(struct pwc_team *t, uint64_t sequence)
{
    const struct team_step *step = team_step_at(t, sequence);
    const struct submit_record record = {
        .kind = SUBMIT_COLLECTIVE,
        .code = step->shape,
        .remote = t->handle,
        .instance = sequence,
        .length = step->length,
        .signature = step->call->signature,
        .data_row = step->way == TEAM_BY_DATA ? step->turn % TEAM_DATA_ROWS : TEAM_LINES,
        .root = root_of(t, step),
    };

    submit(t, &record);
    FAULT(STEP_SUBMITTED);
}

/* Reports that a member here has made another call. */
static void report_mismatch(struct pwc_team *t, uint64_t sequence, uint32_t member, uint64_t other)
{
    team_report(t, &(struct team_reason){
                       .status = -EBADMSG,
                       .rank = {t->rank, roster_member(&t->roster, member)},
                       .sequence = sequence,
                       .signature = {team_step_at(t, sequence)->call->signature, other},
                   });
}

/* Ends an instance whose result is ready. */
static void end_here(struct pwc_team *t, uint64_t sequence)
{
    team_end(&t->area, sequence, 0, 0);
    FAULT(STEP_ENDED);
    if (team_others_sleep(&t->area, t->me))
        team_wake(t);
}

/* Called when all members here have arrived. */
static void finish(struct pwc_team *t, uint64_t sequence)
{
    const struct team_step *step = team_step_at(t, sequence);
    uint32_t member;
    uint64_t other;
    int rc = team_compare(&t->area, sequence, step->call->signature, &member, &other);

    if (rc == -EBADMSG) {
        report_mismatch(t, sequence, member, other);
        return;
    }
    if (rc < 0) {
        team_distrust(t);
        return;
    }
    if (team_root_gives(step->shape)) {
        if (root_of(t, step) != t->roster.participant)
            submit_instance(t, sequence);
        return;
    }
    work_combine(t, sequence);
    FAULT(STEP_COMBINED);
    if (team_is_alone(t))
        end_here(t, sequence);
    else
        submit_instance(t, sequence);
}

/* Takes part in the next instance. From here on the step cannot fail, but the team can break. */
static void begin(struct pwc_team *t, struct team_call *call, struct team_step *cut_off)
{
    uint64_t sequence = t->begun++;
    struct team_step *step = team_step_at(t, sequence);
    int rc;

    *step = *cut_off;
    step->call = call;
    if (step->way == TEAM_BY_DATA) {
        t->used_by[t->turns % TEAM_DATA_ROWS] = sequence;
        step->turn = t->turns++;
    }
    call->asked |= step->asks;
    call->next += step->asks ? 0 : step->length;
    t->whole += step->last;
    work_give(t, sequence);
    if (team_root_gives(step->shape) && call->spec.root == t->rank) {
        work_give_root(t, sequence);
        if (team_is_alone(t))
            end_here(t, sequence);
        else
            submit_instance(t, sequence);
    }
    FAULT(STEP_WRITTEN);
    rc = team_arrive(&t->area, sequence);
    FAULT(STEP_COUNTED);
    if (rc == 1)
        finish(t, sequence);
    else if (rc < 0)
        team_distrust(t);
}

void team_begin_steps(struct pwc_team *t)
{
    while (t->status == 0 && t->whole < t->called) {
        struct team_call *call = team_call_at(t, t->whole);
        struct team_step step;
        int rc;

        if (is_asking(call))
            return;
        step = cut(t, call);
        rc = step_room(t, &step);
        if (rc == -EPROTO)
            team_distrust(t);
        if (rc < 0)
            return;
        begin(t, call, &step);
    }
}
