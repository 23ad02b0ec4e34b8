/*
 * Completion queues: they keep entries of operations that have ended, ours and peers', until the
 * application reads them.
 */
#ifndef PWC_PROVIDER_CQ_H
#define PWC_PROVIDER_CQ_H

#include <rdma/fi_eq.h>
#include "providers/libfabric/objects/domain.h"
#include "providers/libfabric/members/members.h"

struct cq_completion {
    struct fi_cq_tagged_entry entry;
    fi_addr_t source;
};

struct cq_error {
    struct cq_error *next;
    struct fi_cq_err_entry entry;
};

struct cq {
    struct fid_cq fid;
    struct domain *domain;
    enum fi_cq_format format;
    enum fi_wait_obj wait_object;
    struct members *members;
    atomic_uint users; /* endpoints that are bound to it */
    struct lock lock;  /* guards all fields below */
    struct cq_completion *ring;
    size_t room; /* entries that the ring has memory for, a power of two */
    uint64_t head, tail;
    /* A promise needs fewer entries than this, there and promised together; a peer's write needs
     * fewer that are there. So the queue has up to twice as many, and some more of peers' writes
     * that one look takes together. */
    size_t size;
    size_t promised; /* operations under way that will have an entry */
    struct cq_error *errors, **last_error;
    bool signalled;
};

int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **out, void *context);

/* Promises room for an entry. Returns false if the queue is full: it must be read first. */
bool cq_promise(struct cq *cq);
void cq_release(struct cq *cq);

/* Whether the queue has room for the entry of a peer's write. Promises take none of this room: a
 * posted buffer may wait for a message that the peer sends only after its writes. */
bool cq_has_room(struct cq *cq);

/* Adds an entry; `promised` says whether the entry uses a promise. */
void cq_add(struct cq *cq, const struct cq_completion *completion, bool promised);
void cq_add_error(struct cq *cq, const struct fi_cq_err_entry *entry, bool promised);

int cq_trywait(struct cq *cq);

#endif
