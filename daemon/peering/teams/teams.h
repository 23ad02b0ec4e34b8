/*
 * Teams at their job's home: calls of a parent's members are gathered, grouped and numbered, and
 * the new teams are started at once on all nodes.
 *
 *     GATHERING --all have called--> FORMING --all nodes ready--> ENDED --acknowledged--> forgotten
 *         \                             \--a node fails------------^
 *          \--a member is gone, or calls do not fit----------------^
 *
 * A gather is what the members of one parent have asked for with one number of call. The parent is
 * a team, or the world: one context number of all ranks of the job. The home keeps no
 * teams: each call says how large the parent is, and the first caller's node names its members;
 * where those of the world are, and which have left, the directory knows. An error ends the gather
 * for every member once, also for those that call later.
 *
 * A home that was restarted knows nothing of earlier gathers, and members that were answered do
 * not call again. So it asks the nodes of members that have not called, and a gather that has ended
 * at one of them ends so for all. That is one frame a node and call, beside the call and the four
 * frames that form the team, and a node without an answer sends none. A node whose members have all
 * left has forgotten what they were answered: then a shrink that had failed forms a team of those
 * that are left, which is what they ask for, and any other call fails, for members are gone.
 *
 * Frames to be sent are due: after each call into this module its owner takes those that are due,
 * until none is.
 *
 * Pure: no clock or socket, and memory comes from the caller. Nothing here trusts its arguments:
 * they come from other nodes. Thread: that of the struct's owner (control).
 */
#ifndef PWC_PEERING_TEAMS_H
#define PWC_PEERING_TEAMS_H

#include <stdbool.h>
#include <stdint.h>
#include "daemon/peering/directory.h"

#define TEAMS_WINDOW_MAX  4096u
#define TEAMS_GATHERS_MAX 4096u
#define TEAMS_BYTES_MAX   (UINT64_C(256) << 20) /* of all gathers */
#define TEAMS_BUCKETS     256u
#define TEAMS_WHY_MAX     192u
#define TEAMS_REFUSALS    64u /* that are remembered */
#define TEAMS_NONE        UINT32_MAX

enum teams_kind {
    TEAMS_SPLIT = 0,
    TEAMS_BY_NODE = 1,
    TEAMS_SHRINK = 2,
};

/* Which gather. */
struct teams_key {
    struct directory_id id;
    uint64_t parent;  /* 0: the world */
    uint32_t context; /* of the world's members; else 0 */
    uint32_t call;
};

/* One member's call. */
struct teams_call {
    uint32_t from;    /* the node that it came from */
    uint32_t size;    /* of the parent */
    uint32_t at;      /* rank in the parent */
    uint32_t rank;    /* of the job */
    uint32_t context; /* that is to be the new team's member */
    uint32_t kind;    /* enum teams_kind */
    int32_t color;    /* < 0: in no team */
    int32_t key;
    uint32_t window;
    int32_t status;  /* negative: its node cannot have it take part */
    const char *why; /* the reason that belongs to the status */
};

/* How the last of a member's calls over a parent has ended. */
struct teams_answer {
    uint32_t calls; /* that have ended; 0: none has */
    int32_t status; /* of the last one */
};

/* How a call ends for all its members when one of them has this answer. False: it has not ended. */
bool teams_answer_ends(struct teams_answer last, uint32_t call, int *status);

/* Members that follow one another in team rank, in job rank, and in one engine. */
struct teams_run {
    uint32_t rank, count, context, node, engine;
};

enum teams_phase {
    TEAMS_GATHERING = 1,
    TEAMS_FORMING,
    TEAMS_ENDED,
};

enum teams_due {
    TEAMS_NOTHING = 0,
    TEAMS_ASK_MEMBERS, /* TeamAsk with `members`, to gather->asked */
    TEAMS_ASK_ENDED,   /* TeamAsk, to each node by teams_next_expected */
    TEAMS_GROUP,       /* TeamGroup, to all nodes of the gather */
    TEAMS_START,       /* TeamStart, to all nodes of the gather */
};

/* A member of a parent; by rank in the parent, from FORMING on in the order of the new teams. */
struct teams_member {
    uint32_t rank;   /* of the job; TEAMS_NONE: not known yet */
    uint32_t node;   /* TEAMS_NONE: not known yet */
    uint16_t engine; /* as are context, color and key: of its call */
    uint16_t state;  /* enum teams_state */
    uint32_t at, context;
    int32_t color, key;
};

/* Owned by struct teams. */
struct teams_gather {
    struct teams_gather *next;  /* of the same bucket */
    struct teams_gather *later; /* to be looked at; by struct teams.look */
    bool queued;
    uint32_t uid;
    char job[DIRECTORY_NAME_MAX];
    uint64_t parent;
    uint32_t context, call;
    uint32_t phase; /* enum teams_phase */
    uint32_t due;   /* enum teams_due */
    uint32_t kind, window, size;
    uint32_t called, gone; /* members */
    uint32_t asked;        /* the node that names the members; TEAMS_NONE: none */
    uint32_t named;        /* members, so far; `size`: all */
    struct teams_member *members;
    uint8_t *nodes;            /* by node: enum node_bits of teams_private.h */
    uint32_t involved;         /* nodes with members that have called */
    uint32_t ready, confirmed; /* of these */
    uint64_t number;           /* of the first new team; the others' follow */
    int32_t status;
    char why[TEAMS_WHY_MAX];
    bool over; /* its job is gone */
};

/* A gather that there was no room for: its other members get the same error. */
struct teams_refusal {
    uint32_t uid;
    char job[DIRECTORY_NAME_MAX];
    uint64_t parent;
    uint32_t context, call;
    int status; /* 0: the entry is free */
};

struct teams {
    const struct directory_memory *memory;
    const struct directory *directory; /* of the same home */
    uint32_t node;                     /* this one */
    uint32_t node_count;
    bool alone;       /* there is one user: nothing is to be left free */
    uint64_t counted; /* teams numbered so far, and what they began from */
    uint32_t gathers;
    uint64_t bytes;
    struct teams_gather *first[TEAMS_BUCKETS];
    struct teams_gather *look, **look_tail; /* gathers with something due, or to be forgotten */
    struct teams_refusal refusals[TEAMS_REFUSALS];
    uint32_t refused; /* so far */
};

/* `from`: numbers of teams count from here. The number is higher than any of an earlier process. */
void teams_init(struct teams *t, const struct directory_memory *memory,
                const struct directory *directory, uint32_t node, uint64_t from);
void teams_clear(struct teams *t);

/* Takes a member's call. 0: what follows will be due; 1: the node is to be sent again what it has
 * been sent, by the phase of *out. Else nothing knows of the call, and its node alone gets the
 * error: -EPERM (the rank does not live there), -EINVAL, -EDQUOT, -ENOSPC, -ENOMEM. */
int teams_call(struct teams *t, const struct teams_key *key, const struct teams_call *call,
               struct teams_gather **out);
/* Members of the parent, by the node that was asked: `count` runs behind `from_member` members. */
void teams_name(struct teams *t, const struct teams_key *key, uint32_t node, uint32_t from_member,
                const struct teams_run *runs, uint32_t count, bool last);
/* A node has all new teams, from this number on, in its engines, or (status) has not. `ended`:
 * TeamStart has arrived, with this status; where this home still gathers, an earlier process of it
 * has sent that. */
void teams_ready(struct teams *t, const struct teams_key *key, uint32_t node, uint64_t first,
                 int status, const char *why, bool ended);
/* A member of `parent` has left it, says its node; rank TEAMS_NONE: all there have. `last` is the
 * answer to the member's last call: where this home still waits for that call, an earlier process
 * of it has answered. */
void teams_member_gone(struct teams *t, const struct directory_id *id, uint64_t parent,
                       uint32_t rank, uint32_t node, struct teams_answer last);
/* A rank of a job has left, the directory says; with the last one the job's gathers are over. */
void teams_rank_gone(struct teams *t, const struct directory_id *id, uint32_t rank);
/* A node is given up; its ranks have left before. */
void teams_node_lost(struct teams *t, uint32_t node);

/* The next gather with something due, which is then no longer due. NULL: nothing is. The gather
 * stays until the next call of this function. */
struct teams_gather *teams_take_due(struct teams *t, enum teams_due *due);
/* The gathers one after another that a node takes part in, or is to: start with NULL. */
struct teams_gather *teams_next_of_node(const struct teams *t, uint32_t node,
                                        const struct teams_gather *after);

/* The nodes of members that have called, from node *at on; TEAMS_NONE at the end. */
uint32_t teams_next_node(const struct teams *t, const struct teams_gather *g, uint32_t *at);
/* The nodes of members that have not, from member *at on; one may come several times. */
uint32_t teams_next_expected(const struct teams *t, const struct teams_gather *g, uint32_t *at);

/* New teams of a gather, one after another: start with {0}. False: there are no more. */
struct teams_group {
    uint64_t number;
    uint32_t first, count; /* of gather->members */
    uint32_t made;         /* teams up to this one */
};
bool teams_next_group(const struct teams_gather *g, struct teams_group *group);
/* At most `room` runs, from the team's member *at on. 0: there are no more. */
uint32_t teams_runs(const struct teams_gather *g, const struct teams_group *group, uint32_t *at,
                    struct teams_run *runs, uint32_t room);

#endif
