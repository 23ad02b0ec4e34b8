/*
 * Participants in memory that carry out a schedule (daemon/engine/coll/schedule.h), round by round.
 *
 * Each block of their data is a symbol, which records whose contributions it holds. Each letter
 * must be awaited by its receiver in the same round, with as many blocks, and what is combined must
 * belong together; otherwise the test fails. Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_COLL_SCENE_H
#define PWC_TESTS_ENGINE_COLL_SCENE_H

#include <stdbool.h>
#include <stdint.h>
#include "daemon/engine/coll/schedule.h"

enum { MOST = 130, SET_WORDS = 3 };

/* A block of data that records whose contributions it holds, for which block of theirs, and in
 * which grouping they were combined (the two operands of one operation may be swapped). `whole` and
 * `real` are values that are combined with it. */
struct symbol {
    uint64_t set[SET_WORDS];
    uint64_t what;
    uint64_t grouping;
    uint64_t whole;
    double real;
};

/* Participants, with the blocks that each has before the schedule runs (`in`) and after it (`out`).
 */
struct scene {
    const struct coll_algorithm *algorithm;
    struct coll_shape shape;
    uint32_t width; /* blocks of a participant; twice as many for a scan */
    struct symbol *in, *out;
    struct coll_round *now;
    struct symbol *letters[MOST]; /* blocks that each participant has sent in this round */
    uint32_t total;
    uint32_t sent[MOST], got[MOST]; /* how many blocks each participant has sent and got */
};

/* A participant's own data for block `what`. */
struct symbol symbol_of(uint32_t participant, uint32_t what);

bool symbol_holds(const struct symbol *s, uint32_t participant);

/* Whether the symbol holds exactly the data of these participants for block `what`, and the sum of
 * their values. */
void check_set(const struct symbol *s, uint32_t from, uint32_t to, uint32_t what);
void check_sum(const struct symbol *s, uint32_t from, uint32_t to, uint32_t what);

/* Participants without data, `width` blocks each. */
void scene_start(struct scene *s, const struct coll_algorithm *algorithm, struct coll_shape shape,
                 uint32_t width);
void scene_end(struct scene *s);

struct symbol *scene_block(struct symbol *data, const struct scene *s, uint32_t me, uint32_t b);

/* scene_round carries out one round, scene_run all of them. */
void scene_round(struct scene *s, uint32_t r);
void scene_run(struct scene *s);

/* Returns how many of the letters are with `peer`. `blocks` gets the blocks of the last such
 * letter, `place` their place among the blocks of all letters. */
uint32_t letters_with(const struct coll_letter *letters, uint32_t count, uint32_t peer,
                      struct coll_range *blocks, uint32_t *place);

#endif
