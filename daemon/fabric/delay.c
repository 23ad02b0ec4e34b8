/*
 * Owns the delay decorator (delay.h): a heap of held writes and events, by the time when they are
 * due.
 *
 * Thread: the progress thread owns all of it.
 */
#include <errno.h>
#include <stdlib.h>
#include "daemon/fabric/delay.h"

#define DEFAULT_LEAST 1000
#define DEFAULT_MOST  10000
#define DEFAULT_HELD  4096
#define BATCH         64

/* A held item: an event for the caller, or a write for the inner fabric. */
struct held {
    uint64_t due;
    uint64_t sequence; /* keeps the order of equal times */
    bool is_write;
    union {
        struct fabric_event event;
        struct fabric_write write;
    };
};

struct delay {
    struct fabric fabric; /* first */
    struct fabric *inner;
    struct delay_config config;
    uint64_t random;
    uint64_t sequence;
    uint64_t last_due; /* of the last event: later events are not due before it, unless `reorder` is
                        * set */
    struct held *heap; /* heap[0] is due first */
    uint32_t count;
    uint32_t writes; /* writes in the heap: at most half, because their completions need room,
                      * too */
};

static struct delay *delay_of(struct fabric *fabric)
{
    return (struct delay *)fabric;
}

/* ---- the heap -------------------------------------------------------------------------------- */

static bool before(const struct held *a, const struct held *b)
{
    return a->due != b->due ? a->due < b->due : a->sequence < b->sequence;
}

static void swap(struct held *a, struct held *b)
{
    struct held t = *a;

    *a = *b;
    *b = t;
}

static void heap_add(struct delay *d, const struct held *item)
{
    uint32_t i = d->count++;

    d->heap[i] = *item;
    while (i > 0 && before(&d->heap[i], &d->heap[(i - 1) / 2])) {
        swap(&d->heap[i], &d->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
}

static struct held heap_take(struct delay *d)
{
    struct held first = d->heap[0];
    uint32_t i = 0;

    d->heap[0] = d->heap[--d->count];
    for (;;) {
        uint32_t least = i, left = 2 * i + 1, right = left + 1;

        if (left < d->count && before(&d->heap[left], &d->heap[least]))
            least = left;
        if (right < d->count && before(&d->heap[right], &d->heap[least]))
            least = right;
        if (least == i)
            return first;
        swap(&d->heap[i], &d->heap[least]);
        i = least;
    }
}

/* ---- holding back ---------------------------------------------------------------------------- */

/* The generator splitmix64: small, with a seed, good enough for random times. */
static uint64_t draw(struct delay *d)
{
    uint64_t z = d->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t later(struct delay *d)
{
    uint64_t span = d->config.most_ns - d->config.least_ns + 1;

    return d->config.clock() + d->config.least_ns + draw(d) % span;
}

static void hold_event(struct delay *d, const struct fabric_event *event)
{
    struct held item = {.due = later(d), .sequence = d->sequence++, .event = *event};

    if (!d->config.reorder && item.due < d->last_due)
        item.due = d->last_due;
    d->last_due = item.due;
    heap_add(d, &item);
}

static struct fabric_event ended(const struct fabric_write *w, int status)
{
    return (struct fabric_event){
        .kind = FABRIC_WRITTEN, .status = status, .peer = w->peer, .cookie = w->cookie};
}

static int delay_write(struct fabric *fabric, const struct fabric_write *w)
{
    struct delay *d = delay_of(fabric);

    if (!d->config.reorder)
        return fabric_post_write(d->inner, w);
    if (d->count == d->config.held_max || d->writes >= d->config.held_max / 2)
        return -EAGAIN;

    struct held item = {.due = later(d), .sequence = d->sequence++, .is_write = true, .write = *w};

    d->writes++;
    heap_add(d, &item);
    return 0;
}

/* Posts a write that is due. If this is refused, the write is held again, or ends with an error. */
static void let_go(struct delay *d, struct held *item)
{
    int rc = fabric_post_write(d->inner, &item->write);

    if (rc == -EAGAIN) {
        item->due = later(d);
        heap_add(d, item);
        return;
    }
    d->writes--;
    if (rc == 0)
        return;

    struct fabric_event event = ended(&item->write, rc);

    hold_event(d, &event);
}

/* Takes as many events of the inner fabric as there is room to hold. */
static int take_in(struct delay *d)
{
    struct fabric_event events[BATCH];
    uint32_t room = d->config.held_max - d->count;
    int n;

    if (room == 0)
        return 0;
    n = fabric_poll(d->inner, events, room < BATCH ? (int)room : BATCH);
    for (int i = 0; i < n; i++)
        hold_event(d, &events[i]);
    return n < 0 ? n : 0;
}

static int delay_poll(struct fabric *fabric, struct fabric_event *events, int room)
{
    struct delay *d = delay_of(fabric);
    int rc = take_in(d);

    if (rc < 0)
        return rc;

    uint64_t now = d->config.clock();
    int n = 0;

    while (n < room && d->count > 0 && d->heap[0].due <= now) {
        struct held item = heap_take(d);

        if (item.is_write)
            let_go(d, &item);
        else
            events[n++] = item.event;
    }
    return n;
}

static int delay_arm(struct fabric *fabric, int *descriptor)
{
    struct delay *d = delay_of(fabric);

    return d->count > 0 ? -EAGAIN : fabric_arm(d->inner, descriptor);
}

static void delay_silent(struct fabric *fabric)
{
    fabric_silent(delay_of(fabric)->inner);
}

static int delay_disconnect(struct fabric *fabric, uint32_t peer)
{
    struct delay *d = delay_of(fabric);

    for (uint32_t i = 0; i < d->count; i++) {
        struct held *item = &d->heap[i];

        if (item->is_write && item->write.peer == peer) {
            struct fabric_event event = ended(&item->write, -ECANCELED);

            item->is_write = false;
            item->event = event;
            d->writes--;
        }
    }
    return fabric_disconnect(d->inner, peer);
}

static int delay_connect(struct fabric *fabric, uint32_t peer, const struct fabric_address *address)
{
    (void)delay_disconnect(fabric, peer); /* a connect ends the operations of an earlier one, also
                                           * the writes that we hold */
    return fabric_connect(delay_of(fabric)->inner, peer, address);
}

/* ---- passed on as they are ------------------------------------------------------------------- */

static int delay_address(struct fabric *fabric, struct fabric_address *out)
{
    return fabric_address_of(delay_of(fabric)->inner, out);
}

static int delay_mem_add(struct fabric *fabric, void *base, uint64_t length, unsigned access,
                         uint64_t cookie)
{
    return fabric_mem_add(delay_of(fabric)->inner, base, length, access, cookie);
}

static int delay_mem_drop(struct fabric *fabric, uint32_t memory, uint64_t cookie)
{
    return fabric_mem_drop(delay_of(fabric)->inner, memory, cookie);
}

static int delay_read(struct fabric *fabric, const struct fabric_read *r)
{
    return fabric_post_read(delay_of(fabric)->inner, r);
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void delay_close(struct fabric *fabric)
{
    struct delay *d = delay_of(fabric);

    fabric_close(d->inner);
    free(d->heap);
    free(d);
}

static const struct fabric_ops delay_ops = {
    .name = "delay",
    .close = delay_close,
    .address = delay_address,
    .connect = delay_connect,
    .disconnect = delay_disconnect,
    .mem_add = delay_mem_add,
    .mem_drop = delay_mem_drop,
    .write = delay_write,
    .read = delay_read,
    .poll = delay_poll,
    .arm = delay_arm,
    .silent = delay_silent,
};

int delay_open(struct fabric *inner, const struct delay_config *config, struct fabric **out)
{
    struct delay *d = calloc(1, sizeof(*d));

    if (!d)
        return -ENOMEM;
    d->fabric.ops = &delay_ops;
    d->fabric.traits = inner->traits;
    if (config->reorder)
        d->fabric.traits.ordered_write_max = 0;
    d->inner = inner;
    d->config = *config;
    d->random = config->seed;
    if (d->config.least_ns == 0 && d->config.most_ns == 0) {
        d->config.least_ns = DEFAULT_LEAST;
        d->config.most_ns = DEFAULT_MOST;
    }
    if (d->config.held_max == 0)
        d->config.held_max = DEFAULT_HELD;
    d->heap = calloc(d->config.held_max, sizeof(*d->heap));
    if (!d->config.clock || d->config.least_ns > d->config.most_ns || !d->heap) {
        int rc = d->heap ? -EINVAL : -ENOMEM;

        free(d->heap);
        free(d);
        return rc;
    }
    *out = &d->fabric;
    return 0;
}
