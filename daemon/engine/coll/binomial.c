/*
 * Binomial trees: bcast, gather and scatter. Owns nothing. Thread: any.
 *
 * Participants are counted from the root: v = (number - root) mod P. The left tree is that of a
 * gather, and of a scatter, which goes down in it. The right one is that of a bcast, which reaches
 * most participants in its last round:
 *
 *          v = 0                             v = 0
 *        /   |   \                         /   |   \
 *       1    2    4      round 0: 1        1   2    4     round 0: 1
 *            |   / \     round 1: 2       / \  |          round 1: 2, 3
 *            3  5   6    round 2: 4      3   5 6          round 2: 4, 5, 6, 7
 *                   |                    |
 *                   7                    7
 */
#include "daemon/engine/coll/schedule.h"

static uint32_t rounds(const struct coll_shape *shape)
{
    return coll_log2_up(shape->participants);
}

static uint32_t from_root(const struct coll_shape *shape, uint32_t me)
{
    return coll_minus(shape->participants, me, shape->root);
}

static uint32_t number_of(const struct coll_shape *shape, uint32_t v)
{
    return coll_plus(shape->participants, shape->root, v);
}

/* Block v belongs to the v-th participant from the root on, so the blocks of a subtree are
 * adjacent. */
static uint32_t owner(const struct coll_shape *shape, uint32_t me, uint32_t b)
{
    (void)me;
    return number_of(shape, b);
}

static void bcast_round(const struct coll_shape *shape, uint32_t me, uint32_t r,
                        struct coll_round *out)
{
    uint32_t v = from_root(shape, me), far = 1u << r;

    coll_quiet(out, COLL_COPY);
    if (v < far && far < shape->participants - v)
        coll_send(out, number_of(shape, v + far), coll_piece(0, shape->blocks));
    else if (v >= far && v < 2 * far)
        coll_await(out, number_of(shape, v - far), coll_piece(0, shape->blocks));
}

/* The blocks of the subtree below v whose edge to its parent spans `far`. */
static struct coll_range subtree(const struct coll_shape *shape, uint32_t v, uint32_t far)
{
    uint32_t p = shape->participants;

    return coll_piece(v, far < p - v ? v + far : p);
}

/* Uses the edges that span 2^k, from the higher end to the lower. */
static void gather_round(const struct coll_shape *shape, uint32_t me, uint32_t k,
                         struct coll_round *out)
{
    uint32_t v = from_root(shape, me), far = 1u << k;

    coll_quiet(out, COLL_COPY);
    if ((v & (2 * far - 1)) == far)
        coll_send(out, number_of(shape, v - far), subtree(shape, v, far));
    else if ((v & (2 * far - 1)) == 0 && far < shape->participants - v)
        coll_await(out, number_of(shape, v + far), subtree(shape, v + far, far));
}

/* A gather backwards. */
static void scatter_round(const struct coll_shape *shape, uint32_t me, uint32_t r,
                          struct coll_round *out)
{
    uint32_t v = from_root(shape, me), far = 1u << (rounds(shape) - 1 - r);

    coll_quiet(out, COLL_COPY);
    if ((v & (2 * far - 1)) == far)
        coll_await(out, number_of(shape, v - far), subtree(shape, v, far));
    else if ((v & (2 * far - 1)) == 0 && far < shape->participants - v)
        coll_send(out, number_of(shape, v + far), subtree(shape, v + far, far));
}

const struct coll_algorithm coll_bcast_binomial = {
    .name = "binomial", .cut = COLL_WHOLE, .letters = 1, .rounds = rounds, .round = bcast_round};
const struct coll_algorithm coll_gather_binomial = {.name = "binomial",
                                                    .cut = COLL_BY_PARTICIPANT,
                                                    .letters = 1,
                                                    .rounds = rounds,
                                                    .round = gather_round,
                                                    .owner = owner};
const struct coll_algorithm coll_scatter_binomial = {.name = "binomial",
                                                     .cut = COLL_BY_PARTICIPANT,
                                                     .letters = 1,
                                                     .rounds = rounds,
                                                     .round = scatter_round,
                                                     .owner = owner};
