/*
 * Which schedule a collective follows: the table of algorithms, and what configuration replaces.
 * Owns nothing, thread: any. All engines of a team must choose the same, so they choose by what all
 * of them know: kind, data and participants of the call.
 */
#ifndef PWC_ENGINE_COLL_TABLE_H
#define PWC_ENGINE_COLL_TABLE_H

#include <stdint.h>
#include "daemon/engine/coll/schedule.h"
#include "proto/team_abi.h"

/* The number of rows of the table; also the number that means no row. */
enum { COLL_ROWS = 23 };

/* A call follows the first row that has its kind and serves this much data among this many
 * participants. */
struct coll_row {
    enum team_kind kind;
    uint64_t bytes_least; /* the larger of what a participant gives and gets: blocks_bytes */
    uint32_t participants_least, participants_most;
    bool uneven; /* only for numbers of participants that are no power of two */
    const struct coll_algorithm *algorithm;
};

/* By kind: the number plus 1 of the row whose algorithm replaces all rows of the kind; 0: none
 * does. Owned by the caller; may stand in the arena. */
struct coll_choices {
    uint8_t by_kind[TEAM_ALLTOALL + 1];
};

/* The rows by number, in their order; NULL after the last. */
const struct coll_row *coll_row(uint32_t number);

/* From now on the kind uses this algorithm for all lengths. -ENOENT: the kind has no algorithm of
 * that name. */
int coll_replace(struct coll_choices *choices, enum team_kind kind, const char *name);

/* Whether each kind's choice is a row of that kind, or none. */
bool coll_choices_valid(const struct coll_choices *choices);
/* The number of the row for a call; COLL_ROWS for an unknown kind. */
uint32_t coll_choose(const struct coll_choices *choices, uint32_t kind, uint64_t bytes,
                     uint32_t participants);

/* Whether this row serves calls among this many participants; then *first is the least data of
 * these calls, and *last the most. */
bool coll_reach(const struct coll_choices *choices, uint32_t number, uint32_t participants,
                uint64_t *first, uint64_t *last);

#endif
