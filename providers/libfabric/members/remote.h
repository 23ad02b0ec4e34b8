/*
 * An endpoint's knowledge of others: the peer that has an address, and the memory that a key of
 * this peer names. At its first use a peer is bound; at its first use a key is read from the peer's
 * table of keys, and bound. Until then operations return -FI_EAGAIN.
 *
 *     address --bind--> table of keys --get--> entry --bind--> remote
 *
 * Owned by the endpoint, whose lock guards it.
 */
#ifndef PWC_PROVIDER_REMOTE_H
#define PWC_PROVIDER_REMOTE_H

#include <pwc/pwc.h>
#include <rdma/fabric.h>
#include "providers/libfabric/members/keys.h"
#include "providers/libfabric/transfers/operation.h"

enum remote_state {
    REMOTE_NEW,
    REMOTE_READS, /* the key's entry in the peer's table is being read */
    REMOTE_BINDS,
    REMOTE_READY,
    REMOTE_FAILED, /* the next operation returns the error */
};

struct peer {
    struct pending pending; /* its event ends the bind */
    enum remote_state state;
    int error;
    bool waited;       /* a call has waited for the bind once */
    unsigned removals; /* the vector's count when it had this address last */
    pwc_peer address;
    pwc_remote *table; /* the peer's table of keys */
    struct remote *remotes;
};

struct remote {
    struct pending pending; /* its event ends the get of the key's entry, later the bind */
    struct remote *next;
    struct peer *peer;
    enum remote_state state;
    int error;
    bool waited;    /* a call has waited for the key once */
    bool stale;     /* look the key up again when no operation uses this remote any more */
    unsigned users; /* operations under way */
    uint64_t key, base, length;
    pwc_remote *handle;
    struct key_entry window[KEYS_WINDOW];
};

struct remotes {
    struct peer **peers; /* by number in the address vector */
    size_t count;
};

/*
 * The first operation towards a peer, or with a key, waits until the peer or key is bound, once and
 * up to REMOTE_PATIENCE_MS: so programs that do not try again after -FI_EAGAIN mostly work.
 * Meanwhile the endpoint's events are taken.
 */
#define REMOTE_PATIENCE_MS 20

/* Finds the peer of an address. 0: it is bound; -FI_EAGAIN: it is being bound; else the reason why
 * it cannot be bound; -FI_EINVAL: the vector has no such number. */
int remote_peer(struct endpoint *endpoint, fi_addr_t number, struct peer **out);

/* Finds the memory that a key of that address names. Results as of remote_peer; -FI_EKEYREJECTED:
 * there is no such key. */
int remote_find(struct endpoint *endpoint, fi_addr_t number, uint64_t key, struct remote **out);

/* Notes that an operation has failed, so that the key is looked up again if this may help. */
void remote_failed(struct remote *remote, int status);

/* Computes the offset of `length` bytes at a peer's address in its region. 0, or -ERANGE. */
int remote_offset(const struct remote *remote, uint64_t address, uint64_t length, uint64_t *out);

void remotes_free(struct remotes *remotes);

#endif
