/*
 * All teams of a context, for the parts of the library that take events and wait.
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

/* Whether some team waits for a member of the same engine, not for the daemon. */
bool teams_await_members(const struct pwc_ctx *ctx);

/* Called before the context sleeps, when its bell is armed. 1: something has ended, do not sleep;
 * 0. */
int teams_arm(struct pwc_ctx *ctx);
/* Called when the context is awake again. */
void teams_disarm(struct pwc_ctx *ctx);
/* Called when the session is over: ends all collectives; their requests end with -ESHUTDOWN. */
void teams_over(struct pwc_ctx *ctx);
/* Frees all teams, with the context. */
void teams_drop(struct pwc_ctx *ctx);

#endif
