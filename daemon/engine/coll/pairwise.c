/*
 * Each participant directly to each other one, or all to the root, or the root to all: every block
 * travels once, and COLL_LETTERS of them at a time. Owns nothing. Thread: any.
 *
 * Round r is for the participants that are 8r + 1 to 8r + 8 further. Blocks that arrive stand
 * apart from those that leave: a block may arrive before the one with its number has left.
 */
#include "daemon/engine/coll/schedule.h"

static_assert(COLL_LETTERS == 8, "a round's participants are 8r + 1 to 8r + 8 further");
enum { SHIFT = 3 };

static uint32_t rounds(const struct coll_shape *shape)
{
    return (shape->participants - 1 + COLL_LETTERS - 1) >> SHIFT;
}

/* The first distance after those of round r. */
static uint32_t distance_end(const struct coll_shape *shape, uint32_t r)
{
    uint32_t left = shape->participants - (r << SHIFT);

    return (r << SHIFT) + (left < COLL_LETTERS + 1 ? left : COLL_LETTERS + 1);
}

static struct coll_range one(uint32_t block)
{
    return coll_piece(block, block + 1);
}

static void alltoall_round(const struct coll_shape *shape, uint32_t me, uint32_t r,
                           struct coll_round *out)
{
    uint32_t p = shape->participants, end = distance_end(shape, r);

    coll_quiet(out, COLL_COPY);
    for (uint32_t far = (r << SHIFT) + 1; far < end; far++) {
        uint32_t to = coll_plus(p, me, far), from = coll_minus(p, me, far);

        coll_send(out, to, one(to));
        coll_await(out, from, one(from));
    }
}

/* Block `me` of each other participant is combined here, in the order of their distance. */
static void reduce_scatter_round(const struct coll_shape *shape, uint32_t me, uint32_t r,
                                 struct coll_round *out)
{
    uint32_t p = shape->participants, end = distance_end(shape, r);

    coll_quiet(out, COLL_FOLD);
    for (uint32_t far = (r << SHIFT) + 1; far < end; far++) {
        uint32_t to = coll_plus(p, me, far);

        coll_send(out, to, one(to));
        coll_await(out, coll_minus(p, me, far), one(me));
    }
}

/* Whether the root sends to `me`, or receives from it, in round r. */
static bool is_in_turn(const struct coll_shape *shape, uint32_t me, uint32_t r)
{
    uint32_t far = coll_minus(shape->participants, me, shape->root);

    return far > 0 && (far - 1) >> SHIFT == r;
}

static void gather_round(const struct coll_shape *shape, uint32_t me, uint32_t r,
                         struct coll_round *out)
{
    uint32_t p = shape->participants, end = distance_end(shape, r);

    coll_quiet(out, COLL_COPY);
    if (is_in_turn(shape, me, r))
        coll_send(out, shape->root, one(me));
    for (uint32_t far = (r << SHIFT) + 1; me == shape->root && far < end; far++) {
        uint32_t from = coll_plus(p, me, far);

        coll_await(out, from, one(from));
    }
}

static void scatter_round(const struct coll_shape *shape, uint32_t me, uint32_t r,
                          struct coll_round *out)
{
    uint32_t p = shape->participants, end = distance_end(shape, r);

    coll_quiet(out, COLL_COPY);
    if (is_in_turn(shape, me, r))
        coll_await(out, shape->root, one(me));
    for (uint32_t far = (r << SHIFT) + 1; me == shape->root && far < end; far++) {
        uint32_t to = coll_plus(p, me, far);

        coll_send(out, to, one(to));
    }
}

const struct coll_algorithm coll_alltoall_pairwise = {.name = "pairwise",
                                                      .cut = COLL_BY_PARTICIPANT,
                                                      .letters = COLL_LETTERS,
                                                      .apart = true,
                                                      .rounds = rounds,
                                                      .round = alltoall_round};
const struct coll_algorithm coll_reduce_scatter_pairwise = {.name = "pairwise",
                                                            .cut = COLL_BY_PARTICIPANT,
                                                            .letters = COLL_LETTERS,
                                                            .rounds = rounds,
                                                            .round = reduce_scatter_round};
const struct coll_algorithm coll_gather_direct = {.name = "direct",
                                                  .cut = COLL_BY_PARTICIPANT,
                                                  .letters = COLL_LETTERS,
                                                  .rounds = rounds,
                                                  .round = gather_round};
const struct coll_algorithm coll_scatter_direct = {.name = "direct",
                                                   .cut = COLL_BY_PARTICIPANT,
                                                   .letters = COLL_LETTERS,
                                                   .rounds = rounds,
                                                   .round = scatter_round};
