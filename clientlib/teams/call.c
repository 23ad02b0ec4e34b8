/*
 * Owns nothing: begins collectives. A call either begins whole, or leaves the area and the team as
 * they were: all that it needs is there before the member counts itself as arrived.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "clientlib/attach/wake.h"
#include "clientlib/calls/operation.h"
#include "clientlib/teams/team.h"

/* The columns of team_abi.h that a call goes by. */
static uint8_t shape_of(const struct pwc_team *t, uint8_t kind)
{
    if (kind == TEAM_USER)
        return TEAM_ALLGATHER;
    if ((kind == TEAM_SCAN || kind == TEAM_EXSCAN) && !roster_in_blocks(&t->roster))
        return TEAM_ALLGATHER;
    return kind;
}

static int refuse_length(struct pwc_team *t, const struct team_spec *spec)
{
    if (spec->kind == TEAM_USER)
        return team_refuse(t, -EMSGSIZE,
                           "an operation of the program's own takes up to %u bytes of all members "
                           "together; %u members gave %llu each",
                           TEAM_DATA_BYTES, t->roster.size, (unsigned long long)spec->length);
    return team_refuse(t, -ENOTSUP,
                       "this call needs more than small collectives have: up to %zu bytes an "
                       "operand or block, %u over the members of a node, and %u of a result; it "
                       "has %llu; make several calls",
                       pwc_team_small_max(t), TEAM_DATA_BYTES, TEAM_DATA_BYTES,
                       (unsigned long long)spec->length);
}

/* Finds the row, and the data row, of the next instance free: 0, -EAGAIN, -EPROTO. */
static int find_room(struct pwc_team *t, const struct team_call *call)
{
    int rc = team_has_room(t, call->way);

    t->lacks_room = rc == -EAGAIN;
    t->lacking_way = call->way;
    if (rc == -EAGAIN)
        team_activate(t);
    if (rc == -EPROTO)
        team_fail(t, rc);
    return rc;
}

static int make_ids(struct pwc_team *t)
{
    if (!t->ids)
        t->ids = malloc((uint64_t)t->window * PWC_CID_MAX);
    return t->ids ? 0 : -ENOMEM;
}

/* Notes what the end of a call is shown as: 0, or an error after which nothing is held. */
static int hold_end(struct pwc_team *t, struct team_call *call, const pwc_cid *lid, unsigned flags)
{
    struct channel *ch = &t->ctx->channel;
    int rc;

    call->silent = flags & PWC_NO_LCE;
    if (lid->size == PWC_CID_REQUEST) {
        struct pwc_request *r = operation_request(t->ctx, lid);

        if (!r)
            return -EINVAL;
        call->request = request_number(r);
        request_begin(r);
        return 0;
    }
    rc = lid->size > 0 ? make_ids(t) : 0;
    if (rc == 0)
        rc = channel_own_hold(ch, (uint32_t)lid->size);
    if (rc < 0)
        return rc;
    call->lid_size = (uint16_t)lid->size;
    call->lid = lid->size == 0 ? lid->value : 0;
    if (lid->size > 0)
        memcpy(team_ids_at(t, t->begun), lid->data, lid->size);
    return 0;
}

/* Publishes a record for the daemon. Room for it has been found before. */
static void submit(struct pwc_team *t, const struct submit_record *record)
{
    if (channel_note(&t->ctx->channel, record) == 1)
        wake_daemon(t->ctx);
}

static void submit_instance(struct pwc_team *t, uint64_t sequence, const struct team_call *call,
                            uint64_t signature)
{
    const struct submit_record record = {
        .kind = SUBMIT_COLLECTIVE,
        .code = call->shape,
        .remote = t->handle,
        .instance = sequence,
        .length = call->spec.length,
        .signature = signature,
        .data_row = call->way == TEAM_BY_DATA ? call->turn % TEAM_DATA_ROWS : TEAM_LINES,
        .root = roster_run(&t->roster, call->spec.root)->participant,
    };

    submit(t, &record);
}

/* A member here has called something else: the daemon breaks the team for all. */
static void submit_mismatch(struct pwc_team *t, uint64_t sequence, uint32_t member,
                            uint64_t signature, uint64_t other)
{
    struct team_reason reason = {
        .status = -EBADMSG,
        .rank = {t->rank, roster_member(&t->roster, member)},
        .sequence = sequence,
        .signature = {signature, other},
    };
    const struct submit_record record = {
        .kind = SUBMIT_COLLECTIVE,
        .code = TEAM_MISMATCH,
        .remote = t->handle,
        .instance = sequence,
        .lid = signature,
        .rid = other,
        .segment = reason.rank[0],
        .local_offset = reason.rank[1],
    };

    team_explain(t, &reason);
    team_fail(t, -EBADMSG);
    submit(t, &record);
}

/* Ends an instance whose result is there. */
static void end_here(struct pwc_team *t, uint64_t sequence)
{
    team_end(&t->area, sequence, 0, 0);
    if (team_others_sleep(&t->area, t->me))
        team_wake(t);
}

/* All members here have come. */
static void finish(struct pwc_team *t, uint64_t sequence, const struct team_call *call,
                   uint64_t signature)
{
    uint32_t member;
    uint64_t other;
    int rc = team_compare(&t->area, sequence, signature, &member, &other);

    if (rc == -EBADMSG) {
        submit_mismatch(t, sequence, member, signature, other);
        return;
    }
    if (rc < 0) {
        team_fail(t, rc);
        return;
    }
    if (team_root_gives(call->shape)) {
        if (roster_run(&t->roster, call->spec.root)->participant != t->roster.participant)
            submit_instance(t, sequence, call, signature);
        return;
    }
    work_combine(t, sequence, call);
    if (team_is_alone(t))
        end_here(t, sequence);
    else
        submit_instance(t, sequence, call, signature);
}

/* Takes part in the next instance. From here on the call cannot fail, but the team can. */
static void take_part(struct pwc_team *t, struct team_call *call)
{
    uint64_t signature = spec_signature(&call->spec);
    uint64_t sequence = t->begun++;
    int rc;

    if (call->way == TEAM_BY_DATA) {
        t->used_by[t->turns % TEAM_DATA_ROWS] = sequence;
        call->turn = t->turns++;
    }
    *team_call_at(t, sequence) = *call;
    team_activate(t);
    work_give(t, sequence, call, signature);
    if (team_root_gives(call->shape) && call->spec.root == t->rank) {
        work_give_root(t, sequence, call);
        if (team_is_alone(t))
            end_here(t, sequence);
        else
            submit_instance(t, sequence, call, signature);
    }
    rc = team_arrive(&t->area, sequence);
    if (rc == 1)
        finish(t, sequence, call, signature);
    else if (rc < 0)
        team_fail(t, rc);
}

/* What both kinds of calls begin with: 0, with all but the call's end. */
static int prepare(struct pwc_team *t, const struct team_spec *spec, struct team_call *call)
{
    int rc;

    if (t->status == 0 && team_is_broken(&t->area))
        team_progress(t);
    if (t->status < 0)
        return t->status;
    *call = (struct team_call){.spec = *spec, .shape = shape_of(t, spec->kind)};
    call->way = (uint8_t)team_way(call->shape, spec->length, t->roster.size, t->roster.fullest);
    if (call->way == TEAM_LARGE)
        return refuse_length(t, spec);
    rc = find_room(t, call);
    return rc == 0 ? channel_note_room(&t->ctx->channel) : rc;
}

int team_call(struct pwc_team *t, struct team_spec spec, pwc_cid lid, unsigned flags)
{
    struct team_call call;
    int rc;

    if (client_is_forked(t->ctx->client))
        return -EOWNERDEAD;
    if (flags & ~(unsigned)PWC_NO_LCE || (lid.size > PWC_CID_MAX && lid.size != PWC_CID_REQUEST))
        return -EINVAL;
    rc = spec_settle(t, &spec);
    if (rc == 0)
        rc = prepare(t, &spec, &call);
    if (rc == 0)
        rc = hold_end(t, &call, &lid, flags);
    if (rc < 0)
        return rc;
    take_part(t, &call);
    team_progress(t);
    return 0;
}

int team_call_again(struct pwc_team *t, const struct team_spec *spec, struct pwc_request *r)
{
    struct team_call call;
    int rc = prepare(t, spec, &call);

    if (rc < 0)
        return rc;
    call.request = request_number(r);
    call.persistent = true;
    take_part(t, &call);
    team_progress(t);
    return 0;
}
