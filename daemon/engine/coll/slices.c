/*
 * Data in slices, one after the other: bcast down a binary tree, scans along a chain. Owns
 * nothing. Thread: any.
 *
 * A participant at depth d sends slice s in round s + d, so it sends one slice while it awaits the
 * next, and all depths work at once.
 *
 *     bcast, counted from the root            scan
 *
 *             0         depth 0               0 - 1 - 2 - 3 ...      depth: its number
 *           /   \
 *          1     2      depth 1
 *         / \   / \
 *        3   4 5   6    depth 2
 */
#include "daemon/engine/coll/schedule.h"

/* Whether slice s = r - depth is there to be sent in round r; slices are numbered from 0. */
static bool has_slice(const struct coll_shape *shape, uint32_t r, uint32_t depth)
{
    return r >= depth && r - depth < shape->blocks;
}

static struct coll_range slice(uint32_t r, uint32_t depth)
{
    return coll_piece(r - depth, r - depth + 1);
}

/* The first slice leaves in round 0; the last one arrives where the way is longest. */
static uint32_t rounds_of(const struct coll_shape *shape, uint32_t depth)
{
    return shape->participants == 1 ? 0 : shape->blocks + depth - 1;
}

static uint32_t depth_of(uint32_t v)
{
    return coll_log2(v + 1);
}

static uint32_t bcast_rounds(const struct coll_shape *shape)
{
    return rounds_of(shape, depth_of(shape->participants - 1));
}

static void bcast_round(const struct coll_shape *shape, uint32_t me, uint32_t r,
                        struct coll_round *out)
{
    uint32_t p = shape->participants, v = coll_minus(p, me, shape->root), depth = depth_of(v);

    coll_quiet(out, COLL_COPY);
    if (v > 0 && has_slice(shape, r, depth - 1))
        coll_await(out, coll_plus(p, shape->root, (v - 1) >> 1), slice(r, depth - 1));
    if (!has_slice(shape, r, depth))
        return;
    for (uint32_t child = 2 * v + 1; child <= 2 * v + 2 && child < p; child++)
        coll_send(out, coll_plus(p, shape->root, child), slice(r, depth));
}

static uint32_t scan_rounds(const struct coll_shape *shape)
{
    return rounds_of(shape, shape->participants - 1);
}

static void scan_round(const struct coll_shape *shape, uint32_t me, uint32_t r,
                       struct coll_round *out)
{
    coll_quiet(out, COLL_SCAN_COPY);
    if (me > 0 && has_slice(shape, r, me - 1))
        coll_await(out, me - 1, slice(r, me - 1));
    if (me + 1 < shape->participants && has_slice(shape, r, me))
        coll_send(out, me + 1, slice(r, me));
}

const struct coll_algorithm coll_bcast_tree = {.name = "tree",
                                               .cut = COLL_BY_SLICE,
                                               .letters = 2,
                                               .times = 2,
                                               .rounds = bcast_rounds,
                                               .round = bcast_round};
const struct coll_algorithm coll_scan_chain = {.name = "chain",
                                               .cut = COLL_BY_SLICE,
                                               .letters = 1,
                                               .times = 1,
                                               .rounds = scan_rounds,
                                               .round = scan_round};
