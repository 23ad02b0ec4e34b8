/*
 * A window: a region of each rank of the job or of a team (or none), and a space that keeps its
 * notifications apart from those of other windows.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_WINDOW_H
#define PWC_CLIENTLIB_WINDOW_H

#include <stdlib.h>
#include "clientlib/attach/context.h"
#include "pwc/notify.h"

/* A rank's contribution to a new window: plain data, exchanged as it is. */
struct window_member {
    pwc_peer peer;          /* the context that it passes */
    struct pwc_key key;     /* of its region */
    uint32_t highest_space; /* the highest space that its context has had */
    int32_t regions;        /* 1, or 0: the rank passes none; a negative errno: the rank cannot take
                               part */
};
static_assert(sizeof(struct window_member) == 48, "window_member");

/* A member of a window over a team, found by its peer. */
struct window_place {
    pwc_peer peer;
    uint32_t rank;
};

struct pwc_window {
    struct pwc_ctx *ctx;
    struct pwc_team *team;   /* NULL: all ranks of the job */
    struct pwc_window *next; /* of the context */
    struct channel_space space;
    uint32_t size;                 /* ranks */
    struct window_member mine;     /* this rank's */
    struct window_member *members; /* by rank */
    pwc_remote **remotes;          /* by rank; NULL: not bound yet */
    struct window_place *places;   /* over a team: by peer */
    uint64_t barrier; /* over a team: its calls up to the barrier of pwc_window_free; 0: none yet */
    bool met;         /* all ranks have called pwc_window_free, or cannot call it any more */
};

/* Frees the window's memory. */
static inline void window_release(struct pwc_window *w)
{
    free(w->members);
    free(w->remotes);
    free(w->places);
    free(w);
}

/* Frees the window in this process. The context keeps its remotes. */
void window_free(struct pwc_window *w);

#endif
