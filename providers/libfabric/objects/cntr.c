/*
 * Owns counters. Threads: any; a counter's words are atomic.
 */
#include "providers/libfabric/objects/cntr.h"

#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdlib.h>
#include "providers/libfabric/objects/endpoint.h"
#include "providers/libfabric/refuse.h"

static struct cntr *cntr_of(struct fid_cntr *fid)
{
    return container_of(fid, struct cntr, fid);
}

void cntr_count(struct cntr *cntr)
{
    atomic_fetch_add(&cntr->ended, 1);
    members_wake(cntr->members);
}

void cntr_count_failure(struct cntr *cntr)
{
    atomic_fetch_add(&cntr->failed, 1);
    members_wake(cntr->members);
}

int cntr_count_arrivals(struct cntr *cntr, struct endpoint *endpoint)
{
    int rc = 0;

    if (cntr->wait_object == FI_WAIT_FD)
        return -FI_ENOSYS;
    if (cntr->arrivals && cntr->arrivals != cntr->own_targets)
        return 0;
    if (!cntr->own_targets)
        rc = members_new(cntr->domain->locked, &cntr->own_targets);
    if (rc == 0)
        rc = members_add(cntr->own_targets, endpoint);
    if (rc == 0)
        cntr->arrivals = cntr->own_targets;
    return rc;
}

/* The number of operations that have arrived at the endpoints that the counter counts. */
static uint64_t arrived(const struct cntr *cntr)
{
    return cntr->arrivals ? members_sum(cntr->arrivals, endpoint_arrived) : 0;
}

int cntr_count_all_arrivals(struct cntr *cntr)
{
    uint64_t counted;

    if (cntr->wait_object == FI_WAIT_FD)
        return -FI_ENOSYS;
    if (cntr->arrivals == cntr->domain->targets)
        return 0;
    counted = arrived(cntr);
    cntr->arrivals = cntr->domain->targets;
    atomic_fetch_add(&cntr->arrived_before, arrived(cntr) - counted);
    return 0;
}

void cntr_keep_arrivals(struct cntr *cntr, struct endpoint *endpoint)
{
    if (cntr->own_targets)
        members_retire(cntr->own_targets, endpoint, endpoint_arrived(endpoint));
}

static uint64_t value_of(struct cntr *cntr)
{
    return atomic_load(&cntr->ended) + arrived(cntr) - atomic_load(&cntr->arrived_before);
}

/* Takes the events of all endpoints, as members_progress does. `own_targets` are members, too. */
static int progress(struct cntr *cntr)
{
    int ends = members_progress(cntr->members);
    bool others = cntr->arrivals && cntr->arrivals != cntr->own_targets;
    int arrivals = others ? members_progress(cntr->arrivals) : 0;

    return ends < 0 || arrivals == 0 ? ends : arrivals;
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
    struct cntr *cntr = cntr_of(fid);
    struct members *members = cntr->arrivals ? cntr->arrivals : cntr->members;
    uint64_t value;

    progress(cntr);
    value = value_of(cntr);
    if (atomic_exchange_explicit(&cntr->read, value, memory_order_relaxed) == value)
        members_yield(members);
    else
        members_found(members);
    return value;
}

/* The application learns of all failures so far, which this returns. */
static uint64_t know_failures(struct cntr *cntr)
{
    uint64_t failed = atomic_load(&cntr->failed);

    atomic_store(&cntr->known_failed, failed);
    return failed;
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
    struct cntr *cntr = cntr_of(fid);

    progress(cntr);
    return know_failures(cntr);
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
    struct cntr *cntr = cntr_of(fid);

    atomic_fetch_add(&cntr->ended, value);
    members_wake(cntr->members);
    return 0;
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
    struct cntr *cntr = cntr_of(fid);

    atomic_store(&cntr->arrived_before, arrived(cntr));
    atomic_store(&cntr->ended, value);
    members_wake(cntr->members);
    return 0;
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
    struct cntr *cntr = cntr_of(fid);

    atomic_fetch_add(&cntr->failed, value);
    members_wake(cntr->members);
    return 0;
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
    struct cntr *cntr = cntr_of(fid);

    atomic_store(&cntr->failed, value);
    atomic_store(&cntr->known_failed, value);
    atomic_store(&cntr->refused_failed, value);
    members_wake(cntr->members);
    return 0;
}

/* 0: the counter has reached the threshold; -FI_EAVAIL: the number of failures is not
 * `failed`; -FI_EAGAIN. */
static int look(struct cntr *cntr, uint64_t threshold, uint64_t failed)
{
    if (value_of(cntr) >= threshold)
        return 0;
    return atomic_load(&cntr->failed) != failed ? -FI_EAVAIL : -FI_EAGAIN;
}

/* Sleeps until the counter may have changed: by arrivals, which the context counts, or by ends,
 * which events report. */
static void sleep_for(struct cntr *cntr, uint64_t threshold, uint64_t failed, int ms)
{
    struct endpoint *target = cntr->arrivals ? members_single(cntr->arrivals) : NULL;
    uint64_t own = atomic_load(&cntr->ended) - atomic_load(&cntr->arrived_before);

    if (cntr->arrivals)
        members_watch(cntr->arrivals);
    if (target)
        /* Closed endpoints may have counted a part of the threshold; then the wait returns only at
         * the end of its slice. */
        endpoint_wait_arrived(target, threshold - own, ms);
    else if (cntr->arrivals)
        endpoint_nap(ms);
    else if (members_arm(cntr->members) && look(cntr, threshold, failed) == -FI_EAGAIN)
        members_sleep(cntr->members, ms);
}

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
    struct cntr *cntr = cntr_of(fid);
    int64_t end = timeout < 0 ? INT64_MAX : members_now() + timeout;
    /* Also failures from before the call end the wait: those of calls that submit, too. */
    uint64_t failed = atomic_load(&cntr->known_failed);

    for (;;) {
        int progressed = progress(cntr);
        int rc = look(cntr, threshold, failed);
        int64_t left;

        if (rc == 0)
            atomic_store_explicit(&cntr->read, threshold, memory_order_relaxed);
        if (rc == -FI_EAVAIL)
            know_failures(cntr);
        if (rc != -FI_EAGAIN)
            return rc;
        if (progressed < 0)
            return progressed;
        left = end - members_now();
        if (left <= 0)
            return -FI_ETIMEDOUT;
        sleep_for(cntr, threshold, failed, left > INT32_MAX ? -1 : (int)left);
    }
}

int cntr_trywait(struct cntr *cntr)
{
    uint64_t failed;

    if (!members_quiet(cntr->members) || value_of(cntr) != atomic_load(&cntr->read))
        return -FI_EAGAIN;
    failed = atomic_load(&cntr->failed);
    if (failed == atomic_load(&cntr->known_failed))
        return 0;
    return atomic_exchange(&cntr->refused_failed, failed) == failed ? 0 : -FI_EAGAIN;
}

static int cntr_control(struct fid *fid, int command, void *argument)
{
    struct cntr *cntr = container_of(fid, struct cntr, fid.fid);
    int fd;

    if (command == FI_GETWAITOBJ) {
        *(enum fi_wait_obj *)argument = cntr->wait_object;
        return 0;
    }
    if (command != FI_GETWAIT || cntr->wait_object != FI_WAIT_FD)
        return -FI_ENOSYS;
    fd = members_descriptor(cntr->members);
    if (fd < 0)
        return fd;
    *(int *)argument = fd;
    return 0;
}

static int cntr_close(struct fid *fid)
{
    struct cntr *cntr = container_of(fid, struct cntr, fid.fid);

    if (atomic_load(&cntr->users) != 0)
        return -FI_EBUSY;
    if (cntr->own_targets)
        members_free(cntr->own_targets);
    members_free(cntr->members);
    atomic_fetch_sub(&cntr->domain->users, 1);
    free(cntr);
    return 0;
}

static struct fi_ops cntr_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = cntr_close,
    .bind = refuse_bind,
    .control = cntr_control,
    .ops_open = refuse_ops_open,
};

static struct fi_ops_cntr cntr_ops = {
    .size = sizeof(struct fi_ops_cntr),
    .read = cntr_read,
    .readerr = cntr_readerr,
    .add = cntr_add,
    .set = cntr_set,
    .wait = cntr_wait,
    .adderr = cntr_adderr,
    .seterr = cntr_seterr,
};

int cntr_open(struct fid_domain *fid, struct fi_cntr_attr *attr, struct fid_cntr **out,
              void *context)
{
    struct domain *domain = domain_of(fid);
    enum fi_wait_obj wait_object = attr ? attr->wait_obj : FI_WAIT_UNSPEC;
    struct cntr *cntr;
    int rc;

    if (wait_object != FI_WAIT_NONE && wait_object != FI_WAIT_UNSPEC && wait_object != FI_WAIT_FD &&
        wait_object != FI_WAIT_YIELD)
        return -FI_ENOSYS;
    cntr = calloc(1, sizeof(*cntr));
    if (!cntr)
        return -FI_ENOMEM;
    rc = members_new(domain->locked, &cntr->members);
    if (rc < 0) {
        free(cntr);
        return rc;
    }
    cntr->wait_object = wait_object;
    cntr->domain = domain;
    cntr->fid.fid.fclass = FI_CLASS_CNTR;
    cntr->fid.fid.context = context;
    cntr->fid.fid.ops = &cntr_fid_ops;
    cntr->fid.ops = &cntr_ops;
    atomic_fetch_add(&domain->users, 1);
    *out = &cntr->fid;
    return 0;
}
