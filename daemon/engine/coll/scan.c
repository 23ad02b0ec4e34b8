/*
 * Scans by doubling (Hillis, Steele): before round r a participant has in block 0 the combination
 * of itself and up to 2^r - 1 before it, and in block 1 that of these without itself; at the end
 * block 1 covers all before it. Each participant passes block 0 on to the one 2^r further. Owns
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
    uint32_t far = 1u << r;

    coll_quiet(out, r == 0 ? COLL_SCAN_COPY : COLL_SCAN_FOLD);
    if (far < shape->participants - me)
        coll_send(out, me + far, coll_piece(0, shape->blocks));
    if (me >= far)
        coll_await(out, me - far, coll_piece(0, shape->blocks));
}

const struct coll_algorithm coll_scan_doubling = {
    .name = "doubling", .cut = COLL_WHOLE, .letters = 1, .rounds = rounds, .round = one_round};
