/*
 * Reductions by recursive halving: reduce_scatter; and, with the scattered parts put together
 * again, allreduce (Rabenseifner) and reduce. Owns nothing. Thread: any.
 *
 * Pairs fold first where P is no power of two (pairs.h), and share out last. In between, level by
 * level from the highest, a speaker gives the half of its group's blocks that is not its own to the
 * speaker that stands at its own place in that half, and combines the other half. At the end a
 * speaker has the blocks of its own participants.
 *
 *     speaker 2 of 8    has 0 - 7, gives 4 - 7 to speaker 6, keeps 0 - 3
 *                       has 0 - 3, gives 0 - 1 to speaker 0, keeps 2 - 3
 *                       has 2 - 3, gives 3     to speaker 3, keeps 2
 *
 * The way back goes from the lowest level to the highest: for an allreduce partners exchange what
 * they have, for a reduce the partner that is nearer to the root gets what the other one has.
 */
#include "daemon/engine/coll/pairs.h"

/* The stages of a schedule, by round. */
enum stage { STAGE_PAIRS, STAGE_HALVING, STAGE_BACK, STAGE_SHARE };

static enum stage stage_of(const struct coll_pairs *pairs, uint32_t r, uint32_t back,
                           uint32_t *level)
{
    uint32_t before = pairs->pairs > 0;

    if (r < before)
        return STAGE_PAIRS;
    r -= before;
    *level = pairs->levels - 1 - r;
    if (r < pairs->levels)
        return STAGE_HALVING;
    *level = r - pairs->levels;
    return *level < back ? STAGE_BACK : STAGE_SHARE;
}

/* Within a pair: all data goes to the speaker. */
static void fold_pair(const struct coll_shape *shape, uint32_t me, uint32_t speaker,
                      struct coll_round *out)
{
    if (me == speaker)
        coll_await(out, me ^ 1, coll_piece(0, shape->blocks));
    else
        coll_send(out, speaker, coll_piece(0, shape->blocks));
}

/* The speaker of a pair sends these blocks to the other participant. */
static void share_pair(uint32_t me, uint32_t speaker, struct coll_range blocks,
                       struct coll_round *out)
{
    out->how = COLL_COPY;
    if (me == speaker)
        coll_send(out, me ^ 1, blocks);
    else
        coll_await(out, speaker, blocks);
}

static void halve(const struct coll_pairs *pairs, uint32_t root, uint32_t j, uint32_t level,
                  struct coll_round *out)
{
    uint32_t other = j ^ 1u << level, partner = coll_spoken(pairs, root, other);

    coll_send(out, partner, coll_spoken_blocks(pairs, other, level));
    coll_await(out, partner, coll_spoken_blocks(pairs, j, level));
}

/* The rounds in which all three kinds are the same: STAGE_PAIRS and STAGE_HALVING. */
static void start_round(const struct coll_shape *shape, uint32_t me, enum stage stage,
                        uint32_t level, struct coll_round *out)
{
    struct coll_pairs pairs = coll_pairs(shape->participants);
    uint32_t j = coll_speaker(&pairs, me), speaker = coll_spoken(&pairs, shape->root, j);

    coll_quiet(out, COLL_FOLD);
    if (stage == STAGE_PAIRS && j < pairs.pairs)
        fold_pair(shape, me, speaker, out);
    if (stage == STAGE_HALVING && me == speaker)
        halve(&pairs, shape->root, j, level, out);
}

/* ---- reduce_scatter ------------------------------------------------------------------------- */

static uint32_t scatter_rounds(const struct coll_shape *shape)
{
    struct coll_pairs pairs = coll_pairs(shape->participants);

    return pairs.levels + (pairs.pairs > 0 ? 2 : 0);
}

static void scatter_round(const struct coll_shape *shape, uint32_t me, uint32_t r,
                          struct coll_round *out)
{
    struct coll_pairs pairs = coll_pairs(shape->participants);
    uint32_t level = 0;
    enum stage stage = stage_of(&pairs, r, 0, &level);

    start_round(shape, me, stage, level, out);
    if (stage == STAGE_SHARE && coll_speaker(&pairs, me) < pairs.pairs)
        share_pair(me, me & ~1u, coll_piece(me | 1, (me | 1) + 1), out);
}

/* ---- allreduce ------------------------------------------------------------------------------ */

static uint32_t allreduce_rounds(const struct coll_shape *shape)
{
    struct coll_pairs pairs = coll_pairs(shape->participants);

    return 2 * pairs.levels + (pairs.pairs > 0 ? 2 : 0);
}

static void allreduce_round(const struct coll_shape *shape, uint32_t me, uint32_t r,
                            struct coll_round *out)
{
    struct coll_pairs pairs = coll_pairs(shape->participants);
    uint32_t j = coll_speaker(&pairs, me), speaker = coll_spoken(&pairs, 0, j), level = 0;
    enum stage stage = stage_of(&pairs, r, pairs.levels, &level);

    start_round(shape, me, stage, level, out);
    if (stage == STAGE_BACK && me == speaker) {
        uint32_t other = j ^ 1u << level, partner = coll_spoken(&pairs, 0, other);

        out->how = COLL_COPY;
        coll_send(out, partner, coll_spoken_blocks(&pairs, j, level));
        coll_await(out, partner, coll_spoken_blocks(&pairs, other, level));
    } else if (stage == STAGE_SHARE && j < pairs.pairs) {
        share_pair(me, speaker, coll_piece(0, shape->blocks), out);
    }
}

/* ---- reduce --------------------------------------------------------------------------------- */

static uint32_t reduce_rounds(const struct coll_shape *shape)
{
    struct coll_pairs pairs = coll_pairs(shape->participants);

    return 2 * pairs.levels + (pairs.pairs > 0);
}

static void reduce_round(const struct coll_shape *shape, uint32_t me, uint32_t r,
                         struct coll_round *out)
{
    struct coll_pairs pairs = coll_pairs(shape->participants);
    uint32_t j = coll_speaker(&pairs, me), root = coll_speaker(&pairs, shape->root);
    uint32_t level = 0, other, partner;
    enum stage stage = stage_of(&pairs, r, pairs.levels, &level);

    start_round(shape, me, stage, level, out);
    if (stage != STAGE_BACK || me != coll_spoken(&pairs, shape->root, j) ||
        ((j ^ root) & ((1u << level) - 1)) != 0)
        return;
    out->how = COLL_COPY;
    other = j ^ 1u << level;
    partner = coll_spoken(&pairs, shape->root, other);
    if ((j ^ root) >> level & 1)
        coll_send(out, partner, coll_spoken_blocks(&pairs, j, level));
    else
        coll_await(out, partner, coll_spoken_blocks(&pairs, other, level));
}

const struct coll_algorithm coll_reduce_scatter_halving = {.name = "halving",
                                                           .cut = COLL_BY_PARTICIPANT,
                                                           .letters = 1,
                                                           .rounds = scatter_rounds,
                                                           .round = scatter_round};
const struct coll_algorithm coll_allreduce_halving = {.name = "halving",
                                                      .cut = COLL_BY_PARTICIPANT,
                                                      .letters = 1,
                                                      .times = 4,
                                                      .rounds = allreduce_rounds,
                                                      .round = allreduce_round};
const struct coll_algorithm coll_reduce_halving = {.name = "halving",
                                                   .cut = COLL_BY_PARTICIPANT,
                                                   .letters = 1,
                                                   .times = 4,
                                                   .rounds = reduce_rounds,
                                                   .round = reduce_round};
