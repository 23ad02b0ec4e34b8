/*
 * Owns nothing: checks the description of a collective, and derives lengths and the input from it.
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/teams/team.h"
#include "proto/word_abi.h"

static bool is_root(const struct pwc_team *t, const struct team_spec *spec)
{
    return spec->root == t->rank;
}

/* Bytes of the blocks of all ranks. */
static uint64_t all_blocks(const struct pwc_team *t, const struct team_spec *spec,
                           const size_t *lens)
{
    uint64_t sum = 0;

    if (!lens)
        return t->roster.size * spec->length;
    for (uint32_t rank = 0; rank < t->roster.size; rank++)
        sum += lens[rank];
    return sum;
}

static uint64_t given(const struct pwc_team *t, const struct team_spec *spec)
{
    switch (spec->kind) {
    case TEAM_BARRIER:
        return 0;
    case TEAM_BCAST:
        return is_root(t, spec) ? spec->length : 0;
    case TEAM_SCATTER:
    case TEAM_SCATTERV:
        return is_root(t, spec) ? all_blocks(t, spec, spec->in_lens) : 0;
    case TEAM_REDUCE_SCATTER:
    case TEAM_ALLTOALL:
    case TEAM_ALLTOALLV:
        return all_blocks(t, spec, spec->in_lens);
    default:
        return spec->own;
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
    case TEAM_GATHERV:
        return is_root(t, spec) ? all_blocks(t, spec, spec->out_lens) : 0;
    case TEAM_ALLGATHER:
    case TEAM_ALLGATHERV:
    case TEAM_ALLTOALL:
    case TEAM_ALLTOALLV:
        return all_blocks(t, spec, spec->out_lens);
    default:
        return spec->own;
    }
}

/* Finds the input of a call that is in place. */
static void find_input(const struct pwc_team *t, struct team_spec *spec)
{
    uint64_t at = 0;

    if (spec->in || !spec->out)
        return;
    switch (spec->kind) {
    case TEAM_BCAST:
    case TEAM_SCATTER:
    case TEAM_SCATTERV:
    case TEAM_ALLTOALL:
    case TEAM_ALLTOALLV:
        return;
    case TEAM_GATHERV:
    case TEAM_ALLGATHERV:
        if (!spec->out_offsets)
            return;
        at = spec->out_offsets[t->rank];
        break;
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

/* Computes the length of an operand: 0, -EINVAL, -EMSGSIZE. */
static int find_length(struct team_spec *spec)
{
    if (spec->count > SPEC_COUNT_MAX || spec->length > SPEC_COUNT_MAX || spec->own > SPEC_COUNT_MAX)
        return -EMSGSIZE;
    if (has_fold(spec->kind)) {
        if (!fold_code_valid(spec->code))
            return -EINVAL;
        spec->length = spec->count << fold_shift(spec->code);
    }
    if (spec->kind == TEAM_USER) {
        if (!spec->fold || spec->element == 0)
            return -EINVAL;
        if (spec->count > SPEC_COUNT_MAX / spec->element)
            return -EMSGSIZE;
        spec->length = spec->element * spec->count;
        spec->count = spec->length;
    }
    if (spec->kind < TEAM_GATHERV || spec->kind == TEAM_USER)
        spec->own = spec->length;
    return 0;
}

/* Checks the lengths and places of blocks, if this member needs them: 0, -EINVAL, -EMSGSIZE. */
static int check_blocks(const struct pwc_team *t, const size_t *lens, const size_t *offsets)
{
    if (!lens || !offsets)
        return -EINVAL;
    for (uint32_t rank = 0; rank < t->roster.size; rank++)
        if (lens[rank] > SPEC_COUNT_MAX || offsets[rank] > SIZE_MAX - lens[rank])
            return -EMSGSIZE;
    return 0;
}

static int check_varying(const struct pwc_team *t, const struct team_spec *spec)
{
    int rc = 0;

    if (spec->kind == TEAM_ALLTOALLV || (spec->kind == TEAM_SCATTERV && is_root(t, spec)))
        rc = check_blocks(t, spec->in_lens, spec->in_offsets);
    if (rc == 0 && (spec->kind == TEAM_ALLGATHERV || spec->kind == TEAM_ALLTOALLV ||
                    (spec->kind == TEAM_GATHERV && is_root(t, spec))))
        rc = check_blocks(t, spec->out_lens, spec->out_offsets);
    return rc;
}

int spec_settle(const struct pwc_team *t, struct team_spec *spec)
{
    uint64_t received;
    int rc;

    if (spec->root >= t->roster.size)
        return -EINVAL;
    rc = find_length(spec);
    if (rc == 0)
        rc = check_varying(t, spec);
    if (rc < 0)
        return rc;
    find_input(t, spec);
    received = spec_received(t, spec);
    if (team_root_gives(spec_shape(t, spec->kind)) && is_root(t, spec) && !spec->out)
        received = 0;
    if ((given(t, spec) > 0 && !spec->in) || (received > 0 && !spec->out))
        return -EINVAL;
    if (received == 0)
        spec->out = NULL;
    return 0;
}

uint64_t spec_signature(const struct team_spec *spec)
{
    if (spec->kind >= TEAM_GATHERV && spec->kind <= TEAM_ALLTOALLV)
        return team_signature(spec->kind, WORD_MAX, WORD_U64, spec->root, 0);
    return team_signature(spec->kind, word_op(spec->code), (uint8_t)word_type(spec->code),
                          spec->root, spec->count);
}

static uint64_t longest(const struct pwc_team *t, const size_t *lens)
{
    uint64_t most = 0;

    for (uint32_t rank = 0; lens && rank < t->roster.size; rank++)
        if (lens[rank] > most)
            most = lens[rank];
    return most;
}

uint64_t spec_longest(const struct pwc_team *t, const struct team_spec *spec)
{
    bool root = is_root(t, spec);
    uint64_t in = 0, out = 0;

    if (spec->kind == TEAM_ALLTOALLV || (spec->kind == TEAM_SCATTERV && root))
        in = longest(t, spec->in_lens);
    if (spec->kind == TEAM_ALLTOALLV || spec->kind == TEAM_ALLGATHERV ||
        (spec->kind == TEAM_GATHERV && root))
        out = longest(t, spec->out_lens);
    in = in > out ? in : out;
    return in > spec->own ? in : spec->own;
}

uint8_t spec_shape(const struct pwc_team *t, uint8_t kind)
{
    switch (kind) {
    case TEAM_SCAN:
    case TEAM_EXSCAN:
        return roster_in_blocks(&t->roster) ? kind : TEAM_ALLGATHER;
    case TEAM_GATHERV:
        return TEAM_GATHER;
    case TEAM_SCATTERV:
        return TEAM_SCATTER;
    case TEAM_ALLGATHERV:
    case TEAM_USER:
        return TEAM_ALLGATHER;
    case TEAM_ALLTOALLV:
        return TEAM_ALLTOALL;
    default:
        return kind;
    }
}
