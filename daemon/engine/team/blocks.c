/* Blocks of an instance (blocks.h). Thread: the progress thread. */
#include "daemon/engine/team/blocks.h"

#include <string.h>
#include "daemon/engine/coll/table.h"
#include "proto/word_abi.h"
#include "shm_ring/fold.h"

bool blocks_fold(uint32_t kind)
{
    return kind >= TEAM_REDUCE && kind <= TEAM_REDUCE_SCATTER;
}

uint64_t blocks_bytes(const struct team *t, uint32_t kind, uint32_t length)
{
    struct team_load load = {0};

    team_load(&load, (enum team_kind)kind, length, t->size, t->fullest);
    return load.node > load.received ? load.node : load.received;
}

uint32_t blocks_row(const struct team *t, uint32_t kind, uint32_t length)
{
    return coll_choose(&t->choices, kind, blocks_bytes(t, kind, length), t->participants);
}

/* Whether the call has an operand, with as many bytes at each participant; else it has blocks of
 * ranks. */
static bool has_operand(uint32_t kind)
{
    return kind <= TEAM_EXSCAN;
}

/* The size of an operand's pieces: of whole elements, as equal as they can be. */
static uint32_t piece_of(const struct blocks *b)
{
    uint32_t shift, elements;

    if (b->algorithm->cut == COLL_BY_SLICE)
        return COLL_SLICE;
    if (b->algorithm->cut == COLL_WHOLE || !has_operand(b->kind))
        return b->length;
    shift = fold_shift(b->code);
    elements = b->length >> shift;
    return (elements + b->shape.blocks - 1) / b->shape.blocks << shift;
}

struct blocks blocks_by(const struct team *t, const struct participant *list, uint32_t row,
                        uint32_t root, uint32_t length, uint8_t code)
{
    const struct coll_algorithm *algorithm = coll_row(row)->algorithm;
    struct blocks b = {
        .algorithm = algorithm,
        .shape = {.participants = t->participants,
                  .root = root,
                  .blocks = coll_blocks(algorithm, t->participants, length)},
        .list = list,
        .me = t->me,
        .kind = coll_row(row)->kind,
        .length = length,
        .code = code,
    };

    b.piece = piece_of(&b);
    return b;
}

struct blocks blocks_of(const struct engine *e, uint32_t team, const struct instance *instance)
{
    return blocks_by(&e->teams.table[team], e->teams.live[team].participants, instance->schedule,
                     instance->root, instance->length,
                     word_code((enum word_op)team_signature_op(instance->signature),
                               (enum word_type)team_signature_type(instance->signature)));
}

/* ---- bytes and places ------------------------------------------------------------------------ */

/* Whether blocks are passed on from participant to participant, and change their lengths. */
static bool passes_on(const struct blocks *b)
{
    return b->kind == TEAM_ALLTOALL && !b->algorithm->apart;
}

static uint64_t piece_end(const struct blocks *b, uint32_t i)
{
    uint64_t end = (uint64_t)i * b->piece;

    return end < b->length ? end : b->length;
}

/* Bytes of block `i` before a round; only those that are passed on change. */
static uint64_t bytes_of(const struct blocks *b, uint32_t round, uint32_t i)
{
    uint32_t source, target;

    if (has_operand(b->kind))
        return piece_end(b, i + 1) - piece_end(b, i);
    source = coll_owner(b->algorithm, &b->shape, b->me, i);
    if (b->kind != TEAM_ALLTOALL)
        return (uint64_t)b->list[source].members * b->length;
    target = b->me;
    if (passes_on(b))
        coll_alltoall_pair(&b->shape, b->me, round, i, &source, &target);
    return (uint64_t)b->list[source].members * b->list[target].members * b->length;
}

/* Where block `i` begins; not for blocks that are passed on. */
static uint64_t place_of(const struct blocks *b, uint32_t i)
{
    uint64_t first;

    if (has_operand(b->kind))
        return piece_end(b, i);
    first = b->list[coll_owner(b->algorithm, &b->shape, b->me, i)].first;
    if (b->kind == TEAM_ALLTOALL)
        first *= b->list[b->me].members;
    return first * b->length;
}

/* The block of a range after `i`. Where a range has gaps, its step is a power of two. */
static uint32_t next_of(const struct coll_range *range, uint32_t i)
{
    uint32_t behind = i + 1, place = (behind - range->first) & (range->step - 1);

    if (range->run == range->step || place < range->run)
        return behind;
    return behind + range->step - place;
}

static uint64_t bytes_of_range(const struct blocks *b, uint32_t round,
                               const struct coll_range *range)
{
    uint64_t bytes = 0;

    if (has_operand(b->kind) && range->run == range->step)
        return piece_end(b, range->end) - piece_end(b, range->first);
    for (uint32_t i = range->first; i < range->end; i = next_of(range, i))
        bytes += bytes_of(b, round, i);
    return bytes;
}

uint64_t blocks_leaving(const struct blocks *b, uint32_t round, const struct coll_range *range)
{
    return b->length == 0 ? 0 : bytes_of_range(b, round, range);
}

uint64_t blocks_arriving(const struct blocks *b, uint32_t round, const struct coll_range *range)
{
    return b->length == 0 ? 0 : bytes_of_range(b, round + 1, range);
}

/* ---- letters --------------------------------------------------------------------------------- */

void blocks_pack(const struct blocks *b, uint32_t round, const struct coll_range *range,
                 const uint8_t *side, uint8_t *letter)
{
    uint64_t place = 0;
    uint32_t at = 0;

    if (b->length == 0)
        return;
    for (uint32_t i = range->first; i < range->end; i = next_of(range, i)) {
        uint64_t bytes = bytes_of(b, round, i);

        if (passes_on(b))
            for (; at < i; at++)
                place += bytes_of(b, round, at);
        else
            place = place_of(b, i);
        memcpy(letter, side + place, bytes);
        letter += bytes;
    }
}

enum blocks_side blocks_side(const struct blocks *b)
{
    if (b->algorithm->apart)
        return BLOCKS_APART;
    return passes_on(b) ? BLOCKS_TURN : BLOCKS_HERE;
}

bool blocks_combine(enum coll_how how)
{
    return how != COLL_SIGNAL && how != COLL_COPY;
}

void blocks_copy(const struct blocks *b, enum coll_how how, const struct coll_range *range,
                 const uint8_t *side, uint8_t *other)
{
    for (uint32_t i = range->first; b->length > 0 && i < range->end; i = next_of(range, i)) {
        uint64_t bytes = bytes_of(b, 0, i), place = place_of(b, i);

        memcpy(other + place, side + place, bytes);
        if (how == COLL_SCAN_FOLD)
            memcpy(other + b->length + place, side + b->length + place, bytes);
    }
}

/* Blocks keep their order, but some change their lengths, so all are written again. */
static void place_alltoall(const struct blocks *b, uint32_t round, const struct coll_range *range,
                           const uint8_t *side, const uint8_t *letter, uint8_t *other)
{
    uint32_t next = range->first;

    for (uint32_t i = 0; i < b->shape.blocks; i++) {
        uint64_t was = bytes_of(b, round, i), is = bytes_of(b, round + 1, i);

        if (i == next) {
            memcpy(other, letter, is);
            letter += is;
            next = next_of(range, i);
        } else {
            memcpy(other, side, is);
        }
        side += was;
        other += is;
    }
}

static void place_block(const struct blocks *b, enum coll_how how, uint64_t place, uint64_t bytes,
                        const uint8_t *letter, uint8_t *side)
{
    uint64_t apart = b->length; /* the second blocks of a scan */
    size_t count;

    if (how == COLL_COPY) {
        memcpy(side + place, letter, bytes);
        return;
    }
    count = bytes >> fold_shift(b->code);
    if (how == COLL_SCAN_COPY)
        memcpy(side + apart + place, letter, bytes);
    else if (how == COLL_SCAN_FOLD)
        fold(b->code, side + apart + place, letter, count);
    fold(b->code, side + place, letter, count);
}

void blocks_place(const struct blocks *b, uint32_t round, enum coll_how how,
                  const struct coll_range *range, const uint8_t *side, const uint8_t *letter,
                  uint8_t *other)
{
    if (b->length == 0 || how == COLL_SIGNAL)
        return;
    if (passes_on(b)) {
        place_alltoall(b, round, range, side, letter, other);
        return;
    }
    for (uint32_t i = range->first; i < range->end; i = next_of(range, i)) {
        uint64_t bytes = bytes_of(b, round, i);

        place_block(b, how, place_of(b, i), bytes, letter, other);
        letter += bytes;
    }
}

uint64_t blocks_all(const struct blocks *b, uint32_t round)
{
    struct coll_range all = coll_piece(0, b->shape.blocks);

    return b->length == 0 ? 0 : bytes_of_range(b, round, &all);
}
