/*
 * An endpoint is a context of libpwc with its queues, counters and remotes. The endpoint's lock is
 * held during each call on that context; locks of queues and counters are taken after it.
 */
#ifndef PWC_PROVIDER_ENDPOINT_H
#define PWC_PROVIDER_ENDPOINT_H

#include <pwc/pwc.h>
#include <rdma/fi_endpoint.h>
#include "providers/libfabric/objects/av.h"
#include "providers/libfabric/objects/cntr.h"
#include "providers/libfabric/objects/cq.h"
#include "providers/libfabric/objects/domain.h"
#include "providers/libfabric/transfers/operation.h"
#include "providers/libfabric/transfers/receive.h"
#include "providers/libfabric/members/remote.h"

/* The classes of operations, each of which may have a counter. */
enum endpoint_class {
    CLASS_SEND,
    CLASS_RECV,
    CLASS_READ,
    CLASS_WRITE,
    CLASS_ARRIVED, /* FI_REMOTE_WRITE */
    CLASSES,
};

struct endpoint {
    struct fid_ep fid;
    struct domain *domain;
    struct lock lock;
    pwc_ctx *ctx;
    uint64_t caps;
    uint64_t tx_flags, rx_flags; /* flags of operations whose call gives none */
    bool enabled;
    int over;                /* a negative errno once the session is over */
    atomic_bool submitted;   /* since the last endpoint_take_submitted */
    _Atomic int64_t watched; /* when endpoint_watch has looked last, by members_now */
    unsigned refused;        /* calls in a row that gave -FI_EAGAIN */
    struct av *av;
    struct cq *tx_cq, *rx_cq;
    bool tx_selective, rx_selective; /* an entry only where FI_COMPLETION asks for it */
    struct cntr *cntrs[CLASSES];
    uint64_t arrived; /* the last value that endpoint_arrived gave */
    struct operations operations;
    struct remotes remotes;
    struct receives receives;
};

int endpoint_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out,
                  void *context);

static inline struct endpoint *endpoint_of(struct fid_ep *fid)
{
    return container_of(fid, struct endpoint, fid);
}

/* Takes the events that have come: ends operations, adds entries, runs the handler of messages.
 * Returns 0 if no event is left, so that the descriptor becomes readable with the next one; 1 if
 * some may be left; or a negative errno: the session is over. Takes the endpoint's lock. */
int endpoint_progress(struct endpoint *endpoint);
/* As endpoint_progress, for a caller that holds the lock. */
int endpoint_progress_held(struct endpoint *endpoint);

/* Marks the operations under way as those that endpoint_flush waits for. Takes the endpoint's
 * lock. */
void endpoint_mark_operations(struct endpoint *endpoint);

/* Waits for all operations, for `ms` milliseconds at most, and takes events that have come. 0: the
 * marked operations have ended, and no table of keys is being read; also where the session is
 * over. Else -FI_EBUSY. Takes the endpoint's lock. */
int endpoint_flush(struct endpoint *endpoint, int ms);

/* Whether the endpoint has submitted since the last call. Any thread. */
bool endpoint_take_submitted(struct endpoint *endpoint);

/* After so many looks or refused calls in a row: yields the processor (pwc_yield). If threads share
 * the endpoint, yields outside its lock. */
void endpoint_yield(struct endpoint *endpoint, unsigned looks);
/* As endpoint_yield, for a caller that holds the lock and keeps it: it also looks once a second
 * whether the daemon lives. */
void endpoint_yield_held(struct endpoint *endpoint, unsigned looks);

/* Looks once a second whether the daemon lives, which endpoint_progress does not; if not, the next
 * endpoint_progress returns the error. For a program that polls and shares the endpoint. */
void endpoint_watch(struct endpoint *endpoint);

/* Sleeps until an event comes, for `ms` milliseconds at most. If threads share the endpoint, does
 * not sleep in a call on the context, because this would hold the lock. */
void endpoint_wait(struct endpoint *endpoint, int ms);

/* The context's descriptor (pwc_fd), or a negative errno. */
int endpoint_descriptor(struct endpoint *endpoint);

/* Returns how many operations of peers have been placed through remotes to this endpoint. */
uint64_t endpoint_arrived(struct endpoint *endpoint);

/* Waits until `threshold` operations of peers have been placed, for `ms` milliseconds at most. May
 * return early. Takes no lock: only where no other thread shares the endpoint. */
void endpoint_wait_arrived(struct endpoint *endpoint, uint64_t threshold, int ms);

/* Sleeps for a short time, where nothing would wake this thread. */
void endpoint_nap(int ms);

#endif
