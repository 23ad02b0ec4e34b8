/*
 * The wake socket: the daemon writes bytes that only wake, and a note with descriptors for each new
 * neighbour. session_shared.neighbours counts the changes among neighbours.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_WAKE_SOCKET_H
#define PWC_CLIENTLIB_WAKE_SOCKET_H

#include "clientlib/attach/context.h"

/* Reads all that is in the socket. Its hang-up ends the session. */
void wake_socket_read(struct pwc_ctx *ctx);

/* The daemon's count of changes among the neighbours. */
static inline uint32_t neighbour_changes(const struct pwc_ctx *ctx)
{
    return atomic_load_explicit(&ctx->channel.shared->neighbours, memory_order_acquire);
}
/* Whether neighbours have appeared or gone since neighbours_update. */
static inline bool neighbours_have_changed(const struct pwc_ctx *ctx)
{
    return neighbour_changes(ctx) != ctx->neighbour_changes_seen;
}
/* As neighbours_have_changed, for a call that is no probe. False while the program may poll the
 * descriptor: an update would take the bytes that have made it readable. */
static inline bool neighbours_wait_for_update(const struct pwc_ctx *ctx)
{
    return neighbours_have_changed(ctx) && !ctx->channel.neighbours.polled;
}
/* Adds the neighbours that have appeared, up to this count of changes, and forgets those that have
 * gone. */
void neighbours_update(struct pwc_ctx *ctx, uint32_t changes);

#endif
