/*
 * Starts binds, each of which ends as an event of the context.
 */
#ifndef PWC_PROVIDER_BIND_H
#define PWC_PROVIDER_BIND_H

#include <pwc/pwc.h>
#include "providers/libfabric/operation.h"

/*
 * Starts to bind a peer and a key of its region. 1: the remote is bound already; 0: the end comes
 * to `pending`; or a negative errno, as pwc_bind.
 */
int bind_start(pwc_ctx *ctx, pwc_peer peer, const struct pwc_key *key, struct pending *pending,
               pwc_remote **out);

#endif
