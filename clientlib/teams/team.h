/*
 * A team, as a member sees it: the roster, the area that it shares with the members of its engine,
 * the calls that have not ended, and their *steps*, each of which is one instance of the area. A
 * small call is one step. A longer call is cut into slices, one step for each; if members have
 * different lengths, a first step finds the longest. Steps begin and end in the order of calls; a
 * call that cannot begin yet begins within a later probe.
 *
 *     call.c       accepts calls, with all that their end needs
 *     step.c       cuts calls into steps, and begins these: part, arrival, submission
 *     work.c       moves data: a member's part in, the last one's work, results out
 *     progress.c   ends steps and calls; sleepers
 *     spec.c       checks the callers' descriptions
 *     reason.c     why a team is broken, in words
 *     again.c      the calls of persistent requests
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

/* The `count` of the barrier by which members wait for one another in pwc_team_free: so that it
 * matches no other barrier. */
#define TEAM_FREEING 1u

/* A collective, as its caller describes it. */
struct team_spec {
    uint8_t kind;                       /* enum team_kind */
    uint8_t code;                       /* of a fold: proto/word_abi.h */
    uint32_t root;                      /* team rank; 0: the kind has none */
    uint64_t count;                     /* elements; for kinds without a type, bytes */
    uint64_t length;                    /* bytes of one operand or block; 0 for kinds whose name
                                           ends in v, as gatherv */
    uint64_t own;                       /* for kinds in v: bytes of this member's own block */
    const void *in;                     /* the input, in place or not */
    void *out;                          /* NULL: nothing is received */
    const size_t *in_lens, *in_offsets; /* for kinds in v: of the blocks, by rank */
    const size_t *out_lens, *out_offsets;
    pwc_fold *fold; /* TEAM_USER: the program's operation on elements */
    void *arg;
    size_t element; /* TEAM_USER: bytes of an element */
};

/* A call that has not ended. */
struct team_call {
    struct team_spec spec;
    uint64_t signature;
    uint64_t whole;    /* bytes to cut into slices: the longest block */
    uint64_t next;     /* where the next slice begins */
    uint64_t lid;      /* by value, if lid_size is 0 */
    uint32_t request;  /* number of the request that it ends; REQUEST_NONE: it has a lid */
    uint16_t lid_size; /* bytes of the lid in pwc_team.ids */
    bool asks;         /* a step must find `whole` first */
    bool asked;        /* the step that finds `whole` has begun */
    bool silent;       /* the lid is shown only if the call fails */
    bool unshown;      /* the end is not shown, and has no room: the library waits for it */
    bool persistent;   /* the request is persistent */
};

/* A step of a call, which is an instance of the area. */
struct team_step {
    struct team_call *call;
    uint64_t offset, length; /* of the slice, in each operand or block */
    uint64_t turn;           /* for a step with a data row: its number among such steps */
    uint8_t shape;           /* enum team_kind: its row of the table in team_abi.h */
    uint8_t way;             /* enum team_way */
    bool asks;               /* the step finds the longest block: its result is the call's
                                `whole` */
    bool last;               /* the last step of its call */
};

struct pwc_team {
    struct pwc_ctx *ctx;
    struct pwc_team *next;        /* in the context's list */
    struct pwc_team *next_active; /* in the list of active teams */
    uint64_t number;
    uint32_t handle; /* the daemon's */
    uint32_t rank;
    uint32_t me; /* member of the area */
    uint32_t window;
    uint32_t joins;      /* team calls that this member has made over this team */
    uint32_t persistent; /* persistent requests of this team */
    struct roster roster;
    struct mapping mapping;
    struct team_area area;
    uint32_t slice[TEAM_KINDS];       /* by shape: the longest slice that fits into the area; 0:
                                         none */
    uint64_t called;                  /* number of calls made */
    uint64_t whole;                   /* number of calls whose steps have all begun */
    uint64_t over;                    /* number of calls that have ended */
    uint64_t begun;                   /* number of steps (instances) that have begun */
    uint64_t ended;                   /* number of steps that have ended */
    uint64_t turns;                   /* steps that took a data row */
    uint64_t used_by[TEAM_DATA_ROWS]; /* by data row: the last instance that used it */
    int status;                       /* 0, or why the team is broken */
    bool active;
    bool wake_due;               /* the wake-up of sleepers could not be submitted yet */
    struct submit_record report; /* why the team is to break, for the daemon, until it is submitted;
                                    its kind is 0: there is none */
    bool ending;                 /* calls are being ended, and the program's fold may be running */
    bool leaving;                /* the barrier of pwc_team_free is under way */
    uint8_t *ids;                /* PWC_CID_MAX bytes for each call; NULL until a lid has bytes */
    struct team_call *calls;
    struct team_step *steps;     /* by instance, in the order of rows */
    struct pwc_i64_at vote[2];   /* on the last window over the team: this member's vote, and the
                                    result */
    struct pwc_window *deserted; /* windows that were given up while a call for them was under
                                    way */
    char text[256];
};

/* Whether one engine serves all members: then the last to come also does the daemon's work. */
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

/* Whether only the root gives data, so that the root's part is sent on before the others arrive. */
static inline bool team_root_gives(uint8_t shape)
{
    return shape == TEAM_BCAST || shape == TEAM_SCATTER;
}

/* ---- work.c ---------------------------------------------------------------------------------- */

/* Copies the member's own part into the area. */
void work_give(const struct pwc_team *t, uint64_t sequence);
/* Copies the root's data to where the engine looks for it, or to the result if the engine has all
 * members. */
void work_give_root(const struct pwc_team *t, uint64_t sequence);
/* The work of the last to come: makes the data that the engine gives, or the result if the engine
 * has all members. */
void work_combine(const struct pwc_team *t, uint64_t sequence);
/* Whether this member receives nothing: then its step has ended when its part is given. */
bool work_only_gives(const struct pwc_team *t, const struct team_step *step);
/* Copies the result to the caller's memory. */
void work_take(const struct pwc_team *t, uint64_t sequence);

/* ---- spec.c ---------------------------------------------------------------------------------- */

/* Greater lengths are refused, because nothing of this size can be moved. */
#define SPEC_COUNT_MAX (UINT64_C(1) << 40)

/* Bytes that this member receives from one call. */
uint64_t spec_received(const struct pwc_team *t, const struct team_spec *spec);
/* Checks a description, and fills in the members that follow from others: 0, -EINVAL, -EMSGSIZE. */
int spec_settle(const struct pwc_team *t, struct team_spec *spec);
uint64_t spec_signature(const struct team_spec *spec);
/* For kinds in v: the longest block that this member knows of. */
uint64_t spec_longest(const struct pwc_team *t, const struct team_spec *spec);
/* The row of the table in team_abi.h for a kind. */
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
/* Whether the next step can begin. */
bool team_can_begin(const struct pwc_team *t);
/* Begins all steps that can begin, in the order of calls. */
void team_begin_steps(struct pwc_team *t);

/* ---- call.c, progress.c, reason.c ------------------------------------------------------------ */

/* Accept a collective. team_call's ends with a local event or a plain request, team_call_again's
 * with the persistent request `r`, which is started; the end of team_call_unshown's is shown to
 * nobody. Results as of the public calls. */
int team_call(struct pwc_team *t, struct team_spec spec, pwc_cid lid, unsigned flags);
int team_call_unshown(struct pwc_team *t, const struct team_spec *spec);
int team_call_again(struct pwc_team *t, const struct team_spec *spec, struct pwc_request *r);

/* Ends steps and calls that have ended, and begins steps that can begin. */
void team_progress(struct pwc_team *t);
/* Asks the daemon to wake sleeping members. */
void team_wake(struct pwc_team *t);
/* Adds the team to the active ones, which progress looks at. */
void team_activate(struct pwc_team *t);
/* Marks the team as broken, unless it already is. */
void team_fail(struct pwc_team *t, int status);
/* As team_fail, for a reason that the daemon does not know: the daemon then breaks the team for
 * all. */
void team_report(struct pwc_team *t, const struct team_reason *reason);
/* Reports that the area makes no sense, and marks the team as broken, by -EPROTO. */
void team_distrust(struct pwc_team *t);
/* Whether something for the daemon could not be submitted yet. */
bool team_owes(const struct pwc_team *t);
/* Submits what could not be submitted yet, if there is room. */
void team_pay(struct pwc_team *t);

/* Keeps a text for pwc_team_error_text, and returns `error`. */
int team_refuse(struct pwc_team *t, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Makes the text that says why the area is broken. */
void team_explain(struct pwc_team *t, const struct team_reason *reason);

/* ---- meet.c ---------------------------------------------------------------------------------- */

/* Waits until all calls that this member has made have ended: 0, the team's error, -ETIMEDOUT after
 * the client's timeout, or an error that makes waiting useless. */
int team_finish(struct pwc_team *t);
/* Makes a call, waits for room where needed, and then waits as team_finish. */
int team_call_to_end(struct pwc_team *t, const struct team_spec *spec);
/* As team_call_to_end, for a caller that tries again after an error. *calls is 0 at first. When the
 * collective has been called, *calls is the number of calls up to it, and trying again waits for
 * the same collective. */
int team_call_or_resume(struct pwc_team *t, const struct team_spec *spec, uint64_t *calls);

/* ---- drop.c ---------------------------------------------------------------------------------- */

/* Frees the team in this process. */
void team_drop(struct pwc_team *t);
/* Reports to the daemon that this context is no longer a member. `broken`: it could not take part,
 * so the daemon breaks the team. */
void team_leave(struct pwc_ctx *ctx, uint64_t number, bool broken);

/* ---- again.c --------------------------------------------------------------------------------- */

/* The call that a persistent request makes when it is started. */
struct team_again {
    struct pwc_team *team;
    struct team_spec spec;
};

/* Makes a persistent request: 0, or as spec_settle, -ENOMEM. */
int team_make_again(struct pwc_team *t, struct team_spec spec, pwc_cid lid, pwc_request **out);

#endif
