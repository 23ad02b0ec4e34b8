/*
 * Messages that arrive: buffers that the application has posted, and messages that came before
 * their buffer. Both are matched in their order, for one source or for any. Owned by the endpoint,
 * whose lock guards them.
 */
#ifndef PWC_PROVIDER_RECEIVE_H
#define PWC_PROVIDER_RECEIVE_H

#include <pwc/am.h>
#include <rdma/fi_endpoint.h>
#include "providers/libfabric/transfers/assembly.h"

struct endpoint;

/* The handler of messages, and its arguments: flags and the sender's data. A part of a message has
 * more (assembly.h). */
#define RECEIVE_HANDLER   0
#define RECEIVE_ARGUMENTS 2
#define RECEIVE_HAS_DATA  1

struct receives {
    struct posted *posted, **last_posted;
    struct unexpected *unexpected, **last_unexpected;
    struct assembly *assemblies;
    struct posted *free;
    size_t count; /* posted */
};

void receives_init(struct receives *receives);
/* Frees all, also posted buffers, whose promised entries will not come. */
void receives_free(struct endpoint *endpoint);

/* The handler: takes a message. */
void receive_message(pwc_ctx *ctx, const struct pwc_am *message, void *argument);

/* The calls of libfabric. */
ssize_t receive_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t source,
                     void *context);
ssize_t receive_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
                      fi_addr_t source, void *context);
ssize_t receive_recvmsg(struct fid_ep *ep, const struct fi_msg *message, uint64_t flags);
ssize_t receive_cancel(fid_t fid, void *context);

#endif
