/*
 * The roster of a team: which context is which member, and which engine serves it.
 *
 * Members are listed in runs: consecutive ranks of the job, with one context number, served by one
 * engine. A participant is an engine with all its members; participants are numbered in the order
 * of their lowest team ranks. Data between engines is ordered by participant, then by member: the
 * position of a rank in this order is its *place*. If the members of each participant are
 * consecutive, places are ranks.
 *
 * Thread: the one that owns the context. Never changes once the team is formed.
 */
#ifndef PWC_CLIENTLIB_ROSTER_H
#define PWC_CLIENTLIB_ROSTER_H

#include <stdbool.h>
#include <stdint.h>
#include "pwc/team.h"

struct roster_run {
    uint32_t first;       /* team rank */
    uint32_t count;       /* number of members */
    uint32_t rank;        /* the first member's rank in the job */
    uint32_t context;     /* context number of all members */
    uint32_t node;        /* the node that serves them */
    uint32_t engine;      /* the engine of that node */
    uint32_t participant; /* filled in by roster_settle */
};

struct roster {
    struct roster_run *runs; /* by team rank */
    uint32_t run_count;
    uint32_t size; /* members */
    uint32_t participants;
    uint32_t fullest;     /* members of the participant that has the most */
    uint32_t here;        /* members of our participant */
    uint32_t participant; /* our participant */
    uint32_t *places;     /* by rank; NULL: places are ranks */
};

/* Takes `runs`, allocated by malloc, whose `first` and `participant` are not filled in yet. Finds
 * the participants, and the participant of member `me`. -ENOMEM; -EPROTO: the runs make no sense.
 * The roster owns the runs in any case. */
int roster_settle(struct roster *r, struct roster_run *runs, uint32_t count, uint32_t me);
void roster_free(struct roster *r);

/* The run of a member; `rank` is below `size`. */
const struct roster_run *roster_run(const struct roster *r, uint32_t rank);

/* The team rank of a member of our participant, by its number in the area. */
uint32_t roster_member(const struct roster *r, uint32_t member);

static inline uint32_t roster_place(const struct roster *r, uint32_t rank)
{
    return r->places ? r->places[rank] : rank;
}

/* Whether the members of each participant are consecutive. */
static inline bool roster_in_blocks(const struct roster *r)
{
    return !r->places;
}

static inline pwc_peer roster_peer(const struct roster *r, uint32_t rank)
{
    const struct roster_run *run = roster_run(r, rank);

    return pwc_peer_of(run->rank + (rank - run->first), run->context);
}

#endif
