/* Blocks of an instance (blocks.h). Thread: the progress thread. */
#include "daemon/engine/team/blocks.h"

#include <string.h>
#include "daemon/engine/coll/table.h"
#include "proto/word_abi.h"
#include "shm_ring/fold.h"

/* Small collectives have one algorithm a kind, whatever length and participants. */
static const struct coll_choices choices;

const struct coll_algorithm *blocks_algorithm(uint32_t kind)
{
    return coll_choose(&choices, (enum team_kind)kind, 0, 1);
}

bool blocks_fold(uint32_t kind)
{
    return kind >= TEAM_REDUCE && kind <= TEAM_REDUCE_SCATTER;
}

struct blocks blocks_of(const struct engine *e, uint32_t team, const struct instance *instance)
{
    const struct team *t = &e->teams.table[team];
    const struct coll_algorithm *algorithm = blocks_algorithm(instance->kind);

    return (struct blocks){
        .algorithm = algorithm,
        .shape = {.participants = t->participants,
                  .root = instance->root,
                  .blocks = coll_blocks(algorithm, t->participants, instance->length)},
        .list = e->teams.live[team].participants,
        .me = t->me,
        .kind = instance->kind,
        .length = instance->length,
        .code = word_code((enum word_op)team_signature_op(instance->signature),
                          (enum word_type)team_signature_type(instance->signature)),
    };
}

/* ---- bytes and places ------------------------------------------------------------------------ */

/* Bytes of block `i` before a round; only those of an alltoall change. */
static uint64_t bytes_of(const struct blocks *b, uint32_t round, uint32_t i)
{
    uint32_t source, target;

    if (b->algorithm->cut == COLL_WHOLE)
        return b->length;
    if (b->kind != TEAM_ALLTOALL)
        return (uint64_t)b->list[coll_owner(b->algorithm, &b->shape, b->me, i)].members * b->length;
    coll_alltoall_pair(&b->shape, b->me, round, i, &source, &target);
    return (uint64_t)b->list[source].members * b->list[target].members * b->length;
}

/* Where block `i` stands; not of an alltoall. */
static uint64_t place_of(const struct blocks *b, uint32_t i)
{
    uint32_t first = i;

    if (b->algorithm->cut != COLL_WHOLE)
        first = b->list[coll_owner(b->algorithm, &b->shape, b->me, i)].first;
    return (uint64_t)first * b->length;
}

/* The block of a range behind `i`. Where a range has gaps, its step is a power of two. */
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

        if (b->kind == TEAM_ALLTOALL)
            for (; at < i; at++)
                place += bytes_of(b, round, at);
        else
            place = place_of(b, i);
        memcpy(letter, side + place, bytes);
        letter += bytes;
    }
}

bool blocks_turn(const struct blocks *b, enum coll_how how)
{
    return b->kind == TEAM_ALLTOALL || how == COLL_FOLD || how == COLL_SCAN_COPY ||
           how == COLL_SCAN_FOLD;
}

/* Blocks keep their order, and some change their lengths: all are written anew. */
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
    uint64_t apart = (uint64_t)b->shape.blocks * b->length; /* the second blocks of a scan */
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

/* Bytes of all blocks on a side; not of an alltoall. */
static uint64_t bytes_of_all(const struct blocks *b)
{
    const struct participant *last = &b->list[b->shape.participants - 1];
    bool scan = b->kind == TEAM_SCAN || b->kind == TEAM_EXSCAN;

    if (b->algorithm->cut == COLL_WHOLE)
        return (scan ? 2ull : 1ull) * b->length;
    return (uint64_t)(last->first + last->members) * b->length;
}

void blocks_place(const struct blocks *b, uint32_t round, enum coll_how how,
                  const struct coll_range *range, const uint8_t *side, const uint8_t *letter,
                  uint8_t *other)
{
    if (b->length == 0 || how == COLL_SIGNAL)
        return;
    if (b->kind == TEAM_ALLTOALL) {
        place_alltoall(b, round, range, side, letter, other);
        return;
    }
    if (other != side)
        memcpy(other, side, bytes_of_all(b));
    for (uint32_t i = range->first; i < range->end; i = next_of(range, i)) {
        uint64_t bytes = bytes_of(b, round, i);

        place_block(b, how, place_of(b, i), bytes, letter, other);
        letter += bytes;
    }
}

/* ---- rooms ----------------------------------------------------------------------------------- */

uint32_t blocks_rounds(uint32_t participants)
{
    uint32_t most = coll_rounds_most(&choices, 0, participants);

    return most > 0 ? most : 1;
}

static uint64_t most_of(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t most = a > b ? a : b;

    return most > c ? most : c;
}

/* Bytes of a call of length 1: in blocks at most, in all letters, in the longest letter. */
struct load {
    uint64_t work, mail, letter;
};

/* For the kinds whose letters depend on how members are spread, whatever the root. */
static struct load load_of(const struct team *t, const struct participant *list, uint32_t kind)
{
    const struct coll_algorithm *algorithm = blocks_algorithm(kind);
    struct blocks b = {.algorithm = algorithm,
                       .shape = {.participants = t->participants, .blocks = t->participants},
                       .list = list,
                       .me = t->me,
                       .kind = kind,
                       .length = 1};
    uint32_t rounds = algorithm->rounds(&b.shape);
    struct coll_range all = coll_piece(0, t->participants);
    struct load load = {.work = bytes_of_range(&b, 0, &all)};
    uint64_t out = 0, in = 0;

    for (uint32_t r = 0; r < rounds; r++) {
        uint64_t leaving = 0, arriving = 0;
        struct coll_round now;

        algorithm->round(&b.shape, t->me, r, &now);
        if (now.sends > 0)
            leaving = blocks_leaving(&b, r, &now.to[0].blocks);
        if (now.arrivals > 0)
            arriving = blocks_arriving(&b, r, &now.from[0].blocks);
        out += leaving;
        in += arriving;
        load.letter = most_of(load.letter, leaving, arriving);
        load.work = most_of(load.work, bytes_of_range(&b, r + 1, &all), 0);
    }
    load.mail = in > out ? in : out;
    return load;
}

struct team_room blocks_room(const struct team *t, const struct participant *list, bool lines)
{
    uint64_t whole = lines ? TEAM_LINE_BYTES : TEAM_INPUT_MAX; /* a bcast's */
    uint64_t given = lines ? TEAM_LINE_BYTES : TEAM_DATA_BYTES;
    uint64_t each = given / t->size < TEAM_INPUT_MAX ? given / t->size : TEAM_INPUT_MAX;
    uint64_t cross = given / t->fullest / t->size, work, mail;
    uint64_t scan = whole < TEAM_SCAN_MAX ? whole : TEAM_SCAN_MAX;
    struct load alltoall = load_of(t, list, TEAM_ALLTOALL);
    struct load halving = load_of(t, list, TEAM_REDUCE_SCATTER);
    struct load allgather = load_of(t, list, TEAM_ALLGATHER);

    cross = cross < TEAM_INPUT_MAX ? cross : TEAM_INPUT_MAX;
    if (cross * alltoall.letter > TEAM_DATA_BYTES) /* longer than any record may be */
        return (struct team_room){.mail = UINT32_MAX};
    /* A scan has its blocks twice; a gather or a scatter sends and gets each block once. */
    work = most_of(whole, 2 * scan, each * t->size);
    work = most_of(work, cross * alltoall.work, 0);
    mail = most_of(t->rounds * whole, each * t->size, cross * alltoall.mail);
    mail = most_of(mail, each * halving.mail, each * allgather.mail) + 8 * t->rounds;
    return (struct team_room){.work = (uint32_t)((work + 7) & ~UINT64_C(7)),
                              .mail = (uint32_t)((mail + 7) & ~UINT64_C(7))};
}
