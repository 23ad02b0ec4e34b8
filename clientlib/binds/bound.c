/* Owns the list of a context's bound remotes (bound.h). Thread: the one that owns the context. */
#include "clientlib/binds/bound.h"

#include <stdlib.h>
#include "clientlib/attach/context.h"

enum { FEW_BITS = 2, MOST_BITS = 24 };

static_assert(1 << FEW_BITS == BOUND_FEW, "the buckets that need no memory");

static struct pwc_remote **bucket(const struct bound_remotes *bound, pwc_peer peer)
{
    /* Fibonacci hashing: the upper bits of the product depend on all bits of the peer. */
    uint64_t hash = peer * UINT64_C(0x9e3779b97f4a7c15);

    if (!bound->buckets)
        return (struct pwc_remote **)&bound->few[hash >> (64 - FEW_BITS)];
    return &bound->buckets[hash >> (64 - bound->bits)];
}

static void chain(struct bound_remotes *bound, struct pwc_remote *remote)
{
    struct pwc_remote **at = bucket(bound, remote->peer);

    remote->beside = *at;
    *at = remote;
}

/* Twice as many buckets, if there is memory. The newest remote stays first in its chain. */
static void grow(struct bound_remotes *bound)
{
    uint32_t bits = bound->buckets ? bound->bits + 1 : FEW_BITS + 1;
    struct pwc_remote **buckets, *remote = bound->first;

    if (bits > MOST_BITS)
        return;
    buckets = calloc((size_t)1 << bits, sizeof(struct pwc_remote *));
    if (!buckets)
        return;
    free(bound->buckets);
    bound->buckets = buckets;
    bound->bits = bits;
    while (remote && remote->next)
        remote = remote->next;
    for (; remote; remote = remote->previous)
        chain(bound, remote);
}

void bound_add(struct bound_remotes *bound, struct pwc_remote *remote)
{
    if (bound->count >= (bound->buckets ? UINT32_C(1) << bound->bits : BOUND_FEW))
        grow(bound);
    remote->previous = NULL;
    remote->next = bound->first;
    if (bound->first)
        bound->first->previous = remote;
    bound->first = remote;
    bound->count++;
    chain(bound, remote);
}

void bound_forget(struct bound_remotes *bound, struct pwc_remote *remote)
{
    struct pwc_remote **at = bucket(bound, remote->peer);

    while (*at != remote)
        at = &(*at)->beside;
    *at = remote->beside;
    if (remote->previous)
        remote->previous->next = remote->next;
    else
        bound->first = remote->next;
    if (remote->next)
        remote->next->previous = remote->previous;
    remote->next = remote->previous = remote->beside = NULL;
    bound->count--;
}

void bound_destroy(struct bound_remotes *bound)
{
    free(bound->buckets);
    *bound = (struct bound_remotes){.first = NULL};
}

static struct pwc_remote *of_peer_from(struct pwc_remote *remote, pwc_peer peer)
{
    while (remote && remote->peer != peer)
        remote = remote->beside;
    return remote;
}

struct pwc_remote *bound_of_peer(const struct bound_remotes *bound, pwc_peer peer)
{
    return of_peer_from(*bucket(bound, peer), peer);
}

struct pwc_remote *bound_next(const struct pwc_remote *remote)
{
    return of_peer_from(remote->beside, remote->peer);
}
