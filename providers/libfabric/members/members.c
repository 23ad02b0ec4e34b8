/*
 * Owns lists of endpoints and the descriptors to sleep on. Any thread may call: the list's lock
 * keeps threads apart, and is not held while a thread sleeps.
 */
#include "providers/libfabric/members/members.h"

#include <errno.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "providers/libfabric/objects/endpoint.h"
#include "providers/libfabric/lock.h"

/* A sleeper at several endpoints, or with several threads, looks again after this time. */
#define SLICE_MS 100
/* A flush waits for so long at one endpoint, before it looks at the next one. */
#define FLUSH_MS 10

struct members {
    struct lock lock;
    struct endpoint **list;
    unsigned count;
    atomic_uint vain;       /* looks in a row, since the last event or submission, that found
                               nothing */
    uint64_t retired;       /* the sum of values of members_retire */
    int epoll_fd, event_fd; /* -1 until somebody sleeps here or asks for the descriptor */
    atomic_bool asleep;     /* members_wake has something to do */
};

int members_new(bool locked, struct members **out)
{
    struct members *members = calloc(1, sizeof(*members));

    if (!members)
        return -FI_ENOMEM;
    lock_init(&members->lock, locked);
    members->epoll_fd = -1;
    members->event_fd = -1;
    *out = members;
    return 0;
}

void members_free(struct members *members)
{
    if (members->epoll_fd >= 0)
        close(members->epoll_fd);
    if (members->event_fd >= 0)
        close(members->event_fd);
    lock_destroy(&members->lock);
    free(members->list);
    free(members);
}

static int watch(struct members *members, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    if (epoll_ctl(members->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 || errno == EEXIST)
        return 0;
    return -errno;
}

int members_add(struct members *members, struct endpoint *endpoint)
{
    struct endpoint **list;
    int rc = 0;

    lock_take(&members->lock);
    for (unsigned i = 0; i < members->count; i++)
        if (members->list[i] == endpoint)
            goto out;
    list = realloc(members->list, (members->count + 1) * sizeof(*list));
    if (!list) {
        rc = -FI_ENOMEM;
        goto out;
    }
    members->list = list;
    if (members->epoll_fd >= 0)
        rc = watch(members, endpoint_descriptor(endpoint));
    if (rc == 0)
        list[members->count++] = endpoint;
out:
    lock_give(&members->lock);
    return rc;
}

/* The caller holds the lock. */
static bool remove_member(struct members *members, struct endpoint *endpoint)
{
    for (unsigned i = 0; i < members->count; i++) {
        if (members->list[i] != endpoint)
            continue;
        if (members->epoll_fd >= 0)
            epoll_ctl(members->epoll_fd, EPOLL_CTL_DEL, endpoint_descriptor(endpoint), NULL);
        members->list[i] = members->list[--members->count];
        return true;
    }
    return false;
}

void members_drop(struct members *members, struct endpoint *endpoint)
{
    lock_take(&members->lock);
    remove_member(members, endpoint);
    lock_give(&members->lock);
}

void members_retire(struct members *members, struct endpoint *endpoint, uint64_t value)
{
    lock_take(&members->lock);
    if (remove_member(members, endpoint))
        members->retired += value;
    lock_give(&members->lock);
}

int members_progress(struct members *members)
{
    int rc = 0;

    lock_take(&members->lock);
    for (unsigned i = 0; i < members->count; i++) {
        int one = endpoint_progress(members->list[i]);

        if (one < 0 || rc == 0)
            rc = one;
    }
    lock_give(&members->lock);
    return rc;
}

/* Waits for one endpoint after another, a short time each: the end of an operation may need the
 * progress of another endpoint. Where threads share the endpoints, it only looks: a wait would hold
 * their locks. */
static int flush_once(struct members *members)
{
    int ms = members->lock.used ? 0 : FLUSH_MS;
    int rc = 0;

    lock_take(&members->lock);
    for (unsigned i = 0; i < members->count; i++)
        if (endpoint_flush(members->list[i], ms) < 0)
            rc = -FI_EBUSY;
    lock_give(&members->lock);
    return rc;
}

static void mark_operations(struct members *members)
{
    lock_take(&members->lock);
    for (unsigned i = 0; i < members->count; i++)
        endpoint_mark_operations(members->list[i]);
    lock_give(&members->lock);
}

int members_flush(struct members *members, int ms)
{
    int64_t end = members_now() + ms;
    int rc;

    mark_operations(members);
    while ((rc = flush_once(members)) < 0 && members_now() < end)
        if (members->lock.used) {
            members_watch(members);
            endpoint_nap(1);
        }
    return rc;
}

void members_found(struct members *members)
{
    atomic_store_explicit(&members->vain, 0, memory_order_relaxed);
}

/* Whether an endpoint has submitted since the last call. */
static bool have_submitted(struct members *members)
{
    bool submitted = false;

    lock_take(&members->lock);
    for (unsigned i = 0; i < members->count; i++)
        submitted |= endpoint_take_submitted(members->list[i]);
    lock_give(&members->lock);
    return submitted;
}

void members_watch(struct members *members)
{
    lock_take(&members->lock);
    for (unsigned i = 0; i < members->count; i++)
        endpoint_watch(members->list[i]);
    lock_give(&members->lock);
}

void members_yield(struct members *members)
{
    struct endpoint *single = members_single(members);
    unsigned vain = 1;

    if (!have_submitted(members))
        vain += atomic_load_explicit(&members->vain, memory_order_relaxed);
    atomic_store_explicit(&members->vain, vain, memory_order_relaxed);
    if (single)
        endpoint_yield(single, vain);
    else if (vain > 1) {
        members_watch(members);
        sched_yield();
    }
}

static int open_descriptors(struct members *members)
{
    int rc = 0;

    if (members->epoll_fd >= 0)
        return 0;
    members->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    members->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (members->event_fd < 0 || members->epoll_fd < 0) {
        rc = -errno;
        goto fail;
    }
    rc = watch(members, members->event_fd);
    for (unsigned i = 0; rc == 0 && i < members->count; i++)
        rc = watch(members, endpoint_descriptor(members->list[i]));
    if (rc == 0)
        return 0;
fail:
    if (members->event_fd >= 0)
        close(members->event_fd);
    if (members->epoll_fd >= 0)
        close(members->epoll_fd);
    members->event_fd = members->epoll_fd = -1;
    return rc;
}

int members_descriptor(struct members *members)
{
    int rc;

    lock_take(&members->lock);
    rc = open_descriptors(members);
    if (rc == 0)
        rc = members->epoll_fd;
    lock_give(&members->lock);
    return rc;
}

bool members_quiet(struct members *members)
{
    uint64_t count;

    atomic_store(&members->asleep, true);
    if (members->event_fd >= 0)
        (void)!read(members->event_fd, &count, sizeof(count));
    return members_progress(members) == 0;
}

bool members_arm(struct members *members)
{
    if (members_single(members) || members_descriptor(members) < 0)
        return true;
    return members_quiet(members);
}

void members_sleep(struct members *members, int ms)
{
    struct endpoint *single = members_single(members);
    struct pollfd pollfd = {.events = POLLIN};

    if (ms < 0 || ms > SLICE_MS)
        ms = SLICE_MS;
    if (single) {
        endpoint_wait(single, ms);
        return;
    }
    pollfd.fd = members_descriptor(members);
    if (pollfd.fd < 0)
        sched_yield();
    else
        poll(&pollfd, 1, ms);
}

bool members_asleep(struct members *members)
{
    return atomic_load_explicit(&members->asleep, memory_order_relaxed);
}

void members_wake(struct members *members)
{
    uint64_t one = 1;

    if (!members_asleep(members))
        return;
    atomic_store(&members->asleep, false);
    if (members->event_fd >= 0 && write(members->event_fd, &one, sizeof(one)) < 0)
        return;
}

struct endpoint *members_single(struct members *members)
{
    return !members->lock.used && members->count == 1 ? members->list[0] : NULL;
}

uint64_t members_sum(struct members *members, uint64_t (*each)(struct endpoint *endpoint))
{
    uint64_t sum;

    lock_take(&members->lock);
    sum = members->retired;
    for (unsigned i = 0; i < members->count; i++)
        sum += each(members->list[i]);
    lock_give(&members->lock);
    return sum;
}

int64_t members_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
