/*
 * Binding where the caller waits: pwc_bind, and the first use of a remote of pwc_bind_all.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_BIND_H
#define PWC_CLIENTLIB_BIND_H

#include "clientlib/memory/unbound.h"

/* A late remote, among those of its context; `key` may be NULL. NULL: no memory. */
struct pwc_remote *remote_new_late(struct pwc_ctx *ctx, pwc_peer peer, const struct pwc_key *key,
                                   uint64_t length, uint32_t rights);

/*
 * For an operation over a remote that is not bound: 0, and it is bound now; -EAGAIN: it is being
 * bound; or why it is not. Binds a late one, and blocks: as pwc_bind. After an error a late one
 * stays late. -EKEYREJECTED: also where length or rights are not those that its owner has given.
 */
int remote_make_ready(struct pwc_remote *remote);

#endif
