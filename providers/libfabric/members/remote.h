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
#include <rdma/fi_rma.h>
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
    pwc_remote *table;      /* the peer's table of keys */
    unsigned users;         /* operations, messages and reads of the table that are under way */
    unsigned waiting;       /* operations that wait for their second submission (again.h) */
    unsigned fences;        /* operations with a fence so far */
    struct remote *remotes; /* the one that was used last is the first */
    unsigned count;
};

struct remote {
    struct pending pending; /* its event ends the get of the key's entry, later the bind */
    struct remote *next;
    struct peer *peer;
    enum remote_state state;
    int error;
    bool waited; /* a call has waited for the key once */
    bool used;   /* an operation has been submitted since the entry was read */
    bool stale;  /* the next operation looks the key up again */
    uint64_t key, base, length, skip;
    pwc_remote *handle;
    struct key_entry window[KEYS_WINDOW];
};

struct remotes {
    struct peer **peers; /* by number in the address vector */
    size_t count;
    unsigned reads; /* of peers' tables, under way */
    /* Remotes that are given up: their key has been looked up again since, or others were used
     * later, or their peer's address was removed. They are unbound when nothing is under way to
     * their peer, because pwc_unbind waits for all that is. */
    struct remote *retired;
    unsigned retired_count;
    unsigned removals; /* the vector's count at the last remotes_review that left nothing to do */
};

/* A peer has at most so many remotes: before one more the one is given up that was not used for the
 * longest time. */
#define REMOTES_OF_PEER 256
/* While so many wait to be unbound, no more are given up for others: -FI_EAGAIN. */
#define REMOTES_RETIRED 64

/*
 * The first operation towards a peer, or with a key, waits until the peer or key is bound, once and
 * up to REMOTE_PATIENCE_MS: so programs that do not try again after -FI_EAGAIN mostly work.
 * Meanwhile the endpoint's events are taken.
 */
#define REMOTE_PATIENCE_MS 20

/* Finds the peer of an address. 0: it is bound; -FI_EAGAIN: it is being bound; else the reason why
 * it cannot be bound; -FI_EINVAL: the vector has no such number. */
int remote_peer(struct endpoint *endpoint, fi_addr_t number, struct peer **out);

/* Finds the memory that a key of that address names, and the offset of the range in it. Results as
 * of remote_peer; -FI_EKEYREJECTED: there is no such key; -ERANGE: the range is not in its memory.
 * The owner may have given the key to other memory, so -ERANGE is the answer of an entry that no
 * operation has used before: an older one is read again first. Where there is no room for one more
 * remote now, *out is NULL. */
int remote_find(struct endpoint *endpoint, fi_addr_t number, const struct fi_rma_iov *range,
                struct remote **out, uint64_t *offset);

/* As remote_find, for a peer that was found before; never waits. */
int remote_of_peer(struct endpoint *endpoint, struct peer *peer, const struct fi_rma_iov *range,
                   struct remote **out, uint64_t *offset);

/* Notes that an operation has failed, so that the key is looked up again if this may help. */
void remote_failed(struct remote *remote, int status);

/* Notes that libpwc has refused an operation for its key or rights. Returns whether the entry was
 * old, so that the operation may be tried again. */
bool remote_refused(struct remote *remote);

/* Gives up what is bound at peers whose address was removed from the vector. Call it when the
 * vector's count of removals differs from the one here. */
void remotes_review(struct endpoint *endpoint);

/* Unbinds one of the retired remotes, if there is one whose peer is idle. Waits for the daemon's
 * answer. Returns whether it has unbound one. */
bool remotes_unbind(struct remotes *remotes);

void remotes_free(struct remotes *remotes);

#endif
