/* Waiting for what was submitted. Thread: the one that owns the context. */
#ifndef PWC_CLIENTLIB_FLUSH_H
#define PWC_CLIENTLIB_FLUSH_H

#include "clientlib/attach/context.h"

/* Blocks until all that was submitted towards the peer of `remote` has ended, or the deadline has
 * passed: as pwc_flush. */
int flush_peer(struct pwc_ctx *ctx, struct pwc_remote *remote, int64_t deadline);

/* Whether all that this context has submitted, and each bind that it has started, has ended. An
 * operation with a slot ends when its event is collected. */
bool flush_has_ended(const struct pwc_ctx *ctx);

#endif
