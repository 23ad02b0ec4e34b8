/*
 * Reductions over all data at once: reduce by a binomial tree, allreduce by recursive doubling.
 * Owns nothing. Thread: any.
 *
 * Pairs fold first where P is no power of two (pairs.h), and get the result last. In between
 * speakers j and j ^ 2^k combine in round k what each has of its aligned group of 2^k:
 *
 *     ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7))
 *
 * Reduce and allreduce group in this way whatever the root, so they give the same bits.
 */
#include "daemon/engine/coll/pairs.h"

/* The first round of a pair: the other member sends its data to the speaker. */
static void pair_folds(const struct coll_shape *shape, uint32_t me, uint32_t speaker,
                       struct coll_round *out)
{
    if (me == speaker)
        coll_await(out, me ^ 1, coll_piece(0, shape->blocks));
    else
        coll_send(out, speaker, coll_piece(0, shape->blocks));
}

static uint32_t reduce_rounds(const struct coll_shape *shape)
{
    return coll_log2_up(shape->participants);
}

static void reduce_round(const struct coll_shape *shape, uint32_t me, uint32_t r,
                         struct coll_round *out)
{
    struct coll_pairs pairs = coll_pairs(shape->participants);
    uint32_t j = coll_speaker(&pairs, me), root = coll_speaker(&pairs, shape->root);
    uint32_t speaker = coll_spoken(&pairs, shape->root, j);
    uint32_t k = r - (pairs.pairs > 0); /* the pairs' round is before the first */
    uint32_t partner, below;

    coll_quiet(out, COLL_FOLD);
    if (pairs.pairs > 0 && r == 0) {
        if (j < pairs.pairs)
            pair_folds(shape, me, speaker, out);
        return;
    }
    below = (j ^ root) & ((2u << k) - 1); /* the levels left from here, up to level k */
    if (me != speaker || (below & ((1u << k) - 1)) != 0)
        return;
    partner = coll_spoken(&pairs, shape->root, j ^ 1u << k);
    if (below != 0)
        coll_send(out, partner, coll_piece(0, shape->blocks));
    else
        coll_await(out, partner, coll_piece(0, shape->blocks));
}

static uint32_t allreduce_rounds(const struct coll_shape *shape)
{
    struct coll_pairs pairs = coll_pairs(shape->participants);

    return pairs.levels + (pairs.pairs > 0 ? 2 : 0);
}

static void allreduce_round(const struct coll_shape *shape, uint32_t me, uint32_t r,
                            struct coll_round *out)
{
    struct coll_pairs pairs = coll_pairs(shape->participants);
    struct coll_range all = coll_piece(0, shape->blocks);
    uint32_t j = coll_speaker(&pairs, me), speaker = coll_spoken(&pairs, 0, j);
    uint32_t k = r - (pairs.pairs > 0), partner;

    coll_quiet(out, COLL_FOLD);
    if (pairs.pairs > 0 && r == 0) {
        if (j < pairs.pairs)
            pair_folds(shape, me, speaker, out);
    } else if (k == pairs.levels) { /* the last round: back to the other member of the pair */
        out->how = COLL_COPY;
        if (me != speaker)
            coll_await(out, speaker, all);
        else if (j < pairs.pairs)
            coll_send(out, me ^ 1, all);
    } else if (me == speaker) {
        partner = coll_spoken(&pairs, 0, j ^ 1u << k);
        coll_send(out, partner, all);
        coll_await(out, partner, all);
    }
}

const struct coll_algorithm coll_reduce_binomial = {.name = "binomial",
                                                    .cut = COLL_WHOLE,
                                                    .letters = 1,
                                                    .rounds = reduce_rounds,
                                                    .round = reduce_round};
const struct coll_algorithm coll_allreduce_doubling = {.name = "doubling",
                                                       .cut = COLL_WHOLE,
                                                       .letters = 1,
                                                       .rounds = allreduce_rounds,
                                                       .round = allreduce_round};
