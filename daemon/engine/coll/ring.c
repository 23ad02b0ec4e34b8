/*
 * An allreduce in a ring: each participant sends to the next one only, and all links carry at once.
 * Owns nothing. Thread: any.
 *
 * The blocks go around twice. At first block b starts at participant b + 1, and is combined at each
 * participant on its way, at participant b last. Then the results go around.
 */
#include "daemon/engine/coll/schedule.h"

/* Sends block me - behind, and awaits the block before that. */
static void pass(const struct coll_shape *shape, uint32_t me, uint32_t behind, enum coll_how how,
                 struct coll_round *out)
{
    uint32_t p = shape->participants;
    uint32_t leaves = coll_minus(p, me, behind), arrives = coll_minus(p, leaves, 1);

    coll_quiet(out, how);
    coll_send(out, coll_plus(p, me, 1), coll_piece(leaves, leaves + 1));
    coll_await(out, coll_minus(p, me, 1), coll_piece(arrives, arrives + 1));
}

static uint32_t allreduce_rounds(const struct coll_shape *shape)
{
    return 2 * (shape->participants - 1);
}

static void allreduce_round(const struct coll_shape *shape, uint32_t me, uint32_t r,
                            struct coll_round *out)
{
    uint32_t around = shape->participants - 1;

    if (r < around)
        pass(shape, me, r + 1, COLL_FOLD, out);
    else
        pass(shape, me, r - around, COLL_COPY, out);
}

const struct coll_algorithm coll_allreduce_ring = {.name = "ring",
                                                   .cut = COLL_BY_PARTICIPANT,
                                                   .letters = 1,
                                                   .times = 2,
                                                   .rounds = allreduce_rounds,
                                                   .round = allreduce_round};
