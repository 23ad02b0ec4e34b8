/*
 * Binds that do not block (pwc_bind_start).
 *
 *     pwc_bind_start --> under way --> answered, refused, or too late --> binds_progress --> ended
 *                            |                                                             ^
 *                            +--> pwc_unbind: -ECANCELED ----------------------------------+
 *
 * An end is a local event of the library's own, or it is noted in the request that the bind was
 * given. Until then the remote is one of those that are not bound (unbound.h).
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_BIND_START_H
#define PWC_CLIENTLIB_BIND_START_H

#include "clientlib/attach/context.h"

/* Ends the binds that have been answered, or are too late: a system call at least. */
void binds_take(struct pwc_ctx *ctx);

/* In each look of a context at what has come; no cost where no bind is under way. */
static inline void binds_progress(struct pwc_ctx *ctx)
{
    if (__builtin_expect(ctx->binds.first != NULL, 0))
        binds_take(ctx);
}

/* When the next bind will be too late; DEADLINE_NEVER: none will. */
int64_t binds_deadline(const struct pwc_ctx *ctx);
/* Whether a bind of this peer is under way. */
bool binds_await(const struct pwc_ctx *ctx, pwc_peer peer);
/* Ends a bind that is under way now, with -ECANCELED where no answer has come. */
void binds_cancel(struct pwc_remote *remote);
/* The context is about to end: what the daemon makes for it is given back. No bind ends. */
void binds_withdraw(struct pwc_ctx *ctx);
/* Frees what is left, when nothing is under way any more, or the link is closed. */
void binds_free(struct pwc_ctx *ctx);

#endif
