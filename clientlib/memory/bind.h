/*
 * Binding: a peer, and a region of its by key, become a remote of a context, at once or when it is
 * first used.
 *
 * A remote of pwc_bind_all is late until its first use: it has the length and the rights that its
 * owner has given, so that calls check ranges as ever, and remote_late_pair in the place of a pair,
 * which leads each call off its fast way (direct_choose, direct_leave), where it is bound.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_BIND_H
#define PWC_CLIENTLIB_BIND_H

#include "clientlib/attach/context.h"

extern const struct direct_pair remote_late_pair;

static inline bool remote_is_late(const struct pwc_remote *remote)
{
    return remote->pair == &remote_late_pair;
}

/* A late remote, among those of its context; `key` may be NULL. NULL: no memory. */
struct pwc_remote *remote_new_late(struct pwc_ctx *ctx, pwc_peer peer, const struct pwc_key *key,
                                   uint64_t length, uint32_t rights);
/* Takes a late remote from those of its context; it is then the caller's to free. */
void remote_forget_late(struct pwc_remote *remote);

/* Binds a late remote, and blocks: as pwc_bind. On an error it stays late. -EKEYREJECTED: also
 * where length or rights are not those that its owner has given. */
int remote_bind_late(struct pwc_remote *remote);

#endif
