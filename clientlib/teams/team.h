/*
 * A team, as its member sees it: the roster, the area that it shares with the members of its
 * engine, the calls that have not ended, and their *steps*, each of which is one instance of the
 * area. A small call is one step. A longer one is cut into slices, a step each; where members do
 * not share its lengths, a step before finds the longest. Steps begin and end in the order of
 * calls; a call whose turn has not come begins within a later probe.
 *
 *     call.c       takes calls, with all that their end needs
 *     step.c       cuts calls into steps, and begins these: part, arrival, submission
 *     work.c       moves data: a member's part in, the last one's work, results out
 *     progress.c   ends steps and calls; sleepers
 *     spec.c       what callers describe, checked
 *     reason.c     why a team is broken, in words
 *     again.c      what persistent requests do
 *     form.c       makes teams; free.c and drop.c end them
 *     meet.c       waits, for calls that block
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_TEAM_H
#define PWC_CLIENTLIB_TEAM_H

#include "clientlib/attach/context.h"
#include "clientlib/teams/roster.h"
#include "pwc/collective.h"
#include "shm_ring/team.h"

/* A collective, as its caller describes it. */
struct team_spec {
    uint8_t kind;                       /* enum team_kind */
    uint8_t code;                       /* of a fold: proto/word_abi.h */
    uint32_t root;                      /* team rank; 0 where there is none */
    uint64_t count;                     /* elements; of kinds without a type, bytes */
    uint64_t length;                    /* of one operand or block, in bytes; of the kinds in v 0 */
    uint64_t own;                       /* of the block that is this member's alone */
    const void *in;                     /* where the input stands, in place or not */
    void *out;                          /* NULL: nothing is received */
    const size_t *in_lens, *in_offsets; /* of blocks by rank, of the kinds in v */
    const size_t *out_lens, *out_offsets;
    pwc_fold *fold; /* TEAM_USER: the program's operation, on elements */
    void *arg;
    size_t element; /* of these */
};

/* A call that has not ended. */
struct team_call {
    struct team_spec spec;
    uint64_t signature;
    uint64_t whole;    /* bytes to cut: the longest block */
    uint64_t next;     /* where the next slice begins */
    uint64_t lid;      /* by value, where lid_size is 0 */
    uint32_t request;  /* number of the request that it ends; REQUEST_NONE: it has a lid */
    uint16_t lid_size; /* its bytes stand in pwc_team.ids */
    bool asks;         /* `whole` is to be found first; */
    bool asked;        /* the step for that has begun */
    bool silent;       /* the lid is shown only if the call fails */
    bool persistent;   /* the request is persistent */
};

/* A step of a call, which is an instance of the area. */
struct team_step {
    struct team_call *call;
    uint64_t offset, length; /* of the slice, in each operand or block */
    uint64_t turn;           /* for a step by a data row: its number among such steps */
    uint8_t shape;           /* enum team_kind: the columns of team_abi.h that it goes by */
    uint8_t way;             /* enum team_way */
    bool asks;               /* for the longest block; its result is the call's `whole` */
    bool last;               /* of its call */
};

struct pwc_team {
    struct pwc_ctx *ctx;
    struct pwc_team *next;        /* of the context */
    struct pwc_team *next_active; /* links teams in which something is under way */
    uint64_t number;
    uint32_t handle; /* the daemon's */
    uint32_t rank;
    uint32_t me; /* member of the area */
    uint32_t window;
    uint32_t joins;      /* team calls that this member has made over this team */
    uint32_t persistent; /* requests that name this team */
    struct roster roster;
    struct mapping mapping;
    struct team_area area;
    uint32_t slice[TEAM_KINDS];       /* the longest that goes by the area, by shape; 0: none */
    uint64_t called;                  /* calls; */
    uint64_t whole;                   /* of these, those whose steps have all begun, */
    uint64_t over;                    /* and those that have ended */
    uint64_t begun;                   /* steps, by their instances; */
    uint64_t ended;                   /* begun - ended are under way */
    uint64_t turns;                   /* steps that took a data row */
    uint64_t used_by[TEAM_DATA_ROWS]; /* by data row: the last instance */
    int status;                       /* 0, or why the team is broken */
    bool active;
    bool lacks_room;     /* the last call has found none, */
    uint8_t lacking_way; /* for this enum team_way */
    bool wake_due;       /* sleepers are to be woken: not submitted yet */
    bool ending;         /* calls are being ended: a fold of the program may run */
    bool leaving;        /* the barrier of pwc_team_free is under way */
    uint8_t *ids;        /* PWC_CID_MAX bytes a call, once a lid of bytes is used */
    struct team_call *calls;
    struct team_step *steps;     /* by instance, as rows */
    struct pwc_i64_at vote[2];   /* on the last window over the team: this member's, and of all */
    struct pwc_window *deserted; /* windows whose calls were not waited for to their end */
    char text[256];
};

/* One engine serves all members: the last to come does the work of the daemon as well. */
static inline bool team_is_alone(const struct pwc_team *t)
{
    return t->roster.participants == 1;
}

static inline struct team_call *team_call_at(const struct pwc_team *t, uint64_t number)
{
    return &t->calls[number & t->area.row_mask];
}

static inline struct team_step *team_step_at(const struct pwc_team *t, uint64_t sequence)
{
    return &t->steps[sequence & t->area.row_mask];
}

static inline uint8_t *team_ids_of(const struct pwc_team *t, const struct team_call *call)
{
    return t->ids + (uint64_t)(call - t->calls) * PWC_CID_MAX;
}

/* Kinds whose data comes from the root alone: it passes on without the others. */
static inline bool team_root_gives(uint8_t shape)
{
    return shape == TEAM_BCAST || shape == TEAM_SCATTER;
}

/* ---- work.c ---------------------------------------------------------------------------------- */

/* The member's own part, into the area. */
void work_give(const struct pwc_team *t, uint64_t sequence);
/* The root's data, which the others need: to where the engine looks for it, or as the result. */
void work_give_root(const struct pwc_team *t, uint64_t sequence);
/* The last one's: what the engine gives, or the result where it has all members. */
void work_combine(const struct pwc_team *t, uint64_t sequence);
/* Nothing comes back to this member: its step has ended when its part is given. */
bool work_only_gives(const struct pwc_team *t, const struct team_step *step);
/* The result, to where the caller wants it. */
void work_take(const struct pwc_team *t, uint64_t sequence);

/* ---- spec.c ---------------------------------------------------------------------------------- */

/* Bytes that this member receives from one call. */
uint64_t spec_received(const struct pwc_team *t, const struct team_spec *spec);
/* Fills in what follows from the rest: 0, -EINVAL, -EMSGSIZE. */
int spec_settle(const struct pwc_team *t, struct team_spec *spec);
uint64_t spec_signature(const struct team_spec *spec);
/* The longest block that this member knows of, of those that members do not share. */
uint64_t spec_longest(const struct pwc_team *t, const struct team_spec *spec);
/* The columns of team_abi.h that a kind goes by. */
uint8_t spec_shape(const struct pwc_team *t, uint8_t kind);

/* The bytes of a block that the step's slice holds. */
static inline uint64_t spec_within(uint64_t block, const struct team_step *step)
{
    if (block <= step->offset)
        return 0;
    return block - step->offset < step->length ? block - step->offset : step->length;
}

/* ---- step.c ---------------------------------------------------------------------------------- */

/* Finds the slices of a new team. */
void team_find_slices(struct pwc_team *t);
/* The longest slice of a call, in whole elements; 0: none fits. */
uint64_t team_slice_max(const struct pwc_team *t, const struct team_spec *spec);
/* Whether the first step of a new call, which no other is before, has its row, data row, and room
 * for its records: 0, -EAGAIN, -EBUSY, -EPROTO, -ESHUTDOWN. */
int team_first_room(struct pwc_team *t, const struct team_call *call);
/* Whether the next step can begin. */
bool team_can_begin(const struct pwc_team *t);
/* Begins all steps that can, in the order of calls. */
void team_begin_steps(struct pwc_team *t);
/* Whether there is a row, and a data row where this way needs one: 0, -EAGAIN, -EPROTO. */
int team_has_room(const struct pwc_team *t, uint8_t way);

/* ---- call.c, progress.c, reason.c ------------------------------------------------------------ */

/* Takes a collective that ends by a local event or a plain request, or by the persistent request
 * `r`, which is started. As the public calls. */
int team_call(struct pwc_team *t, struct team_spec spec, pwc_cid lid, unsigned flags);
int team_call_again(struct pwc_team *t, const struct team_spec *spec, struct pwc_request *r);

/* Ends what has ended, and begins what can begin. */
void team_progress(struct pwc_team *t);
/* Has sleeping members woken. */
void team_wake(struct pwc_team *t);
/* Something of it is to be looked at from now on. */
void team_activate(struct pwc_team *t);
/* The team is broken from now on, if it was not before. */
void team_fail(struct pwc_team *t, int status);

/* Keeps a sentence for pwc_team_error_text, and returns `error`. */
int team_refuse(struct pwc_team *t, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Says why the area is broken. */
void team_explain(struct pwc_team *t, const struct team_reason *reason);

/* ---- meet.c ---------------------------------------------------------------------------------- */

/* Waits until all calls that this member has made have ended: 0, the team's error, -ETIMEDOUT after
 * the client's timeout, or why waiting is of no use. */
int team_finish(struct pwc_team *t);
/* Makes a call, also where it has to wait for room, and waits as team_finish. */
int team_call_to_end(struct pwc_team *t, const struct team_spec *spec);

/* ---- drop.c ---------------------------------------------------------------------------------- */

/* Frees what the team holds in this process. */
void team_drop(struct pwc_team *t);
/* The daemon: this context is no member any more. */
void team_leave(struct pwc_ctx *ctx, uint64_t number);

/* ---- again.c --------------------------------------------------------------------------------- */

/* The call that a persistent request makes when it is started. */
struct team_again {
    struct pwc_team *team;
    struct team_spec spec;
};

/* Makes a persistent request: 0, or as spec_settle, -ENOMEM. */
int team_make_again(struct pwc_team *t, struct team_spec spec, pwc_cid lid, pwc_request **out);

#endif
