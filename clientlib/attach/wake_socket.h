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
/* Adds the neighbours that have appeared, up to this count of changes, and forgets those that have
 * gone. */
void neighbours_update(struct pwc_ctx *ctx, uint32_t changes);
/* The update for a call that is no probe. While the program may poll the descriptor, new neighbours
 * wait for the next probe: to add them would take the bytes that have made the descriptor
 * readable. */
void neighbours_update_beside_poll(struct pwc_ctx *ctx);

#endif
