/*
 * All teams of a context, as those parts of the library see them that take events and let time
 * pass.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_TEAMS_H
#define PWC_CLIENTLIB_TEAMS_H

#include "clientlib/attach/context.h"

/* Ends the collectives that have ended. */
void teams_progress_active(struct pwc_ctx *ctx);

static inline void teams_progress(struct pwc_ctx *ctx)
{
    if (ctx->teams.active)
        teams_progress_active(ctx);
}

/* Whether a member of the same engine is to do what some team waits for, and not the daemon. */
bool teams_await_members(const struct pwc_ctx *ctx);

/* Before the context sleeps, its bell armed: 1: something has ended, do not sleep; 0. */
int teams_arm(struct pwc_ctx *ctx);
/* The context is awake again. */
void teams_disarm(struct pwc_ctx *ctx);
/* The session is over: so are all collectives, whose requests end with -ESHUTDOWN. */
void teams_over(struct pwc_ctx *ctx);
/* Frees all teams, with the context. */
void teams_drop(struct pwc_ctx *ctx);

#endif
