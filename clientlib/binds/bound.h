/*
 * The bound remotes of a context: in a list, and in chains by peer.
 *
 *     first -> remote <-> remote <-> remote          next, previous
 *
 *     buckets[hash of the peer] -> remote -> remote  beside
 *
 * There are at least as many buckets as remotes; without memory for more buckets the chains get
 * longer.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_BOUND_H
#define PWC_CLIENTLIB_BOUND_H

#include <stdint.h>
#include "pwc/pwc.h"

struct pwc_remote;

enum { BOUND_FEW = 4 };

/* Begins as all zeros. The context owns the remotes. */
struct bound_remotes {
    struct pwc_remote *first;    /* the newest */
    struct pwc_remote **buckets; /* 1 << bits of them; NULL: `few` is used */
    struct pwc_remote *few[BOUND_FEW];
    uint32_t bits;
    uint32_t count;
};

/* Adds a remote whose peer is set. */
void bound_add(struct bound_remotes *bound, struct pwc_remote *remote);
void bound_forget(struct bound_remotes *bound, struct pwc_remote *remote);
/* Frees the buckets; the caller frees the remotes. */
void bound_destroy(struct bound_remotes *bound);

/* bound_of_peer: the newest remote of this peer, or NULL. bound_next: the next older remote of the
 * same peer, or NULL. */
struct pwc_remote *bound_of_peer(const struct bound_remotes *bound, pwc_peer peer);
struct pwc_remote *bound_next(const struct pwc_remote *remote);

#endif
