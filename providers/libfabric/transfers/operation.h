/*
 * Operations under way, which their local events end. Owned by the endpoint, whose lock guards
 * them.
 */
#ifndef PWC_PROVIDER_OPERATION_H
#define PWC_PROVIDER_OPERATION_H

#include <pwc/pwc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "providers/libfabric/transfers/again.h"

struct endpoint;
struct peer;
struct remote;

/* Anything that a local event can end; its address is the local completion id. */
struct pending {
    void (*end)(struct endpoint *endpoint, struct pending *pending, const struct pwc_event *event);
};

static inline pwc_cid pending_id(struct pending *pending)
{
    return pwc_cid_u64((uint64_t)(uintptr_t)pending);
}

struct operation {
    struct pending pending;
    struct operation *next; /* in the list of free ones, or of those under way */
    struct operation **at;  /* the pointer to it, while it is under way */
    void *context;
    uint64_t flags;        /* of its completion entry: FI_RMA | FI_WRITE and such */
    bool promised;         /* its queue holds room for an entry */
    bool reported;         /* has an entry also if it succeeds */
    unsigned parts;        /* local events that are still to come */
    int status;            /* the first error of its parts */
    struct peer *peer;     /* NULL: there is none, the operation ends at once */
    struct remote *remote; /* NULL for messages */
    void *copy;            /* of injected bytes that libpwc reads later; malloc, or NULL */
    bool waits;            /* for its second submission; its remote may be gone */
    bool marked;           /* by operations_mark */
    unsigned fences;       /* operations with a fence up to this one, towards the peer */
    struct again again;
};

struct operations {
    struct operation *free;
    struct operation *under_way;
    struct operation_chunk *chunks;
    size_t count;   /* under way */
    size_t waiting; /* for their second submission */
    size_t marked;  /* by operations_mark */
};

/* An operation as its call describes it. */
struct operation_start {
    void *context;
    uint64_t class_flags; /* FI_RMA | FI_WRITE, ... */
    uint64_t op_flags;    /* of the call, or the endpoint's */
    bool injected;        /* success has no entry */
};

/* Makes an operation of one part, towards a peer or none. NULL: no room in its queue, or no memory.
 */
struct operation *operation_new(struct endpoint *endpoint, const struct operation_start *start,
                                struct peer *peer, struct remote *remote);

/* Takes back an operation without an entry or a count: it was not submitted, or its endpoint
 * closes.
 */
void operation_drop(struct endpoint *endpoint, struct operation *operation);

/* Ends an operation: counts it, and adds its entry. */
void operation_end(struct endpoint *endpoint, struct operation *operation, int status);

/* Notes that one part could not be submitted, while other parts are under way or have ended. */
void operation_part_failed(struct endpoint *endpoint, struct operation *operation, int status);

/* Marks all that are under way now: `marked` is 0 when these have ended, whatever comes later. */
void operations_mark(struct operations *operations);

/* Ends all operations under way, because their session is over. */
void operations_end_all(struct endpoint *endpoint, int status);
/* Drops the operations under way, and frees the memory of all. */
void operations_free(struct endpoint *endpoint);

static inline pwc_cid operation_id(struct operation *operation)
{
    return pending_id(&operation->pending);
}

#endif
