/*
 * Owns nothing: moves the data of a collective between the caller's memory and the area, and does
 * the work of the last to come. team_abi.h says what stands where.
 *
 * Other members may write to the area at any time: nothing that is read here but data decides
 * anything.
 *
 * Thread: the one that owns the context.
 */
#include <string.h>
#include "clientlib/teams/team.h"
#include "shm_ring/fold.h"

/* The member's input in a call, rounded as the area has it. */
static uint64_t part_bytes(const struct pwc_team *t, const struct team_call *call)
{
    bool blocks = call->shape == TEAM_REDUCE_SCATTER || call->shape == TEAM_ALLTOALL;

    return blocks ? t->roster.size * call->spec.length : call->spec.length;
}

/* Where the part of a member stands. */
static uint8_t *part(const struct pwc_team *t, uint64_t sequence, const struct team_call *call,
                     uint32_t member)
{
    if (call->way == TEAM_BY_LINES)
        return team_row(&t->area, sequence)->lines[member].data;
    return team_data(&t->area, call->turn)->inputs + member * team_stride(part_bytes(t, call));
}

/* Where this engine's gift stands that is one piece. */
static uint8_t *given(const struct pwc_team *t, uint64_t sequence, const struct team_call *call)
{
    return call->way == TEAM_BY_LINES ? team_row(&t->area, sequence)->node.data
                                      : team_data(&t->area, call->turn)->inputs;
}

static uint8_t *result(const struct pwc_team *t, uint64_t sequence, const struct team_call *call)
{
    return call->way == TEAM_BY_LINES ? team_row(&t->area, sequence)->result.data
                                      : team_data(&t->area, call->turn)->result;
}

static void copy(void *to, const void *from, uint64_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
}

/* Blocks by rank to blocks by place. */
static void copy_to_places(const struct pwc_team *t, uint8_t *to, const uint8_t *from,
                           uint64_t block)
{
    if (roster_in_blocks(&t->roster)) {
        copy(to, from, t->roster.size * block);
        return;
    }
    for (uint32_t rank = 0; rank < t->roster.size; rank++)
        copy(to + roster_place(&t->roster, rank) * block, from + rank * block, block);
}

static void copy_from_places(const struct pwc_team *t, uint8_t *to, const uint8_t *from,
                             uint64_t block)
{
    if (roster_in_blocks(&t->roster)) {
        copy(to, from, t->roster.size * block);
        return;
    }
    for (uint32_t rank = 0; rank < t->roster.size; rank++)
        copy(to + rank * block, from + roster_place(&t->roster, rank) * block, block);
}

/* ---- in ------------------------------------------------------------------------------------- */

void work_give(const struct pwc_team *t, uint64_t sequence, const struct team_call *call,
               uint64_t signature)
{
    bool blocks = call->shape == TEAM_REDUCE_SCATTER || call->shape == TEAM_ALLTOALL;
    bool gives = call->shape != TEAM_BARRIER && !team_root_gives(call->shape);
    uint8_t line[TEAM_LINE_BYTES];
    uint32_t in_line = 0;

    if (gives) {
        uint8_t *to = line;

        if (call->way == TEAM_BY_LINES)
            in_line = (uint32_t)part_bytes(t, call);
        else
            to = part(t, sequence, call, t->me);
        if (blocks)
            copy_to_places(t, to, call->spec.in, call->spec.length);
        else
            copy(to, call->spec.in, call->spec.length);
    }
    team_line_write(&t->area, sequence, t->me, signature, line, in_line);
}

void work_give_root(const struct pwc_team *t, uint64_t sequence, const struct team_call *call)
{
    const struct team_spec *spec = &call->spec;
    uint8_t *to = team_is_alone(t) ? result(t, sequence, call) : given(t, sequence, call);

    if (spec->kind == TEAM_BCAST) {
        copy(to, spec->in, spec->length);
        return;
    }
    copy_to_places(t, to, spec->in, spec->length);
    if (spec->out)
        copy(spec->out, (const uint8_t *)spec->in + t->rank * spec->length, spec->length);
}

/* ---- the last to come ----------------------------------------------------------------------- */

/* All parts into one. */
static void combine_one(const struct pwc_team *t, uint64_t sequence, const struct team_call *call)
{
    uint8_t *into = team_is_alone(t) ? result(t, sequence, call) : given(t, sequence, call);
    const uint8_t *first = part(t, sequence, call, 0);
    uint64_t count = call->spec.count;

    if (call->shape == TEAM_REDUCE_SCATTER)
        count *= t->roster.size;
    if (into != first)
        copy(into, first, part_bytes(t, call));
    for (uint32_t m = 1; m < t->area.members; m++)
        fold(call->spec.code, into, part(t, sequence, call, m), count);
}

/* Each part becomes the fold of all up to it. */
static void combine_up(const struct pwc_team *t, uint64_t sequence, const struct team_call *call)
{
    uint32_t last = t->area.members - 1;

    for (uint32_t m = 1; m <= last; m++)
        fold(call->spec.code, part(t, sequence, call, m), part(t, sequence, call, m - 1),
             call->spec.count);
    if (!team_is_alone(t) && call->way == TEAM_BY_LINES)
        copy(given(t, sequence, call), part(t, sequence, call, last), call->spec.length);
}

/* All parts side by side. */
static void gather(const struct pwc_team *t, uint64_t sequence, const struct team_call *call)
{
    uint64_t bytes = part_bytes(t, call);
    uint8_t *to;

    if (team_is_alone(t))
        to = result(t, sequence, call);
    else if (call->way == TEAM_BY_LINES)
        to = given(t, sequence, call);
    else
        return; /* the engine takes them from where they stand */
    for (uint32_t m = 0; m < t->area.members; m++)
        copy(to + m * bytes, part(t, sequence, call, m), bytes);
}

/* Block m of member s becomes block s of member m. */
static void transpose(const struct pwc_team *t, uint64_t sequence, const struct team_call *call)
{
    uint8_t *to = result(t, sequence, call);
    uint64_t block = call->spec.length;

    for (uint32_t m = 0; m < t->area.members; m++)
        for (uint32_t s = 0; s < t->area.members; s++, to += block)
            copy(to, part(t, sequence, call, s) + m * block, block);
}

void work_combine(const struct pwc_team *t, uint64_t sequence, const struct team_call *call)
{
    switch (call->shape) {
    case TEAM_REDUCE:
    case TEAM_ALLREDUCE:
    case TEAM_REDUCE_SCATTER:
        combine_one(t, sequence, call);
        break;
    case TEAM_SCAN:
    case TEAM_EXSCAN:
        combine_up(t, sequence, call);
        break;
    case TEAM_GATHER:
    case TEAM_ALLGATHER:
        gather(t, sequence, call);
        break;
    case TEAM_ALLTOALL:
        if (team_is_alone(t))
            transpose(t, sequence, call);
        else
            gather(t, sequence, call);
        break;
    default:
        break;
    }
}

/* ---- out ------------------------------------------------------------------------------------ */

bool work_only_gives(const struct pwc_team *t, const struct team_call *call)
{
    return call->spec.kind != TEAM_BARRIER &&
           (!call->spec.out || (call->spec.kind == TEAM_SCATTER && call->spec.root == t->rank));
}

/* By SCAN's and EXSCAN's own shape: what earlier engines give, and the members here up to `m`. */
static void take_scan(const struct pwc_team *t, uint64_t sequence, const struct team_call *call)
{
    const struct team_spec *spec = &call->spec;
    uint32_t parts = t->me + (spec->kind == TEAM_SCAN); /* here, that it is made of */
    bool earlier = t->roster.participant > 0;

    if (earlier)
        copy(spec->out, result(t, sequence, call), spec->length);
    if (parts == 0)
        return;
    if (earlier)
        fold(spec->code, spec->out, part(t, sequence, call, parts - 1), spec->count);
    else
        copy(spec->out, part(t, sequence, call, parts - 1), spec->length);
}

/* Folds the inputs of ranks 0 to `last`, which are here, in this order. */
static void fold_ranks(const struct pwc_team *t, uint64_t sequence, const struct team_call *call,
                       uint32_t last)
{
    const struct team_spec *spec = &call->spec;
    const uint8_t *all = result(t, sequence, call);

    copy(spec->out, all + roster_place(&t->roster, 0) * spec->length, spec->length);
    for (uint32_t rank = 1; rank <= last; rank++) {
        const uint8_t *from = all + roster_place(&t->roster, rank) * spec->length;

        if (spec->kind == TEAM_USER)
            spec->fold(spec->out, from, spec->user_count, spec->arg);
        else
            fold(spec->code, spec->out, from, spec->count);
    }
}

static void take_all(const struct pwc_team *t, uint64_t sequence, const struct team_call *call)
{
    switch (call->spec.kind) {
    case TEAM_SCAN:
        fold_ranks(t, sequence, call, t->rank);
        break;
    case TEAM_EXSCAN:
        fold_ranks(t, sequence, call, t->rank - 1);
        break;
    case TEAM_USER:
        fold_ranks(t, sequence, call, t->roster.size - 1);
        break;
    default:
        copy_from_places(t, call->spec.out, result(t, sequence, call), call->spec.length);
    }
}

uint64_t work_take(const struct pwc_team *t, uint64_t sequence, const struct team_call *call)
{
    const struct team_spec *spec = &call->spec;
    const uint8_t *from = result(t, sequence, call);
    uint64_t block = spec->length;

    if (work_only_gives(t, call))
        return spec->out ? block : 0; /* the root of a scatter has had its block */
    switch (call->shape) {
    case TEAM_SCAN:
    case TEAM_EXSCAN:
        take_scan(t, sequence, call);
        break;
    case TEAM_REDUCE_SCATTER:
    case TEAM_SCATTER:
        copy(spec->out, from + t->me * block, block);
        break;
    case TEAM_GATHER:
    case TEAM_ALLGATHER:
        take_all(t, sequence, call);
        break;
    case TEAM_ALLTOALL:
        copy_from_places(t, spec->out, from + t->me * t->roster.size * block, block);
        break;
    default:
        copy(spec->out, from, block);
    }
    return spec_received(t, spec);
}
