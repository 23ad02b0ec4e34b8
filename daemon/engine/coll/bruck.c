/*
 * Bruck's allgather and alltoall: log2 P rounds for any P. Owns nothing. Thread: any.
 *
 * Blocks are counted from the participant itself: block b is that of (me + b) mod P.
 *
 * Allgather: before round r blocks 0 to 2^r - 1 are there. These blocks go to the participant
 * 2^r before, for which they are the next ones.
 *
 * Alltoall: block b has b participants to go. In round r all blocks with bit r in their number go
 * 2^r further, and those of the participant 2^r before take their places. At the end block b has
 * gone b participants, so it comes from (me - b) mod P.
 */
#include "daemon/engine/coll/schedule.h"

static uint32_t rounds(const struct coll_shape *shape)
{
    return coll_log2_up(shape->participants);
}

static uint32_t owner(const struct coll_shape *shape, uint32_t me, uint32_t b)
{
    return coll_plus(shape->participants, me, b);
}

static uint32_t source(const struct coll_shape *shape, uint32_t me, uint32_t b)
{
    return coll_minus(shape->participants, me, b);
}

static void allgather_round(const struct coll_shape *shape, uint32_t me, uint32_t r,
                            struct coll_round *out)
{
    uint32_t p = shape->participants, far = 1u << r;
    uint32_t blocks = far < p - far ? far : p - far;

    coll_quiet(out, COLL_COPY);
    coll_send(out, coll_minus(p, me, far), coll_piece(0, blocks));
    coll_await(out, coll_plus(p, me, far), coll_piece(far, far + blocks));
}

static void alltoall_round(const struct coll_shape *shape, uint32_t me, uint32_t r,
                           struct coll_round *out)
{
    uint32_t p = shape->participants, far = 1u << r;
    struct coll_range blocks = {far, far, 2 * far, p};

    coll_quiet(out, COLL_COPY);
    coll_send(out, coll_plus(p, me, far), blocks);
    coll_await(out, coll_minus(p, me, far), blocks);
}

void coll_alltoall_pair(const struct coll_shape *shape, uint32_t me, uint32_t r, uint32_t b,
                        uint32_t *source, uint32_t *target)
{
    uint32_t gone = b & ((1u << r) - 1);

    *source = coll_minus(shape->participants, me, gone);
    *target = coll_plus(shape->participants, me, b - gone);
}

const struct coll_algorithm coll_allgather_bruck = {.name = "bruck",
                                                    .cut = COLL_BY_PARTICIPANT,
                                                    .letters = 1,
                                                    .rounds = rounds,
                                                    .round = allgather_round,
                                                    .owner = owner};
const struct coll_algorithm coll_alltoall_bruck = {.name = "bruck",
                                                   .cut = COLL_BY_PARTICIPANT,
                                                   .letters = 1,
                                                   .rounds = rounds,
                                                   .round = alltoall_round,
                                                   .owner = owner,
                                                   .source = source};
