/*
 * Address vectors: an address has a number, and a peer's number can be found. Many endpoints may
 * use a vector, so its calls take its lock.
 */
#ifndef PWC_PROVIDER_AV_H
#define PWC_PROVIDER_AV_H

#include <rdma/fi_domain.h>
#include "providers/libfabric/members/address.h"
#include "providers/libfabric/objects/domain.h"

struct av_entry {
    struct address address;
    pwc_peer peer;
    bool used;
    bool known; /* `peer` is set: a context has that address */
};

struct av {
    struct fid_av fid;
    struct domain *domain;
    struct lock lock;
    struct av_entry *entries;
    size_t count, room; /* entries up to the last used one; entries that the memory has room for */
    uint64_t *peers;    /* a hash table of entry numbers plus 1, by peer; 0: empty */
    size_t peers_room;  /* a power of two */
    atomic_uint users;  /* endpoints */
    atomic_uint removals; /* calls that have removed addresses */
};

int av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **out, void *context);

/* Finds the address with a number. -FI_EINVAL: there is none. */
int av_find(struct av *av, fi_addr_t number, struct address *out);

/* The count of calls that have removed addresses: until it changes, a peer that was found by its
 * number still has this number. */
static inline unsigned av_removals(struct av *av)
{
    return atomic_load_explicit(&av->removals, memory_order_acquire);
}

/* Finds the peer with a number. -FI_EINVAL: there is none; -EHOSTUNREACH: no context has its
 * address any more. */
int av_peer(struct av *av, fi_addr_t number, pwc_peer *out);

/* Returns the number of a peer, or FI_ADDR_NOTAVAIL. */
fi_addr_t av_number(struct av *av, pwc_peer peer);

#endif
