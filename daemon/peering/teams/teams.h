/*
 * Forms teams at their job's home: it gathers the calls of a parent's members, groups and numbers
 * them, and starts the new teams on all nodes together.
 *
 *     GATHERING --all have called--> FORMING --all nodes ready--> ENDED --acknowledged--> forgotten
 *         \                             \--a node fails------------^
 *          \--a member is gone, or calls do not fit----------------^
 *
 * A gather is what the members of one parent have asked for with one number of call. The parent is
 * a team, or the world: the contexts with one number, of all ranks of the job. The home keeps no
 * teams: each call says how large the parent is, and the first caller's node names its members. The
 * directory knows the members of the world, and which ranks have left. An error ends the gather for
 * every member once, also for members that call later.
 *
 * A home that was restarted knows nothing of earlier gathers, and members that were answered do not
 * call again. So the home asks the nodes of members that have not called, and a gather that has
 * ended on one of these nodes ends in the same way for all. This costs one frame for each node and
 * call, in addition to the call and the four frames that form the team; a node that knows no answer
 * sends none. A node whose members have all left has forgotten their answers. Then a shrink that
 * had failed forms a team of the members that are left, which is what they ask for, and any other
 * call fails, because members are gone.
 *
 * Frames to be sent are "due": after each call into this module, the owner takes what is due until
 * nothing is left.
 *
 * Pure: no clock or socket, and memory comes from the caller. No function trusts its arguments,
 * which come from other nodes. Thread: the thread that owns the struct (control).
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
#define TEAMS_REFUSALS    64u /* how many are remembered */
#define TEAMS_NONE        UINT32_MAX

enum teams_kind {
    TEAMS_SPLIT = 0,
    TEAMS_BY_NODE = 1,
    TEAMS_SHRINK = 2,
};

/* Names a gather. */
struct teams_key {
    struct directory_id id;
    uint64_t parent;  /* 0: the world */
    uint32_t context; /* the number of the world's contexts; else 0 */
    uint32_t call;
};

/* One member's call. */
struct teams_call {
    uint32_t from;    /* the node that sent the call */
    uint32_t size;    /* of the parent */
    uint32_t at;      /* the member's rank in the parent */
    uint32_t rank;    /* the member's rank in the job */
    uint32_t context; /* number of the context that is to be a member */
    uint32_t kind;    /* enum teams_kind */
    int32_t color;    /* below 0: the member is in no new team */
    int32_t key;
    uint32_t window;
    int32_t status;  /* negative: the member's node cannot let it take part */
    const char *why; /* the reason for the status, in words */
};

/* How a member's last call over a parent has ended. */
struct teams_answer {
    uint32_t calls; /* how many calls have ended; 0: none */
    int32_t status; /* of the last one */
};

/* How a call ends for all its members, when one of them has this answer. False: the call has not
 * ended. */
bool teams_answer_ends(struct teams_answer last, uint32_t call, int *status);

/* Members with consecutive team ranks and job ranks, the same context number, and the same
 * engine. */
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

/* A member of a parent. The array is sorted by rank in the parent, and from FORMING on in the order
 * of the new teams. */
struct teams_member {
    uint32_t rank;   /* of the job; TEAMS_NONE: not known yet */
    uint32_t node;   /* TEAMS_NONE: not known yet */
    uint16_t engine; /* engine, context, color and key are those of the member's call */
    uint16_t state;  /* enum teams_state */
    uint32_t at, context;
    int32_t color, key;
};

/* A gather. Owned by struct teams. */
struct teams_gather {
    struct teams_gather *next;  /* in the same bucket */
    struct teams_gather *later; /* in the list struct teams.look, if `queued` */
    bool queued;
    uint32_t uid;
    char job[DIRECTORY_NAME_MAX];
    uint64_t parent;
    uint32_t context, call;
    uint32_t phase; /* enum teams_phase */
    uint32_t due;   /* enum teams_due */
    uint32_t kind, window, size;
    uint32_t called, gone; /* members */
    uint32_t asked;        /* the node that was asked to name the members; TEAMS_NONE: none */
    uint32_t named;        /* members named so far; `size`: all */
    struct teams_member *members;
    uint8_t *nodes;            /* by node: enum node_bits of teams_private.h */
    uint32_t involved;         /* how many nodes have members that have called */
    uint32_t ready, confirmed; /* how many involved nodes are ready, and have confirmed */
    uint64_t number;           /* of the first new team; other new teams have the next numbers */
    int32_t status;
    char why[TEAMS_WHY_MAX];
    bool over; /* the job is gone */
};

/* A gather for which there was no room: its other members get the same error. */
struct teams_refusal {
    uint32_t uid;
    char job[DIRECTORY_NAME_MAX];
    uint64_t parent;
    uint32_t context, call;
    int status; /* 0: the entry is free */
};

struct teams {
    const struct directory_memory *memory;
    const struct directory *directory; /* the directory of this home */
    uint32_t node;                     /* this node */
    uint32_t node_count;
    bool alone;       /* there is only one user, who need not leave anything free */
    uint64_t counted; /* the last number that was given to a team */
    uint32_t gathers;
    uint64_t bytes;
    struct teams_gather *first[TEAMS_BUCKETS];
    struct teams_gather *look, **look_tail; /* gathers with something due, or to be forgotten */
    struct teams_refusal refusals[TEAMS_REFUSALS];
    uint32_t refused; /* gathers refused so far; `refusals` has the latest */
};

/* Numbers of teams count from `from`, which is higher than any number of an earlier process. */
void teams_init(struct teams *t, const struct directory_memory *memory,
                const struct directory *directory, uint32_t node, uint64_t from);
void teams_clear(struct teams *t);

/* Takes a member's call. 0: what follows will be due. 1: the caller sends to the node again what it
 * has been sent, which depends on the phase of *out. A negative errno: the call is not taken, and
 * only its node gets the error: -EPERM (the rank does not live there), -EHOSTDOWN, -ENOTSUP,
 * -EINVAL, -EDQUOT, -ENOSPC, -ENOMEM. */
int teams_call(struct teams *t, const struct teams_key *key, const struct teams_call *call,
               struct teams_gather **out);
/* Takes the members of the parent from the node that was asked: `count` runs, which follow the
 * first `from_member` members. */
void teams_name(struct teams *t, const struct teams_key *key, uint32_t node, uint32_t from_member,
                const struct teams_run *runs, uint32_t count, bool last);
/* Takes a node's report. Its engines have all new teams, from the number `first` on, or `status`
 * says why not. `ended`: TeamStart has arrived there, with this status; where this home still
 * gathers, an earlier process of the home has sent it. */
void teams_ready(struct teams *t, const struct teams_key *key, uint32_t node, uint64_t first,
                 int status, const char *why, bool ended);
/* Takes a node's report that its member with this rank has left `parent`; rank TEAMS_NONE: all
 * members on that node have left. `last` is the answer to the member's last call: where this home
 * still waits for that call, an earlier process of the home has answered it. */
void teams_member_gone(struct teams *t, const struct directory_id *id, uint64_t parent,
                       uint32_t rank, uint32_t node, struct teams_answer last);
/* Notes that a rank has left its job, as the directory knows. With the last rank, the job's gathers
 * are over, and its refusals are forgotten. */
void teams_rank_gone(struct teams *t, const struct directory_id *id, uint32_t rank);
/* Notes that a node is given up, after its ranks have left. */
void teams_node_lost(struct teams *t, uint32_t node);

/* Takes the next gather with something due, and writes what is due. NULL: nothing is due. The
 * gather exists until the next call of this function. */
struct teams_gather *teams_take_due(struct teams *t, enum teams_due *due);
/* Iterates over the gathers in which a node takes part, or may: start with NULL. */
struct teams_gather *teams_next_of_node(const struct teams *t, uint32_t node,
                                        const struct teams_gather *after);

/* Iterates over the nodes of members that have called, from node *at on; TEAMS_NONE at the end. */
uint32_t teams_next_node(const struct teams *t, const struct teams_gather *g, uint32_t *at);
/* Iterates over the nodes of members that have not called, from member *at on; a node may come
 * several times. */
uint32_t teams_next_expected(const struct teams *t, const struct teams_gather *g, uint32_t *at);

/* Iterates over the new teams of a gather: start with {0}. False: there are no more. */
struct teams_group {
    uint64_t number;
    uint32_t first, count; /* the team's members in gather->members */
    uint32_t made;         /* how many teams were found so far */
};
bool teams_next_group(const struct teams_gather *g, struct teams_group *group);
/* Writes at most `room` runs, from the team's member *at on. Returns their number; 0: there are no
 * more. */
uint32_t teams_runs(const struct teams_gather *g, const struct teams_group *group, uint32_t *at,
                    struct teams_run *runs, uint32_t room);

#endif
