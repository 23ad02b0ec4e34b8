/*
 * Owns nothing: moves the data of a step between the caller's memory and the area, and does the
 * work of the last to come. team_abi.h says where data is in the area. The area holds slices of the
 * blocks in the caller's memory.
 *
 * Other members may write to the area at any time: so only data is read from it, and no length or
 * address depends on that data.
 *
 * Thread: the one that owns the context.
 */
#include <string.h>
#include "clientlib/teams/team.h"
#include "proto/word_abi.h"
#include "shm_ring/fold.h"

/* ---- places ---------------------------------------------------------------------------------- */

static bool gives_blocks(const struct team_step *step)
{
    return step->shape == TEAM_REDUCE_SCATTER || step->shape == TEAM_ALLTOALL;
}

/* A member's part of a step, in bytes. */
static uint64_t part_bytes(const struct pwc_team *t, const struct team_step *step)
{
    return gives_blocks(step) ? t->roster.size * step->length : step->length;
}

/* The place of a member's part. */
static uint8_t *part(const struct pwc_team *t, uint64_t sequence, uint32_t member)
{
    const struct team_step *step = team_step_at(t, sequence);

    if (step->way == TEAM_BY_LINES)
        return team_row(&t->area, sequence)->lines[member].data;
    return team_data(&t->area, step->turn)->inputs + member * team_stride(part_bytes(t, step));
}

/* The place of the data that this engine gives, if it is one piece. */
static uint8_t *given(const struct pwc_team *t, uint64_t sequence)
{
    const struct team_step *step = team_step_at(t, sequence);

    return step->way == TEAM_BY_LINES ? team_row(&t->area, sequence)->node.data
                                      : team_data(&t->area, step->turn)->inputs;
}

static uint8_t *result(const struct pwc_team *t, uint64_t sequence)
{
    const struct team_step *step = team_step_at(t, sequence);

    return step->way == TEAM_BY_LINES ? team_row(&t->area, sequence)->result.data
                                      : team_data(&t->area, step->turn)->result;
}

static void copy(void *to, const void *from, uint64_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
}

/* Whether the slice is the whole of each block, and blocks are adjacent and in the same order as in
 * the area. */
static bool is_plain(const struct pwc_team *t, const struct team_step *step, const size_t *lens)
{
    return !lens && step->length == step->call->spec.length && roster_in_blocks(&t->roster);
}

/* The slice of a rank's block in the caller's memory: returns its offset, and sets *bytes. */
static uint64_t slice_of(const struct team_step *step, const size_t *lens, const size_t *offsets,
                         uint32_t rank, uint64_t *bytes)
{
    uint64_t length = step->call->spec.length;

    *bytes = spec_within(lens ? lens[rank] : length, step);
    return (offsets ? offsets[rank] : rank * length) + step->offset;
}

/* Copies slices of blocks, which are by rank, to their places. */
static void copy_to_places(const struct pwc_team *t, const struct team_step *step, uint8_t *to)
{
    const struct team_spec *spec = &step->call->spec;
    const uint8_t *from = spec->in;
    uint64_t bytes;

    if (is_plain(t, step, spec->in_lens)) {
        copy(to, from, t->roster.size * step->length);
        return;
    }
    for (uint32_t rank = 0; rank < t->roster.size; rank++) {
        uint64_t at = slice_of(step, spec->in_lens, spec->in_offsets, rank, &bytes);

        if (bytes > 0)
            copy(to + roster_place(&t->roster, rank) * step->length, from + at, bytes);
    }
}

static void copy_from_places(const struct pwc_team *t, const struct team_step *step,
                             const uint8_t *from)
{
    const struct team_spec *spec = &step->call->spec;
    uint8_t *to = spec->out;
    uint64_t bytes;

    if (is_plain(t, step, spec->out_lens)) {
        copy(to, from, t->roster.size * step->length);
        return;
    }
    for (uint32_t rank = 0; rank < t->roster.size; rank++) {
        uint64_t at = slice_of(step, spec->out_lens, spec->out_offsets, rank, &bytes);

        if (bytes > 0)
            copy(to + at, from + roster_place(&t->roster, rank) * step->length, bytes);
    }
}

/* Number of elements in a slice of an operand. */
static uint64_t elements(const struct team_step *step)
{
    return step->length >> fold_shift(step->call->spec.code);
}

/* The place of the slice in the caller's output operand, or in its own block. */
static uint8_t *out_slice(const struct team_step *step)
{
    return (uint8_t *)step->call->spec.out + step->offset;
}

/* ---- in -------------------------------------------------------------------------------------- */

void work_give(const struct pwc_team *t, uint64_t sequence)
{
    const struct team_step *step = team_step_at(t, sequence);
    const struct team_spec *spec = &step->call->spec;
    uint8_t line[TEAM_LINE_BYTES];
    uint32_t in_line = 0;
    uint8_t *to = line;

    if (step->way == TEAM_BY_DATA)
        to = part(t, sequence, t->me);
    else if (!team_root_gives(step->shape))
        in_line = (uint32_t)part_bytes(t, step);
    if (step->asks) {
        uint64_t most = spec_longest(t, spec);

        copy(to, &most, sizeof(most));
    } else if (gives_blocks(step)) {
        copy_to_places(t, step, to);
    } else if (!team_root_gives(step->shape) && spec->in) {
        copy(to, (const uint8_t *)spec->in + step->offset, spec_within(spec->own, step));
    }
    team_line_write(&t->area, sequence, t->me, step->call->signature, line, in_line);
}

void work_give_root(const struct pwc_team *t, uint64_t sequence)
{
    const struct team_step *step = team_step_at(t, sequence);
    const struct team_spec *spec = &step->call->spec;
    uint8_t *to = team_is_alone(t) ? result(t, sequence) : given(t, sequence);
    uint64_t bytes, at;

    if (step->shape == TEAM_BCAST) {
        copy(to, (const uint8_t *)spec->in + step->offset, step->length);
        return;
    }
    copy_to_places(t, step, to);
    if (!spec->out)
        return;
    at = slice_of(step, spec->in_lens, spec->in_offsets, t->rank, &bytes);
    copy(out_slice(step), (const uint8_t *)spec->in + at, bytes);
}

/* ---- the last to come ------------------------------------------------------------------------ */

/* The code of a step's fold. */
static uint8_t code_of(const struct team_step *step)
{
    return step->asks ? word_code(WORD_MAX, WORD_U64) : step->call->spec.code;
}

/* Folds all parts into one. */
static void combine_one(const struct pwc_team *t, uint64_t sequence)
{
    const struct team_step *step = team_step_at(t, sequence);
    uint8_t *into = team_is_alone(t) ? result(t, sequence) : given(t, sequence);
    const uint8_t *first = part(t, sequence, 0);
    uint64_t bytes = part_bytes(t, step);
    uint8_t code = code_of(step);

    if (into != first)
        copy(into, first, bytes);
    for (uint32_t m = 1; m < t->area.members; m++)
        fold(code, into, part(t, sequence, m), bytes >> fold_shift(code));
}

/* Replaces each part by the fold of all parts up to it. */
static void combine_up(const struct pwc_team *t, uint64_t sequence)
{
    const struct team_step *step = team_step_at(t, sequence);
    uint32_t last = t->area.members - 1;

    for (uint32_t m = 1; m <= last; m++)
        fold(step->call->spec.code, part(t, sequence, m), part(t, sequence, m - 1), elements(step));
    if (!team_is_alone(t) && step->way == TEAM_BY_LINES)
        copy(given(t, sequence), part(t, sequence, last), step->length);
}

/* Copies all parts side by side. */
static void gather(const struct pwc_team *t, uint64_t sequence)
{
    const struct team_step *step = team_step_at(t, sequence);
    uint64_t bytes = part_bytes(t, step);
    uint8_t *to;

    if (team_is_alone(t))
        to = result(t, sequence);
    else if (step->way == TEAM_BY_LINES)
        to = given(t, sequence);
    else
        return; /* the engine takes the parts from the inputs */
    for (uint32_t m = 0; m < t->area.members; m++)
        copy(to + m * bytes, part(t, sequence, m), bytes);
}

/* Block m of member s becomes block s of member m. */
static void transpose(const struct pwc_team *t, uint64_t sequence)
{
    uint64_t block = team_step_at(t, sequence)->length;
    uint8_t *to = result(t, sequence);

    for (uint32_t m = 0; m < t->area.members; m++)
        for (uint32_t s = 0; s < t->area.members; s++, to += block)
            copy(to, part(t, sequence, s) + m * block, block);
}

void work_combine(const struct pwc_team *t, uint64_t sequence)
{
    switch (team_step_at(t, sequence)->shape) {
    case TEAM_REDUCE:
    case TEAM_ALLREDUCE:
    case TEAM_REDUCE_SCATTER:
        combine_one(t, sequence);
        break;
    case TEAM_SCAN:
    case TEAM_EXSCAN:
        combine_up(t, sequence);
        break;
    case TEAM_GATHER:
    case TEAM_ALLGATHER:
        gather(t, sequence);
        break;
    case TEAM_ALLTOALL:
        if (team_is_alone(t))
            transpose(t, sequence);
        else
            gather(t, sequence);
        break;
    default:
        break;
    }
}

/* ---- out ------------------------------------------------------------------------------------- */

bool work_only_gives(const struct pwc_team *t, const struct team_step *step)
{
    const struct team_spec *spec = &step->call->spec;

    if (step->asks || spec->kind == TEAM_BARRIER)
        return false;
    return !spec->out || (step->shape == TEAM_SCATTER && spec->root == t->rank);
}

/* For SCAN and EXSCAN with their own shape: combines the result of earlier engines with the parts
 * of the members here, up to this one. */
static void take_scan(const struct pwc_team *t, uint64_t sequence)
{
    const struct team_step *step = team_step_at(t, sequence);
    const struct team_spec *spec = &step->call->spec;
    uint32_t parts = t->me + (spec->kind == TEAM_SCAN); /* number of parts here that the output
                                                           combines */
    bool earlier = t->roster.participant > 0;

    if (earlier)
        copy(out_slice(step), result(t, sequence), step->length);
    if (parts == 0)
        return;
    if (earlier)
        fold(spec->code, out_slice(step), part(t, sequence, parts - 1), elements(step));
    else
        copy(out_slice(step), part(t, sequence, parts - 1), step->length);
}

/* The guard makes a probe inside the fold fail, because the caller is ending steps. */
static void fold_by_program(const struct team_spec *spec, uint8_t *into, const uint8_t *from,
                            uint64_t bytes)
{
    handler_enter();
    spec->fold(into, from, bytes / spec->element, spec->arg);
    handler_leave();
}

/* Folds the inputs of ranks 0 to `last`, which are in the result, in this order. */
static void fold_ranks(const struct pwc_team *t, uint64_t sequence, uint32_t last)
{
    const struct team_step *step = team_step_at(t, sequence);
    const struct team_spec *spec = &step->call->spec;
    const uint8_t *all = result(t, sequence);
    uint8_t *into = out_slice(step);

    copy(into, all + roster_place(&t->roster, 0) * step->length, step->length);
    for (uint32_t rank = 1; rank <= last; rank++) {
        const uint8_t *from = all + roster_place(&t->roster, rank) * step->length;

        if (spec->kind == TEAM_USER)
            fold_by_program(spec, into, from, step->length);
        else
            fold(spec->code, into, from, elements(step));
    }
}

static void take_all(const struct pwc_team *t, uint64_t sequence)
{
    const struct team_step *step = team_step_at(t, sequence);

    switch (step->call->spec.kind) {
    case TEAM_SCAN:
        fold_ranks(t, sequence, t->rank);
        break;
    case TEAM_EXSCAN:
        fold_ranks(t, sequence, t->rank - 1);
        break;
    case TEAM_USER:
        fold_ranks(t, sequence, t->roster.size - 1);
        break;
    default:
        copy_from_places(t, step, result(t, sequence));
    }
}

void work_take(const struct pwc_team *t, uint64_t sequence)
{
    const struct team_step *step = team_step_at(t, sequence);
    const struct team_spec *spec = &step->call->spec;
    const uint8_t *from = result(t, sequence);
    uint64_t block = step->length;

    if (step->asks) {
        memcpy(&step->call->whole, from, sizeof(step->call->whole));
        return;
    }
    if (!spec->out || work_only_gives(t, step))
        return;
    switch (step->shape) {
    case TEAM_SCAN:
    case TEAM_EXSCAN:
        take_scan(t, sequence);
        break;
    case TEAM_REDUCE_SCATTER:
    case TEAM_SCATTER:
        copy(out_slice(step), from + t->me * block, spec_within(spec->own, step));
        break;
    case TEAM_GATHER:
    case TEAM_ALLGATHER:
        take_all(t, sequence);
        break;
    case TEAM_ALLTOALL:
        copy_from_places(t, step, from + t->me * t->roster.size * block);
        break;
    default:
        copy(out_slice(step), from, block);
    }
}
