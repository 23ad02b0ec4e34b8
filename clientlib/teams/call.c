/*
 * Owns nothing: accepts calls of collectives. A call is accepted with all that its end needs, or
 * leaves the team unchanged.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "clientlib/calls/give_way.h"
#include "clientlib/calls/operation.h"
#include "clientlib/teams/team.h"

/* The most bytes of all members together for an operation of the program's own. */
#define USER_MAX (UINT64_C(1) << 20)

static bool is_varying(uint8_t kind)
{
    return kind >= TEAM_GATHERV && kind <= TEAM_ALLTOALLV;
}

/* Whether the call can be cut into steps: 0, -EMSGSIZE, -ENOTSUP. */
static int check_length(struct pwc_team *t, const struct team_spec *spec)
{
    uint64_t most = team_slice_max(t, spec);

    if (spec->kind == TEAM_USER &&
        ((spec->length > 0 && most == 0) || spec->length * t->roster.size > USER_MAX))
        return team_refuse(t, -EMSGSIZE,
                           "an operation of the program's own takes up to %llu bytes of all "
                           "members together, and %u an element; it has %llu of each of %u",
                           (unsigned long long)USER_MAX, t->slice[TEAM_ALLGATHER],
                           (unsigned long long)spec->length, t->roster.size);
    if (most == 0 && (spec->length > 0 || is_varying(spec->kind)))
        return team_refuse(t, -ENOTSUP,
                           "there are too many members: %u, %u of them on one node, have no room "
                           "for a part of this call in %u bytes",
                           t->roster.size, t->roster.fullest, TEAM_DATA_BYTES);
    return 0;
}

static int make_ids(struct pwc_team *t)
{
    if (!t->ids)
        t->ids = malloc((uint64_t)t->window * PWC_CID_MAX);
    return t->ids ? 0 : -ENOMEM;
}

/* Notes how the end of a call will be shown, and holds room for it: 0, or an error, after which
 * nothing is held. */
static int hold_end(struct pwc_team *t, struct team_call *call, const pwc_cid *lid, unsigned flags)
{
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
        rc = channel_own_hold(&t->ctx->channel, (uint32_t)lid->size);
    if (rc < 0)
        return give_way_refused(&t->ctx->give_way, rc);
    call->lid_size = (uint16_t)lid->size;
    call->lid = lid->size == 0 ? lid->value : 0;
    if (lid->size > 0)
        memcpy(team_ids_of(t, team_call_at(t, t->called)), lid->data, lid->size);
    return 0;
}

/* Whether there is a place for one more call: 0, or an error. The call begins when its turn comes,
 * and when there is room for its first step. */
static int find_place(const struct pwc_team *t)
{
    int rc;

    if (t->called - t->over > t->area.row_mask)
        return give_way_refused(&t->ctx->give_way, -EAGAIN);
    rc = channel_note_room(&t->ctx->channel);
    return rc == -EAGAIN ? 0 : rc;
}

/* The common first part of team_call and team_call_again: checks, and fills in all but the call's
 * end. */
static int prepare(struct pwc_team *t, const struct team_spec *spec, struct team_call *call)
{
    int rc;

    if (t->status == 0 && team_is_broken(&t->area))
        team_progress(t);
    if (t->status < 0)
        return t->status;
    rc = check_length(t, spec);
    if (rc < 0)
        return rc;
    *call = (struct team_call){
        .spec = *spec,
        .signature = spec_signature(spec),
        .whole = spec->length,
        .asks = is_varying(spec->kind) && spec->kind != TEAM_ALLGATHERV,
    };
    if (is_varying(spec->kind))
        call->whole = call->asks ? UINT64_MAX : spec_longest(t, spec);
    return find_place(t);
}

static void take(struct pwc_team *t, const struct team_call *call)
{
    *team_call_at(t, t->called++) = *call;
    team_activate(t);
    team_begin_steps(t);
    team_progress(t);
    /* The letters of the first of many calls leave before the program computes. */
    if (t->called - t->over == 1)
        give_way(t->ctx);
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
    if (rc == 0)
        take(t, &call);
    return rc;
}

int team_call_unshown(struct pwc_team *t, const struct team_spec *spec)
{
    struct team_spec settled = *spec;
    struct team_call call;
    int rc = spec_settle(t, &settled);

    if (rc == 0)
        rc = prepare(t, &settled, &call);
    if (rc < 0)
        return rc;
    call.unshown = true;
    take(t, &call);
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
    take(t, &call);
    return 0;
}
