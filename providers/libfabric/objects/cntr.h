/*
 * Counters: of our own operations that have ended, by class, and of operations that peers have
 * placed here.
 */
#ifndef PWC_PROVIDER_CNTR_H
#define PWC_PROVIDER_CNTR_H

#include <rdma/fi_eq.h>
#include "providers/libfabric/objects/domain.h"
#include "providers/libfabric/members/members.h"

struct cntr {
    struct fid_cntr fid;
    struct domain *domain;
    enum fi_wait_obj wait_object;
    struct members *members; /* endpoints whose ends it counts */
    /* Endpoints at which arrivals are counted as well: NULL, `own_targets`, or the domain's. */
    struct members *arrivals;
    struct members *own_targets;
    atomic_uint users; /* endpoints and memory regions that are bound to it */
    _Atomic uint64_t ended, failed;
    /* The value that the application knows: of its last fi_cntr_read, or the threshold of its last
     * fi_cntr_wait. */
    _Atomic uint64_t read;
    /* The failures that the application knows of: from fi_cntr_readerr, fi_cntr_seterr, or
     * -FI_EAVAIL of fi_cntr_wait. */
    _Atomic uint64_t known_failed;
    /* The failures for which fi_trywait has refused a wait last. */
    _Atomic uint64_t refused_failed;
    /* Arrivals that do not count: those before it was bound, or before fi_cntr_set. */
    _Atomic uint64_t arrived_before;
};

int cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **out,
              void *context);

/* Count one more operation that has ended, or failed. Any thread. */
void cntr_count(struct cntr *cntr);
void cntr_count_failure(struct cntr *cntr);

/* From now on the counter also counts arrivals: at this endpoint, or at all endpoints of the
 * domain. -FI_ENOSYS: the counter has a descriptor, which arrivals would not make readable. */
int cntr_count_arrivals(struct cntr *cntr, struct endpoint *endpoint);
int cntr_count_all_arrivals(struct cntr *cntr);

/* Keeps the arrivals that an endpoint has counted when the endpoint closes. */
void cntr_keep_arrivals(struct cntr *cntr, struct endpoint *endpoint);

int cntr_trywait(struct cntr *cntr);

#endif
