/*
 * Blocks of an instance: how many bytes each has, where it stands, and how letters carry it.
 *
 * The schedules (coll/schedule.h) speak of blocks by number. A block's bytes follow from the
 * members of the participants that it stands for, and from the call's length L:
 *
 *     cut whole           block b      L bytes at b * L
 *     cut by participant  block of p   members(p) * L bytes at first(p) * L, in order of ranks
 *     alltoall            block b      members(source) * members(target) * L bytes, behind those of
 *                                      blocks 0 to b - 1; by source's member, then by target's
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
    uint8_t code; /* of its fold: proto/word_abi.h */
};

/* The schedule of a small collective; NULL for a number that is no kind between engines. */
const struct coll_algorithm *blocks_algorithm(uint32_t kind);
/* Whether instances of this kind are combined, by the fold of their signature. */
bool blocks_fold(uint32_t kind);
struct blocks blocks_of(const struct engine *e, uint32_t team, const struct instance *instance);

/* Bytes of a letter that leaves in a round, and of one that arrives. */
uint64_t blocks_leaving(const struct blocks *b, uint32_t round, const struct coll_range *range);
uint64_t blocks_arriving(const struct blocks *b, uint32_t round, const struct coll_range *range);
/* Copies what leaves in a round, one block behind the other. */
void blocks_pack(const struct blocks *b, uint32_t round, const struct coll_range *range,
                 const uint8_t *side, uint8_t *letter);
/* Whether blocks_place writes the other side; else the one that it reads, and may do so twice. */
bool blocks_turn(const struct blocks *b, enum coll_how how);
/* Puts what has arrived in a round in place: from `side` and `letter` to `other`, which is `side`
 * itself where blocks do not turn. */
void blocks_place(const struct blocks *b, uint32_t round, enum coll_how how,
                  const struct coll_range *range, const uint8_t *side, const uint8_t *letter,
                  uint8_t *other);

/* The bytes that a team's rooms must have: of lines, or of data rows; `mail` UINT32_MAX: members
 * are spread so that letters would be too long. */
struct team_room blocks_room(const struct team *t, const struct participant *list, bool lines);
/* Rounds of the longest schedule of so many participants. */
uint32_t blocks_rounds(uint32_t participants);

#endif
