/*
 * Which schedule a collective follows: the table of algorithms, and what configuration replaces.
 * Owns nothing, thread: any. All engines of a team must choose the same, so they choose by what all
 * of them know: kind, length and participants of the call.
 */
#ifndef PWC_ENGINE_COLL_TABLE_H
#define PWC_ENGINE_COLL_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include "daemon/engine/coll/schedule.h"
#include "proto/team_abi.h"

/* The first row counts that has the kind and is for a call of such a length by so many. */
struct coll_row {
    enum team_kind kind;
    uint64_t bytes_least; /* the call's length */
    uint32_t participants_most;
    const struct coll_algorithm *algorithm;
};

/* By kind, the algorithm that takes the place of all its rows, or NULL. Owned by the caller. */
struct coll_choices {
    const struct coll_algorithm *by_kind[TEAM_KINDS];
};

/* The rows by number, in their order; NULL behind the last. */
const struct coll_row *coll_row(size_t number);

/* The kind has this algorithm for all lengths from now on. -ENOENT: it has none with that name. */
int coll_replace(struct coll_choices *choices, enum team_kind kind, const char *name);

/* The algorithm of a call; NULL for a kind that is none. */
const struct coll_algorithm *coll_choose(const struct coll_choices *choices, enum team_kind kind,
                                         uint64_t bytes, uint32_t participants);

/* The most rounds of any call with up to `bytes`: what a team sets letters aside for. */
uint32_t coll_rounds_most(const struct coll_choices *choices, uint64_t bytes,
                          uint32_t participants);

#endif
