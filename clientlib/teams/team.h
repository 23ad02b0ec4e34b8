/*
 * A team, as its member sees it: the roster, the area that it shares with the members of its
 * engine, and the collectives that are under way, each of which is one instance of the area.
 *
 *     call.c       begins a collective: checks, parts, arrival, submission
 *     work.c       moves data: a member's part in, the last one's work, results out
 *     progress.c   ends collectives, in the order of calls; sleepers
 *     spec.c       what callers describe, checked
 *     reason.c     why a team is broken, in words
 *     again.c      what persistent requests do
 *     form.c       makes teams; free.c and drop.c end them
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
    uint8_t kind;    /* enum team_kind */
    uint8_t code;    /* of a fold: proto/word_abi.h */
    uint32_t root;   /* team rank; 0 where there is none */
    uint64_t count;  /* elements; of kinds without a type, bytes */
    uint64_t length; /* of one operand or block, in bytes */
    const void *in;  /* where the input stands, in place or not */
    void *out;       /* NULL: nothing is received */
    pwc_fold *fold;  /* TEAM_USER: the program's operation */
    void *arg;
    size_t user_count; /* of its elements */
};

/* A collective that is under way. */
struct team_call {
    struct team_spec spec;
    uint64_t turn;     /* of a call by a data row: its number among those */
    uint64_t lid;      /* by value, where lid_size is 0 */
    uint32_t request;  /* number of the request that it ends; REQUEST_NONE: it has a lid */
    uint16_t lid_size; /* its bytes stand in pwc_team.ids */
    uint8_t shape;     /* enum team_kind: the columns of team_abi.h that it goes by */
    uint8_t way;       /* enum team_way */
    bool silent;       /* the lid is shown only if the call fails */
    bool persistent;   /* so is the request */
};

struct pwc_team {
    struct pwc_ctx *ctx;
    struct pwc_team *next;        /* of the context */
    struct pwc_team *next_active; /* of those that something is under way in */
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
    uint64_t begun;                   /* instances */
    uint64_t ended;                   /* the same; begun - ended are under way */
    uint64_t turns;                   /* calls that took a data row */
    uint64_t used_by[TEAM_DATA_ROWS]; /* by data row: the last instance */
    int status;                       /* 0, or why the team is broken */
    bool active;
    bool lacks_room;         /* the last call has found none, */
    uint8_t lacking_way;     /* for this enum team_way */
    bool wake_due;           /* sleepers are to be woken: not submitted yet */
    bool ending;             /* a fold of the program's runs */
    pwc_request *farewell;   /* of the barrier of pwc_team_free, once it has been called */
    uint8_t *ids;            /* PWC_CID_MAX bytes a call, once a lid of bytes is used */
    struct team_call *calls; /* by instance, as rows */
    char text[256];
};

/* One engine serves all members: the last to come does the work of the daemon as well. */
static inline bool team_is_alone(const struct pwc_team *t)
{
    return t->roster.participants == 1;
}

static inline struct team_call *team_call_at(const struct pwc_team *t, uint64_t sequence)
{
    return &t->calls[sequence & t->area.row_mask];
}

static inline uint8_t *team_ids_at(const struct pwc_team *t, uint64_t sequence)
{
    return t->ids + (sequence & t->area.row_mask) * PWC_CID_MAX;
}

/* Kinds whose data comes from the root alone: it passes on without the others. */
static inline bool team_root_gives(uint8_t kind)
{
    return kind == TEAM_BCAST || kind == TEAM_SCATTER;
}

/* ---- work.c --------------------------------------------------------------------------------- */

/* The member's own part, into the area. */
void work_give(const struct pwc_team *t, uint64_t sequence, const struct team_call *call,
               uint64_t signature);
/* The root's data, which the others need: to where the engine looks for it, or as the result. */
void work_give_root(const struct pwc_team *t, uint64_t sequence, const struct team_call *call);
/* The last one's: what the engine gives, or the result where it has all members. */
void work_combine(const struct pwc_team *t, uint64_t sequence, const struct team_call *call);
/* Nothing comes back to this member: its call has ended when its part is given. */
bool work_only_gives(const struct pwc_team *t, const struct team_call *call);
/* The result, to where the caller wants it: how many bytes. */
uint64_t work_take(const struct pwc_team *t, uint64_t sequence, const struct team_call *call);

/* ---- spec.c --------------------------------------------------------------------------------- */

/* What this member gives to one call, and receives, in bytes. */
uint64_t spec_given(const struct pwc_team *t, const struct team_spec *spec);
uint64_t spec_received(const struct pwc_team *t, const struct team_spec *spec);
/* Fills in what follows from the rest: 0, -EINVAL, -EMSGSIZE. */
int spec_settle(const struct pwc_team *t, struct team_spec *spec);
uint64_t spec_signature(const struct team_spec *spec);

/* ---- call.c, progress.c, reason.c ----------------------------------------------------------- */

/* Begins a collective that ends by a local event or a plain request, or by the persistent request
 * `r`, which is started. As the public calls. */
int team_call(struct pwc_team *t, struct team_spec spec, pwc_cid lid, unsigned flags);
int team_call_again(struct pwc_team *t, const struct team_spec *spec, struct pwc_request *r);

/* Whether the next call, by this way, has a row and a data row: 0, -EAGAIN, -EPROTO. */
int team_has_room(const struct pwc_team *t, uint8_t way);
/* Ends what has ended. */
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

/* ---- drop.c --------------------------------------------------------------------------------- */

/* Frees what the team holds in this process. */
void team_drop(struct pwc_team *t);
/* The daemon: this context is no member any more. */
void team_leave(struct pwc_ctx *ctx, uint64_t number);

/* ---- again.c -------------------------------------------------------------------------------- */

/* What a persistent request of a team does when it is started. */
struct team_again {
    struct pwc_team *team;
    struct team_spec spec;
};

/* Makes a persistent request: 0, or as spec_settle, -ENOMEM. */
int team_make_again(struct pwc_team *t, struct team_spec spec, pwc_cid lid, pwc_request **out);

#endif
