/*
 * The remotes of a context that are bound: all of them in a list, and by peer.
 *
 *     first -> remote <-> remote <-> remote          next, previous
 *
 *     buckets[hash of the peer] -> remote -> remote  beside
 *
 * There are at least as many buckets as remotes; without memory for more of them the chains grow.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_BOUND_H
#define PWC_CLIENTLIB_BOUND_H

#include <stdint.h>
#include "pwc/pwc.h"

struct pwc_remote;

enum { BOUND_FEW = 4 };

/* All 0 at the beginning. Remotes are the context's. */
struct bound_remotes {
    struct pwc_remote *first;    /* the newest */
    struct pwc_remote **buckets; /* 1 << bits; NULL: `few` serves */
    struct pwc_remote *few[BOUND_FEW];
    uint32_t bits;
    uint32_t count;
};

/* Adds a remote whose peer is set. */
void bound_add(struct bound_remotes *bound, struct pwc_remote *remote);
void bound_forget(struct bound_remotes *bound, struct pwc_remote *remote);
/* Frees the buckets; the remotes are the caller's, from `first` on. */
void bound_destroy(struct bound_remotes *bound);

/* The newest remote of this peer, or NULL; then the others of that peer, newest first. */
struct pwc_remote *bound_of_peer(const struct bound_remotes *bound, pwc_peer peer);
struct pwc_remote *bound_next(const struct pwc_remote *remote);

#endif
