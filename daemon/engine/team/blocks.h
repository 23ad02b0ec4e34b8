/*
 * Blocks of an instance: how many bytes each has, where it stands, and how letters carry it.
 *
 * The schedules (coll/schedule.h) speak of blocks by number. A block's bytes follow from the
 * members of the participants that it stands for, and from the call's length L:
 *
 *     an operand          whole        L bytes at 0
 *                         cut          pieces of one size at b * size, the last ones shorter; of
 *                                      whole elements, or of COLL_SLICE bytes
 *     a block a rank      block of p   members(p) * L bytes at first(p) * L, in order of ranks
 *     alltoall            block b      members(source) * members(target) * L bytes, after those of
 *                                      blocks 0 to b - 1; by source's member, then by target's
 *
 * The second blocks of a scan stand L bytes after the first.
 *
 * Owns nothing: reads a team and its instance, reads and writes its room. Thread: the progress
 * thread.
 */
#ifndef PWC_ENGINE_BLOCKS_H
#define PWC_ENGINE_BLOCKS_H

#include "daemon/engine/coll/schedule.h"
#include "daemon/engine/state/state.h"

/* An instance as its schedule sees it. */
struct blocks {
    const struct coll_algorithm *algorithm;
    struct coll_shape shape;
    const struct participant *list;
    uint32_t me;
    uint32_t kind; /* enum team_kind */
    uint32_t length;
    uint32_t piece; /* bytes of a block of an operand that is cut */
    uint8_t code;   /* of its fold: proto/word_abi.h */
};

/* The bytes of a call by which its row is chosen: what the fullest participant gives or gets,
 * whichever is more. */
uint64_t blocks_bytes(const struct team *t, uint32_t kind, uint32_t length);
/* The number of its row in coll/table.c. `kind` is one between engines. */
uint32_t blocks_row(const struct team *t, uint32_t kind, uint32_t length);
/* Whether instances of this kind combine data, by the fold of their signature. */
bool blocks_fold(uint32_t kind);
/* The blocks of a call by this row, over the participants `list`; `code` is that of its fold. */
struct blocks blocks_by(const struct team *t, const struct participant *list, uint32_t row,
                        uint32_t root, uint32_t length, uint8_t code);
struct blocks blocks_of(const struct engine *e, uint32_t team, const struct instance *instance);

/* Bytes of a letter that leaves in a round, and of one that arrives. */
uint64_t blocks_leaving(const struct blocks *b, uint32_t round, const struct coll_range *range);
uint64_t blocks_arriving(const struct blocks *b, uint32_t round, const struct coll_range *range);
/* Copies the blocks that leave in a round into a letter, one after the other. */
void blocks_pack(const struct blocks *b, uint32_t round, const struct coll_range *range,
                 const uint8_t *side, uint8_t *letter);

/* The side that blocks_place writes. */
enum blocks_side {
    BLOCKS_HERE,  /* the side that it reads */
    BLOCKS_TURN,  /* the other side, which counts from then on */
    BLOCKS_APART, /* the other side, where blocks that have arrived stay until the end */
};
enum blocks_side blocks_side(const struct blocks *b);
/* Whether a round combines, so that it must not be done twice on the same blocks. */
bool blocks_combine(enum coll_how how);
/* Before a round that combines others' blocks into ours: copies these blocks from one side to the
 * other. */
void blocks_copy(const struct blocks *b, enum coll_how how, const struct coll_range *range,
                 const uint8_t *side, uint8_t *other);
/* Puts a letter that has arrived in a round in place: from `side` and `letter` to the side that
 * blocks_side says. */
void blocks_place(const struct blocks *b, uint32_t round, enum coll_how how,
                  const struct coll_range *range, const uint8_t *side, const uint8_t *letter,
                  uint8_t *other);

/* Bytes of all blocks together before a round. */
uint64_t blocks_all(const struct blocks *b, uint32_t round);

#endif
