/*
 * Binds whose caller waits: pwc_bind, and the first use of a remote of pwc_bind_all.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_BIND_H
#define PWC_CLIENTLIB_BIND_H

#include "clientlib/binds/unbound.h"

/* Makes a late remote in its context; `key` may be NULL. Returns NULL: no memory. */
struct pwc_remote *remote_new_late(struct pwc_ctx *ctx, pwc_peer peer, const struct pwc_key *key,
                                   uint64_t length, uint32_t rights);

/*
 * For an operation over a remote that is not bound. 0: the remote is bound now; -EAGAIN: it is
 * being bound; or why it is not bound. Binds a late remote, and so blocks, as pwc_bind. After an
 * error a late remote stays late. -EKEYREJECTED: also where the daemon's answer has another length
 * or other rights than the owner gave in pwc_bind_all.
 */
int remote_make_ready(struct pwc_remote *remote);

#endif
