/*
 * Schedules of collectives between engines: which blocks go to which participant in which round.
 *
 * Owns nothing, thread: any. Everything is computed from (shape, participant, round): no lists, no
 * memory, no division, no state but the round's number and a bit for each letter that has arrived.
 *
 * Participants are engines, numbered 0 to P - 1; each combines its members' data, or puts it
 * together, before. The data of an instance stands in blocks at each participant:
 *
 *     block      0     1     2          n-1
 *             +-----+-----+-----+     +-----+
 *             |     |     |     | ... |     |   n = shape.blocks (of scans twice that: see below)
 *             +-----+-----+-----+     +-----+
 *
 * The algorithm decides the contents of a block (struct coll_algorithm). In round r a participant
 *
 *     1. sends out->to[], blocks as they stand before anything of this round has arrived,
 *     2. puts the blocks of out->from[] in place, in that order, whichever arrives first,
 *     3. goes on to round r + 1 when all of them have arrived. Many rounds have no letters.
 *
 * A letter of round r at its sender is one of round r at its receiver, and a pair of participants
 * has at most one letter a round in each direction.
 *
 * All operations are commutative to the bit (shm_ring/fold.h), so only the grouping of a sum
 * decides its last bits. A schedule groups by the participants' numbers, never by arrival, and
 * each block of a result is combined in one way only: all members get the same bits.
 */
#ifndef PWC_ENGINE_COLL_SCHEDULE_H
#define PWC_ENGINE_COLL_SCHEDULE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    COLL_LETTERS = 8,            /* letters of a round, in each direction, at most */
    COLL_PARTICIPANTS = 1 << 24, /* at most: a root's number has 24 bits in a signature */
    COLL_BLOCKS = 1 << 24
};

struct coll_shape {
    uint32_t participants; /* P, at least 1 */
    uint32_t root;         /* participant; 0 where the kind has none */
    uint32_t blocks;       /* at least 1: coll_blocks */
};

/* Blocks at `first`, `first` + `step`, ... below `end`: from each of these places a run of `run`
 * blocks, which `end` cuts short. A range in one piece has `run` = `step` = `end` - `first`. */
struct coll_range {
    uint32_t first, run, step, end;
};

/* How blocks that arrive in a round are put in place: the i-th of a letter meets block b, the i-th
 * of the range that its receiver awaits. */
enum coll_how {
    COLL_SIGNAL,    /* nothing: letters without data */
    COLL_COPY,      /* the arriving block becomes block b */
    COLL_FOLD,      /* the arriving block is combined into block b */
    COLL_SCAN_COPY, /* as COLL_FOLD, and the arriving block becomes block shape.blocks + b */
    COLL_SCAN_FOLD  /* the arriving block is combined into both blocks */
};

struct coll_letter {
    uint32_t peer; /* participant */
    struct coll_range blocks;
};

struct coll_round {
    uint32_t sends, arrivals;
    enum coll_how how; /* how the blocks of all arrivals are put in place */
    struct coll_letter to[COLL_LETTERS], from[COLL_LETTERS];
};

/* How many blocks the data is cut into. */
enum coll_cut {
    COLL_WHOLE,          /* one */
    COLL_BY_PARTICIPANT, /* P: block b is that of participant coll_owner() */
    COLL_BY_SLICE        /* as many as slices of COLL_SLICE bytes, the last may be shorter */
};
enum { COLL_SLICE_SHIFT = 15, COLL_SLICE = 1 << COLL_SLICE_SHIFT };

/*
 * The contents of the blocks at the start and at the end (`own`: the participant's contribution):
 *
 *     barrier         nothing                        nothing
 *     bcast           the root's: the data           the data
 *     reduce          own                            the root's: the result; others': undefined
 *     allreduce       own                            the result
 *     scan, exscan    own                            blocks n to 2n-1: see below
 *     gather          own in coll_owner's block      the root's: all; others': undefined
 *     scatter         the root's: all                own in coll_owner's block; else undefined
 *     allgather       own in coll_owner's block      all
 *     alltoall        block b: for coll_owner        block b: from coll_source
 *     reduce_scatter  block p: own for participant p own result in block p; else undefined
 *
 * A scan leaves in blocks n to 2n-1 the combination of all that participants before this one
 * contributed; at participant 0 these blocks are undefined.
 */
struct coll_algorithm {
    const char *name;
    enum coll_cut cut;
    /* Blocks that arrive go to another place than blocks that leave, an output and an input; the
     * participant puts its own block into the output itself. */
    bool apart;
    uint32_t letters; /* letters that leave, or arrive, in one round: up to COLL_LETTERS */
    uint32_t times;   /* if the operand is cut: how often all its blocks leave, or arrive, at most;
                       * else 0 */
    uint32_t (*rounds)(const struct coll_shape *shape);
    void (*round)(const struct coll_shape *shape, uint32_t me, uint32_t r, struct coll_round *out);
    /* Where data is cut by participant: the participant that owns block b. NULL: b. */
    uint32_t (*owner)(const struct coll_shape *shape, uint32_t me, uint32_t b);
    /* The participant whose data is in block b at the end. NULL: that of `owner`. */
    uint32_t (*source)(const struct coll_shape *shape, uint32_t me, uint32_t b);
};

extern const struct coll_algorithm coll_barrier_dissemination;
extern const struct coll_algorithm coll_bcast_binomial, coll_bcast_tree;
extern const struct coll_algorithm coll_reduce_binomial, coll_reduce_halving;
extern const struct coll_algorithm coll_allreduce_doubling, coll_allreduce_halving;
extern const struct coll_algorithm coll_allreduce_ring;
extern const struct coll_algorithm coll_scan_doubling, coll_scan_chain;
extern const struct coll_algorithm coll_reduce_scatter_halving, coll_reduce_scatter_pairwise;
extern const struct coll_algorithm coll_gather_binomial, coll_gather_direct;
extern const struct coll_algorithm coll_scatter_binomial, coll_scatter_direct;
extern const struct coll_algorithm coll_allgather_bruck;
extern const struct coll_algorithm coll_alltoall_bruck, coll_alltoall_pairwise;

/* ---- arithmetic of participants -------------------------------------------------------------- */

/* (a + b) mod n and (a - b) mod n, for a and b below n. */
static inline uint32_t coll_plus(uint32_t n, uint32_t a, uint32_t b)
{
    return a >= n - b ? a - (n - b) : a + b;
}

static inline uint32_t coll_minus(uint32_t n, uint32_t a, uint32_t b)
{
    return a >= b ? a - b : a + (n - b);
}

/* The logarithm to base 2 of n, which is at least 1: rounded down, and rounded up. */
static inline uint32_t coll_log2(uint32_t n)
{
    return 31 - (uint32_t)__builtin_clz(n);
}

static inline uint32_t coll_log2_up(uint32_t n)
{
    return n == 1 ? 0 : coll_log2(n - 1) + 1;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* shape.blocks of an algorithm, for `bytes` of data that are cut. */
static inline uint32_t coll_blocks(const struct coll_algorithm *a, uint32_t participants,
                                   uint64_t bytes)
{
    uint64_t slices = (bytes + COLL_SLICE - 1) >> COLL_SLICE_SHIFT;

    if (a->cut != COLL_BY_SLICE)
        return a->cut == COLL_WHOLE ? 1 : participants;
    return slices == 0 ? 1 : (uint32_t)slices;
}

/* How often, at most, all blocks of an operand leave one participant, or arrive there. */
static inline uint32_t coll_times(const struct coll_algorithm *a, const struct coll_shape *shape)
{
    uint32_t most = a->times > 0 ? a->times : a->rounds(shape);

    return a->times > 0 && shape->participants - 1 < most ? shape->participants - 1 : most;
}

/* Where data is cut by participant: the participant that owns block `b` at participant `me`. */
static inline uint32_t coll_owner(const struct coll_algorithm *a, const struct coll_shape *shape,
                                  uint32_t me, uint32_t b)
{
    return a->owner ? a->owner(shape, me, b) : b;
}

/* The participant whose data is in block `b` at participant `me` at the end. */
static inline uint32_t coll_source(const struct coll_algorithm *a, const struct coll_shape *shape,
                                   uint32_t me, uint32_t b)
{
    return a->source ? a->source(shape, me, b) : coll_owner(a, shape, me, b);
}

/*
 * The alltoall of Bruck passes blocks on: the data in block `b` of `me` before round `r` comes from
 * participant *source and goes to *target. With members of unequal numbers this decides its bytes;
 * a block that arrives in round r is as long as what is in its place before round r + 1.
 */
void coll_alltoall_pair(const struct coll_shape *shape, uint32_t me, uint32_t r, uint32_t b,
                        uint32_t *source, uint32_t *target);

/* Blocks from `first` up to `end`, without `end`. */
static inline struct coll_range coll_piece(uint32_t first, uint32_t end)
{
    return (struct coll_range){first, end - first, end - first, end};
}

/* The number of blocks in a range. */
static inline uint32_t coll_range_blocks(const struct coll_range *range)
{
    uint32_t blocks = 0;

    for (uint32_t at = range->first; at < range->end; at += range->step)
        blocks += range->end - at < range->run ? range->end - at : range->run;
    return blocks;
}

/* ---- for algorithms -------------------------------------------------------------------------- */

static inline void coll_quiet(struct coll_round *out, enum coll_how how)
{
    out->sends = 0;
    out->arrivals = 0;
    out->how = how;
}

static inline void coll_send(struct coll_round *out, uint32_t peer, struct coll_range blocks)
{
    out->to[out->sends++] = (struct coll_letter){peer, blocks};
}

static inline void coll_await(struct coll_round *out, uint32_t peer, struct coll_range blocks)
{
    out->from[out->arrivals++] = (struct coll_letter){peer, blocks};
}

#endif
