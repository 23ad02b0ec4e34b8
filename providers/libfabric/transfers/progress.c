/*
 * Takes the events of an endpoint's context, and sleeps until more come. Thread: the one that holds
 * the endpoint's lock.
 */
#include <errno.h>
#include <pwc/counter.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <time.h>
#include "providers/libfabric/objects/endpoint.h"
#include "providers/libfabric/objects/info.h"

#define EVENTS 32
/* Events that one call takes before it returns to the application. */
#define EVENTS_MAX 512
/* After this time a wait returns, to look at errors and at its other endpoints. */
#define SLICE_MS 100
/* Between two looks whether the daemon lives, and the looks in vain that pwc_yield makes one for.
 */
#define WATCH_MS    1000
#define WATCH_LOOKS 100

/* Adds an entry for a peer's operation with data. */
static void take_remote(struct endpoint *endpoint, const struct pwc_event *event)
{
    struct cq_completion completion = {
        .entry = {.flags = FI_REMOTE_CQ_DATA | FI_REMOTE_WRITE |
                           (event->op == PWC_OP_ATOMIC ? FI_ATOMIC : FI_RMA),
                  .len = event->length,
                  .data = event->id},
        .source = FI_ADDR_NOTAVAIL,
    };

    if (!endpoint->rx_cq || event->status < 0)
        return;
    completion.source = av_number(endpoint->av, event->peer);
    cq_add(endpoint->rx_cq, &completion, false);
}

static void take(struct endpoint *endpoint, const struct pwc_event *event)
{
    struct pending *pending;

    if (event->kind == PWC_REMOTE)
        take_remote(endpoint, event);
    else if (event->kind == PWC_LOCAL && event->id != 0) {
        pending = (struct pending *)(uintptr_t)event->id;
        pending->end(endpoint, pending, event);
    }
}

/* Returns the kinds of events to take now. While the queue is full, events of peers stay in their
 * ring, which in the end stops the senders. */
static unsigned kinds_of(struct endpoint *endpoint)
{
    bool room = !endpoint->rx_cq || cq_has_room(endpoint->rx_cq);

    return PWC_LOCAL | (room ? PWC_REMOTE : 0);
}

static int session_over(struct endpoint *endpoint, int why)
{
    if (endpoint->over == 0) {
        info_warn("the session is over: %s", pwc_strerror(why));
        endpoint->over = why;
    }
    operations_end_all(endpoint, why);
    return why;
}

/* Takes events until a probe finds none, or there were many. Returns what the last probe did, and
 * how many there were. */
static int take_all(struct endpoint *endpoint, int *taken)
{
    struct pwc_event events[EVENTS];
    int n;

    *taken = 0;
    do {
        n = pwc_probe_n(endpoint->ctx, PWC_ANY, kinds_of(endpoint), events, EVENTS);
        for (int i = 0; i < n; i++)
            take(endpoint, &events[i]);
        *taken += n > 0 ? n : 0;
    } while (n > 0 && *taken < EVENTS_MAX);
    return n;
}

/* Does what events have made possible. Returns whether this may have left events, which make no
 * descriptor readable: to unbind a remote keeps some, and an operation may end at once. */
static bool continue_others(struct endpoint *endpoint)
{
    bool submits = endpoint->operations.waiting > 0;
    bool unbinds = false;

    if (submits)
        again_submit(endpoint);
    if (endpoint->av && av_removals(endpoint->av) != endpoint->remotes.removals)
        remotes_review(endpoint);
    if (endpoint->remotes.retired)
        unbinds = remotes_unbind(&endpoint->remotes);
    return submits || unbinds;
}

int endpoint_progress_held(struct endpoint *endpoint)
{
    int later = 0, taken;
    int n = take_all(endpoint, &taken);

    if (continue_others(endpoint))
        n = take_all(endpoint, &later);
    if (n == -ESHUTDOWN || n == -EPROTO)
        return session_over(endpoint, n);
    /* Later events may be what operations wait for. */
    return n != 0 || (later > 0 && endpoint->operations.waiting > 0);
}

int endpoint_progress(struct endpoint *endpoint)
{
    int rc;

    lock_take(&endpoint->lock);
    rc = endpoint_progress_held(endpoint);
    lock_give(&endpoint->lock);
    return rc;
}

void endpoint_mark_operations(struct endpoint *endpoint)
{
    lock_take(&endpoint->lock);
    operations_mark(&endpoint->operations);
    lock_give(&endpoint->lock);
}

int endpoint_flush(struct endpoint *endpoint, int ms)
{
    bool busy;

    lock_take(&endpoint->lock);
    (void)pwc_flush(endpoint->ctx, PWC_ANY, ms);
    /* The flush has kept events, which make no descriptor readable. Taking them may submit
     * operations again, so only what is left afterwards shows the end. */
    busy = endpoint_progress_held(endpoint) >= 0 &&
           (endpoint->operations.marked > 0 || endpoint->remotes.reads > 0);
    lock_give(&endpoint->lock);
    return busy ? -FI_EBUSY : 0;
}

bool endpoint_take_submitted(struct endpoint *endpoint)
{
    return atomic_load_explicit(&endpoint->submitted, memory_order_relaxed) &&
           atomic_exchange_explicit(&endpoint->submitted, false, memory_order_relaxed);
}

void endpoint_yield_held(struct endpoint *endpoint, unsigned looks)
{
    (void)pwc_yield(endpoint->ctx, kinds_of(endpoint) | PWC_MESSAGE, looks);
}

void endpoint_yield(struct endpoint *endpoint, unsigned looks)
{
    if (!endpoint->lock.used)
        endpoint_yield_held(endpoint, looks);
    else if (looks > 1) {
        endpoint_watch(endpoint);
        sched_yield();
    }
}

void endpoint_watch(struct endpoint *endpoint)
{
    int64_t now = members_now();

    if (now - atomic_load_explicit(&endpoint->watched, memory_order_relaxed) < WATCH_MS)
        return;
    atomic_store_explicit(&endpoint->watched, now, memory_order_relaxed);
    lock_take(&endpoint->lock);
    endpoint_yield_held(endpoint, WATCH_LOOKS);
    lock_give(&endpoint->lock);
}

void endpoint_wait(struct endpoint *endpoint, int ms)
{
    struct pwc_event event;
    int rc = pwc_wait(endpoint->ctx, PWC_ANY, kinds_of(endpoint) | PWC_MESSAGE, &event, ms);

    if (rc == 1)
        take(endpoint, &event);
    else if (rc < 0)
        endpoint_nap(ms);
}

int endpoint_descriptor(struct endpoint *endpoint)
{
    int fd;

    lock_take(&endpoint->lock);
    fd = pwc_fd(endpoint->ctx);
    lock_give(&endpoint->lock);
    return fd;
}

uint64_t endpoint_arrived(struct endpoint *endpoint)
{
    uint64_t arrived = 0;

    lock_take(&endpoint->lock);
    if (pwc_counter_read(endpoint->ctx, PWC_COUNT_ARRIVED, &arrived) == 0)
        endpoint->arrived = arrived;
    /* Earlier counts stay when the session is over. */
    arrived = endpoint->arrived;
    lock_give(&endpoint->lock);
    return arrived;
}

void endpoint_wait_arrived(struct endpoint *endpoint, uint64_t threshold, int ms)
{
    int rc = pwc_counter_wait(endpoint->ctx, PWC_COUNT_ARRIVED, threshold,
                              ms < 0 || ms > SLICE_MS ? SLICE_MS : ms);

    if (rc < 0 && rc != -ETIMEDOUT)
        endpoint_nap(ms);
}

void endpoint_nap(int ms)
{
    struct timespec time = {.tv_nsec = 100000};

    if (ms != 0)
        nanosleep(&time, NULL);
}
