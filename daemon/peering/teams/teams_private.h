/*
 * Shared by the files of teams.h: gathers are found, opened and forgotten; what is due; how they
 * end. Thread: that of the struct's owner (control).
 */
#ifndef PWC_PEERING_TEAMS_PRIVATE_H
#define PWC_PEERING_TEAMS_PRIVATE_H

#include "daemon/peering/teams/teams.h"

enum teams_state {
    EXPECTED = 0,
    CALLED,
    GONE,
};

enum node_bits {
    INVOLVED = 1,
    READY = 2,
    CONFIRMED = 4, /* that the gather has ended */
};

/* ---- gathers.c ------------------------------------------------------------------------------- */

/* The list that all gathers of one parent are in. */
struct teams_gather **gathers_bucket(struct teams *t, const struct teams_key *key);
bool gather_is_of_job(const struct teams_gather *g, const struct directory_id *id);
bool gather_is_of_parent(const struct teams_gather *g, const struct teams_key *key);
/* NULL: there is none. */
struct teams_gather *gather_find(struct teams *t, const struct teams_key *key);
/* A gather for this call, which is its first. -ENOSPC, -EDQUOT, -ENOMEM. */
int gather_open(struct teams *t, const struct teams_key *key, const struct teams_call *call,
                struct teams_gather **out);
/* The gather is looked at: something is due, or it is to be forgotten. */
void gather_look_at(struct teams *t, struct teams_gather *g);
void gather_make_due(struct teams *t, struct teams_gather *g, enum teams_due due);

/* ---- ends.c ---------------------------------------------------------------------------------- */

/* Ends a gather with this status, and a text of why; once. */
void gather_end(struct teams *t, struct teams_gather *g, int status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Forms the new teams when all members have called or are gone: those that a shrink leaves out are
 * known only when all are named. */
void gather_group_if_whole(struct teams *t, struct teams_gather *g);
void gather_member_gone(struct teams *t, struct teams_gather *g, struct teams_member *m);
/* Ranks that left before the gather began. */
void gather_find_gone(struct teams *t, struct teams_gather *g);

/* ---- members.c ------------------------------------------------------------------------------- */

/* Whether members there are waited for. */
bool gather_expects(const struct teams *t, const struct teams_gather *g, uint32_t node);

#endif
