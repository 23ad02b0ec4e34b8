/*
 * Groups of a power of two, for reductions: the first participants fold in pairs, so that Q, the
 * largest power of two up to P, are left. Owns nothing. Thread: any.
 *
 *     participant      0   1   2   3   4   5   6   7   8   9  10      P = 11, Q = 8, 3 pairs
 *                       \ /     \ /     \ /    |   |   |   |   |
 *     speaker           0       1       2      3   4   5   6   7
 *
 * The lower one of a pair speaks for both; in the root's pair the root does. Speakers j stand for
 * neighbouring participants in order, so the participants of an aligned group of 2^k speakers are
 * neighbours too.
 */
#ifndef PWC_ENGINE_COLL_PAIRS_H
#define PWC_ENGINE_COLL_PAIRS_H

#include "daemon/engine/coll/schedule.h"

struct coll_pairs {
    uint32_t levels; /* log2 Q */
    uint32_t pairs;  /* P - Q */
};

static inline struct coll_pairs coll_pairs(uint32_t participants)
{
    uint32_t levels = coll_log2(participants);

    return (struct coll_pairs){levels, participants - (1u << levels)};
}

/* The speaker for participant `me`. */
static inline uint32_t coll_speaker(const struct coll_pairs *of, uint32_t me)
{
    return me < 2 * of->pairs ? me >> 1 : me - of->pairs;
}

/* The participant that speaks as `j`. */
static inline uint32_t coll_spoken(const struct coll_pairs *of, uint32_t root, uint32_t j)
{
    if (j >= of->pairs)
        return j + of->pairs;
    return root >> 1 == j ? root : 2 * j;
}

/* The first participant that speaker `j` stands for; for the number after the last speaker: P. */
static inline uint32_t coll_spoken_first(const struct coll_pairs *of, uint32_t j)
{
    return j < of->pairs ? 2 * j : j + of->pairs;
}

/* The blocks of the participants of 2^k speakers, those that differ from `j` in the low k bits. */
static inline struct coll_range coll_spoken_blocks(const struct coll_pairs *of, uint32_t j,
                                                   uint32_t k)
{
    uint32_t first = j >> k << k;

    return coll_piece(coll_spoken_first(of, first), coll_spoken_first(of, first + (1u << k)));
}

#endif
