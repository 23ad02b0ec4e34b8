/* Waiting for what was submitted. Thread: the one that owns the context. */
#ifndef PWC_CLIENTLIB_FLUSH_H
#define PWC_CLIENTLIB_FLUSH_H

#include "clientlib/attach/context.h"

/* Blocks until all that was submitted towards the peer of `remote` has ended: as pwc_flush. */
int flush_peer(struct pwc_ctx *ctx, const struct pwc_remote *remote);

#endif
