/*
 * Functions that the files of teams.h share: they find, open and end gathers, and note the next
 * step that is due for a gather. Thread: the thread that owns the struct (control).
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
    CONFIRMED = 4, /* the node has confirmed that the gather has ended */
};

/* ---- gathers.c ------------------------------------------------------------------------------- */

/* The list with all gathers of one parent. */
struct teams_gather **gathers_bucket(struct teams *t, const struct teams_key *key);
bool gather_is_of_job(const struct teams_gather *g, const struct directory_id *id);
bool gather_is_of_parent(const struct teams_gather *g, const struct teams_key *key);
/* Finds a gather; NULL: there is none. */
struct teams_gather *gather_find(struct teams *t, const struct teams_key *key);
/* Opens a gather for this call, which is its first. -ENOSPC, -EDQUOT, -ENOMEM. */
int gather_open(struct teams *t, const struct teams_key *key, const struct teams_call *call,
                struct teams_gather **out);
/* Queues the gather for teams_take_due: something is due, or the gather may be forgotten. */
void gather_look_at(struct teams *t, struct teams_gather *g);
void gather_make_due(struct teams *t, struct teams_gather *g, enum teams_due due);

/* ---- calls.c --------------------------------------------------------------------------------- */

/* Frees the refusals of a job that has ended: the next job of its name counts its calls anew. */
void refusals_forget(struct teams *t, const struct directory_id *id);

/* ---- ends.c ---------------------------------------------------------------------------------- */

/* Ends a gather with this status and a text that says why. A second call does nothing. */
void gather_end(struct teams *t, struct teams_gather *g, int status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Forms the new teams if all members have called or are gone. */
void gather_group_if_whole(struct teams *t, struct teams_gather *g);
void gather_member_gone(struct teams *t, struct teams_gather *g, struct teams_member *m);
/* Marks the members whose ranks left before the gather began. */
void gather_find_gone(struct teams *t, struct teams_gather *g);

/* ---- members.c ------------------------------------------------------------------------------- */

/* Whether the gather waits for members on this node. */
bool gather_expects(const struct teams *t, const struct teams_gather *g, uint32_t node);

#endif
