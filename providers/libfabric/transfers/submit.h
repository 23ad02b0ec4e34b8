/*
 * The steps that all operations towards a peer have in common: find the remote, make the operation,
 * submit it, and turn libpwc's result into libfabric's.
 */
#ifndef PWC_PROVIDER_SUBMIT_H
#define PWC_PROVIDER_SUBMIT_H

#include <rdma/fabric.h>
#include <rdma/fi_rma.h>
#include <sys/types.h>
#include "providers/libfabric/transfers/operation.h"
#include "providers/libfabric/members/remote.h"

struct submission {
    struct endpoint *endpoint;
    struct peer *peer;
    struct remote *remote; /* NULL for messages */
    uint64_t offset;       /* of the range, in the remote */
    struct operation *operation;
};

/* After this result of submit_begin the caller submits; any other result is that of the call. */
#define SUBMIT_GOES_ON 1

/* Takes the endpoint's lock, which submit_finish releases; submit_begin itself releases it where it
 * ends the call. A wrong key or range is no error of the call: the operation ends with the error.
 */
ssize_t submit_begin(struct submission *submission, struct endpoint *endpoint, fi_addr_t number,
                     const struct fi_rma_iov *range, const struct operation_start *start);
/* As submit_begin, for a message, which needs a peer and no key. */
ssize_t submit_begin_message(struct submission *submission, struct endpoint *endpoint,
                             fi_addr_t number, const struct operation_start *start);

/*
 * Submits an operation of `count` parts, each by `one`. If the first gives -EAGAIN, nothing was
 * submitted. After the first, the call waits for room for each other part. The result is for
 * submit_finish.
 */
int submit_parts(struct submission *submission, size_t count,
                 int (*one)(struct submission *submission, const void *call, size_t index),
                 const void *call);

/* The flags and the remote id for a part of a write. Only the last part has a remote event, which
 * carries the data of FI_REMOTE_CQ_DATA. A fence orders the first part after earlier operations,
 * and a part with an event after all parts before it. */
struct part_end {
    unsigned flags;
    pwc_cid rid;
};
struct part_end submit_part_end(uint64_t flags, uint64_t data, size_t index, bool last);

/* Ends the call with the result of libpwc's call. */
ssize_t submit_finish(struct submission *submission, int result);

/* Turns libfabric's flags into libpwc's. */
unsigned submit_flags(uint64_t flags);

#endif
