/*
 * Owns nothing: checks what a caller of a collective describes, and finds what follows from it.
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/teams/team.h"
#include "proto/word_abi.h"

/* Lengths above this are not counted out: nothing of this size can be moved. */
#define COUNT_MAX (UINT64_C(1) << 40)

static bool is_root(const struct pwc_team *t, const struct team_spec *spec)
{
    return spec->root == t->rank;
}

uint64_t spec_given(const struct pwc_team *t, const struct team_spec *spec)
{
    switch (spec->kind) {
    case TEAM_BARRIER:
        return 0;
    case TEAM_BCAST:
        return is_root(t, spec) ? spec->length : 0;
    case TEAM_SCATTER:
        return is_root(t, spec) ? t->roster.size * spec->length : 0;
    case TEAM_REDUCE_SCATTER:
    case TEAM_ALLTOALL:
        return t->roster.size * spec->length;
    default:
        return spec->length;
    }
}

uint64_t spec_received(const struct pwc_team *t, const struct team_spec *spec)
{
    switch (spec->kind) {
    case TEAM_BARRIER:
        return 0;
    case TEAM_BCAST:
        return is_root(t, spec) ? 0 : spec->length;
    case TEAM_REDUCE:
        return is_root(t, spec) ? spec->length : 0;
    case TEAM_EXSCAN:
        return t->rank > 0 ? spec->length : 0;
    case TEAM_GATHER:
        return is_root(t, spec) ? t->roster.size * spec->length : 0;
    case TEAM_ALLGATHER:
    case TEAM_ALLTOALL:
        return t->roster.size * spec->length;
    default:
        return spec->length;
    }
}

/* Finds input that stands in place of the output. */
static void find_input(const struct pwc_team *t, struct team_spec *spec)
{
    uint64_t at = 0;

    if (spec->in || !spec->out)
        return;
    switch (spec->kind) {
    case TEAM_BCAST:
    case TEAM_SCATTER:
    case TEAM_ALLTOALL:
        return;
    case TEAM_GATHER:
    case TEAM_ALLGATHER:
        at = t->rank * spec->length;
        break;
    default:
        break;
    }
    spec->in = (const uint8_t *)spec->out + at;
}

static bool has_fold(uint8_t kind)
{
    return kind >= TEAM_REDUCE && kind <= TEAM_REDUCE_SCATTER;
}

/* The length of an operand: 0, -EINVAL, -EMSGSIZE. */
static int find_length(struct team_spec *spec)
{
    if (spec->count > COUNT_MAX || spec->length > COUNT_MAX)
        return -EMSGSIZE;
    if (has_fold(spec->kind)) {
        if (!fold_code_valid(spec->code))
            return -EINVAL;
        spec->length = spec->count << fold_shift(spec->code);
    }
    if (spec->kind == TEAM_USER) {
        if (!spec->fold || spec->length == 0)
            return -EINVAL;
        if (spec->count > COUNT_MAX / spec->length)
            return -EMSGSIZE;
        spec->user_count = spec->count;
        spec->length *= spec->count;
        spec->count = spec->length;
    }
    return 0;
}

int spec_settle(const struct pwc_team *t, struct team_spec *spec)
{
    uint64_t received;
    int rc;

    if (spec->root >= t->roster.size)
        return -EINVAL;
    rc = find_length(spec);
    if (rc < 0)
        return rc;
    find_input(t, spec);
    received = spec_received(t, spec);
    if (spec->kind == TEAM_SCATTER && is_root(t, spec) && !spec->out)
        received = 0;
    if ((spec_given(t, spec) > 0 && !spec->in) || (received > 0 && !spec->out))
        return -EINVAL;
    if (received == 0)
        spec->out = NULL;
    return 0;
}

uint64_t spec_signature(const struct team_spec *spec)
{
    return team_signature(spec->kind, word_op(spec->code), (uint8_t)word_type(spec->code),
                          spec->root, spec->count);
}
