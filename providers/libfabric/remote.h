/*
 * An endpoint's knowledge of others: the peer behind each address, and the memory behind each key
 * of it. A peer is bound when it is used for the first time, and a key is read from the peer's
 * table of keys and bound then; meanwhile operations give -FI_EAGAIN.
 *
 *     address --bind--> table of keys --get--> entry --bind--> remote
 *
 * Owned by the endpoint, whose lock guards it.
 */
#ifndef PWC_PROVIDER_REMOTE_H
#define PWC_PROVIDER_REMOTE_H

#include <pwc/pwc.h>
#include <rdma/fabric.h>
#include "providers/libfabric/keys.h"
#include "providers/libfabric/operation.h"

enum remote_state {
    REMOTE_NEW,
    REMOTE_READS, /* its entry is on the way */
    REMOTE_BINDS,
    REMOTE_READY,
    REMOTE_FAILED, /* the next operation takes the error */
};

struct peer {
    struct pending pending; /* of its bind */
    enum remote_state state;
    int error;
    bool waited; /* a call has waited for the bind once */
    pwc_peer address;
    pwc_remote *table; /* bound with the key of its table of keys */
    struct remote *remotes;
};

struct remote {
    struct pending pending; /* of the get of its entry, and of its bind */
    struct remote *next;
    struct peer *peer;
    enum remote_state state;
    int error;
    bool waited;    /* a call has waited for the key once */
    bool stale;     /* look the key up again, when no operation uses it any more */
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
 * The first operation towards a peer or over a key waits for it, up to REMOTE_PATIENCE_MS and once:
 * so programs that use an address for the first time, and do not try again, mostly go on. In that
 * time the endpoint's events are taken.
 */
#define REMOTE_PATIENCE_MS 20

/* The peer of an address, bound. 0; -FI_EAGAIN: it is being bound; else why it cannot be. */
int remote_peer(struct endpoint *endpoint, fi_addr_t number, struct peer **out);

/* The memory behind a key of that address. As remote_peer; -FI_EKEYREJECTED: no such key. */
int remote_find(struct endpoint *endpoint, fi_addr_t number, uint64_t key, struct remote **out);

/* An operation has failed: the key or the peer may be looked up anew. */
void remote_failed(struct remote *remote, int status);

/* Where `length` bytes at the peer's address stand in its region: 0, or -ERANGE. */
int remote_offset(const struct remote *remote, uint64_t address, uint64_t length, uint64_t *out);

void remotes_free(struct remotes *remotes);

#endif
