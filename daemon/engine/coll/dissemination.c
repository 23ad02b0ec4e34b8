/*
 * The barrier by dissemination (Hensgen, Finkel, Manber): before round r a participant knows that
 * it and the 2^r - 1 before it have come; in the round it sends that to the one 2^r further. Owns
 * nothing. Thread: any.
 */
#include "daemon/engine/coll/schedule.h"

static uint32_t rounds(const struct coll_shape *shape)
{
    return coll_log2_up(shape->participants);
}

static void one_round(const struct coll_shape *shape, uint32_t me, uint32_t r,
                      struct coll_round *out)
{
    uint32_t p = shape->participants, far = 1u << r;

    coll_quiet(out, COLL_SIGNAL);
    coll_send(out, coll_plus(p, me, far), coll_piece(0, 0));
    coll_await(out, coll_minus(p, me, far), coll_piece(0, 0));
}

const struct coll_algorithm coll_barrier_dissemination = {
    .name = "dissemination", .cut = COLL_WHOLE, .letters = 1, .rounds = rounds, .round = one_round};
