/*
 * The part that all operations towards a peer have in common: find the remote, make the operation,
 * submit, and turn what libpwc says into what libfabric says.
 */
#ifndef PWC_PROVIDER_SUBMIT_H
#define PWC_PROVIDER_SUBMIT_H

#include <rdma/fabric.h>
#include <sys/types.h>
#include "providers/libfabric/operation.h"
#include "providers/libfabric/remote.h"

struct submission {
    struct endpoint *endpoint;
    struct remote *remote; /* NULL for messages */
    struct peer *peer;
    struct operation *operation;
};

/* The one result of submit_begin after which the caller submits; all others are its result. */
#define SUBMIT_GOES_ON 1

/* Takes the endpoint's lock, which submit_finish gives back, or submit_begin itself where it ends
 * the call. A wrong key or address is no error of the call: its operation ends with it. */
ssize_t submit_begin(struct submission *submission, struct endpoint *endpoint, fi_addr_t number,
                     uint64_t key, const struct operation_start *start);
/* As submit_begin, for a message, which needs a peer and no key. */
ssize_t submit_begin_message(struct submission *submission, struct endpoint *endpoint,
                             fi_addr_t number, const struct operation_start *start);

/*
 * Submits an operation of `count` parts, each by `one`. The first may give -EAGAIN as usual; then
 * nothing has left. Where it has left, the call waits for room for the others. For submit_finish.
 */
int submit_parts(struct submission *submission, size_t count,
                 int (*one)(struct submission *submission, const void *call, size_t index),
                 const void *call);

/* Ends the call with the result of libpwc's call. */
ssize_t submit_finish(struct submission *submission, int result);

/* libpwc's flags for libfabric's. */
unsigned submit_flags(uint64_t flags);

#endif
