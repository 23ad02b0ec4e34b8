/*
 * Reduce-scatter by recursive halving. Owns nothing. Thread: any.
 *
 * Pairs fold first where P is no power of two (pairs.h), and share out last. In between, level by
 * level from the highest, a speaker gives the half of its group's blocks that is not its own to
 * the speaker that stands at its own place in that half, and combines the other half. So it ends
 * with the blocks of its participants.
 *
 *     speaker 2 of 8    has 0 - 7, gives 4 - 7 to speaker 6, keeps 0 - 3
 *                       has 0 - 3, gives 0 - 1 to speaker 0, keeps 2 - 3
 *                       has 2 - 3, gives 3     to speaker 3, keeps 2
 */
#include "daemon/engine/coll/pairs.h"

static uint32_t rounds(const struct coll_shape *shape)
{
    struct coll_pairs pairs = coll_pairs(shape->participants);

    return pairs.levels + (pairs.pairs > 0 ? 2 : 0);
}

static void one_round(const struct coll_shape *shape, uint32_t me, uint32_t r,
                      struct coll_round *out)
{
    struct coll_pairs pairs = coll_pairs(shape->participants);
    uint32_t j = coll_speaker(&pairs, me), speaker = coll_spoken(&pairs, 0, j);
    uint32_t before = pairs.pairs > 0, partner, k;

    coll_quiet(out, COLL_FOLD);
    if (r < before) {
        if (me != speaker)
            coll_send(out, speaker, coll_piece(0, shape->blocks));
        else if (j < pairs.pairs)
            coll_await(out, me ^ 1, coll_piece(0, shape->blocks));
    } else if (r - before == pairs.levels) {
        out->how = COLL_COPY;
        if (me != speaker)
            coll_await(out, speaker, coll_piece(me, me + 1));
        else if (j < pairs.pairs)
            coll_send(out, me ^ 1, coll_piece(me ^ 1, (me ^ 1) + 1));
    } else if (me == speaker) {
        k = pairs.levels - 1 - (r - before);
        partner = coll_spoken(&pairs, 0, j ^ 1u << k);
        coll_send(out, partner, coll_spoken_blocks(&pairs, j ^ 1u << k, k));
        coll_await(out, partner, coll_spoken_blocks(&pairs, j, k));
    }
}

const struct coll_algorithm coll_halving = {
    .name = "halving", .cut = COLL_BY_PARTICIPANT, .rounds = rounds, .round = one_round};
