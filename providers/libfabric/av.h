/*
 * Address vectors: numbers for addresses, and the way back from a peer to its number. A vector may
 * be read by many endpoints, so its calls take its lock.
 */
#ifndef PWC_PROVIDER_AV_H
#define PWC_PROVIDER_AV_H

#include <rdma/fi_domain.h>
#include "providers/libfabric/address.h"
#include "providers/libfabric/domain.h"

struct av_entry {
    struct address address;
    pwc_peer peer;
    bool used;
    bool known; /* `peer` is there: somebody has that address */
};

struct av {
    struct fid_av fid;
    struct domain *domain;
    struct lock lock;
    struct av_entry *entries;
    size_t count, room; /* entries up to the last used one; entries that there is memory for */
    uint64_t *peers;    /* a hash table of entry numbers plus 1, by peer; 0: empty */
    size_t peers_room;  /* a power of two */
    atomic_uint users;  /* endpoints */
};

int av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **out, void *context);

/* The address behind a number. -FI_EINVAL: there is none. */
int av_find(struct av *av, fi_addr_t number, struct address *out);

/* The peer behind a number. -FI_EINVAL: there is none; -EHOSTUNREACH: nobody has that address. */
int av_peer(struct av *av, fi_addr_t number, pwc_peer *out);

/* The number of a peer, or FI_ADDR_NOTAVAIL. */
fi_addr_t av_number(struct av *av, pwc_peer peer);

#endif
