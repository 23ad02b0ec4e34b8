/*
 * Event queues: they exist because applications open them. No call of this provider ends later than
 * it returns, so a queue has only the events that the application writes into it.
 */
#ifndef PWC_PROVIDER_EQ_H
#define PWC_PROVIDER_EQ_H

#include <rdma/fi_eq.h>
#include "providers/libfabric/objects/domain.h"

struct eq_event;

struct eq {
    struct fid_eq fid;
    struct fabric *fabric;
    struct lock lock;
    int fd; /* an eventfd: readable while an event is there; the lock guards its writes and reads */
    struct eq_event *first, **last;
};

int eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **out, void *context);
int eq_trywait(struct eq *eq);

/* Adds an event. -FI_ENOMEM. */
int eq_add(struct eq *eq, uint32_t event, const void *data, size_t length);

#endif
