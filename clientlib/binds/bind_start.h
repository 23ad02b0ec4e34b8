/*
 * Binds that do not block (pwc_bind_start).
 *
 *     pwc_bind_start --> under way --> answered, refused, or too late --> binds_progress --> ended
 *                            |                                                             ^
 *                            +--> pwc_unbind: -ECANCELED ----------------------------------+
 *
 * The library adds a local event for the end of a bind, or notes the end in the bind's request.
 * Until then the remote is unbound (unbound.h).
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_BIND_START_H
#define PWC_CLIENTLIB_BIND_START_H

#include "clientlib/attach/context.h"

/* Ends the binds that have been answered, or whose time is over. Makes at least one system call. */
void binds_take(struct pwc_ctx *ctx);

/* Called whenever a context takes what has arrived; costs nothing while no bind is under way. */
static inline void binds_progress(struct pwc_ctx *ctx)
{
    if (__builtin_expect(ctx->binds.first != NULL, 0))
        binds_take(ctx);
}

/* The first deadline of a bind under way; DEADLINE_NEVER: there is none. */
int64_t binds_deadline(const struct pwc_ctx *ctx);
/* Whether a bind of this peer is under way. */
bool binds_await(const struct pwc_ctx *ctx, pwc_peer peer);
/* Ends a bind that is under way, with -ECANCELED if no answer has arrived. */
void binds_cancel(struct pwc_remote *remote);
/* Called before the context ends: remotes that the daemon still makes are given back. The program
 * sees no end of these binds. */
void binds_withdraw(struct pwc_ctx *ctx);
/* Frees the binds that are left, when none is under way any more, or the link is closed. */
void binds_free(struct pwc_ctx *ctx);

#endif
