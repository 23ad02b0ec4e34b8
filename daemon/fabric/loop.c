/*
 * Owns the loop fabric (loop.h): one queue of operations in the order of their posts, which poll
 * carries out.
 *
 * As on a real fabric, memory is named by address and key, and checked strictly: a wrong key, or a
 * range that leaves its memory, ends the operation with -EACCES. The names are the loop's own, or
 * those of another fabric (loop_adopt). There is one peer, this node itself, under the number that
 * connect gave it.
 *
 * Thread: the progress thread owns all of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>
#include "daemon/fabric/loop.h"
#include "daemon/fabric/places.h"

#define PIECE              ((uint64_t)256 << 10) /* most bytes that one poll copies */
#define DEFAULT_OPERATIONS 4096
#define DEFAULT_MEMORIES   4096
#define NOBODY             UINT32_MAX

enum loop_stage {
    LOOP_COPYING = 0,
    LOOP_ANNOUNCING, /* the data is placed, and FABRIC_ARRIVED is due */
    LOOP_ENDING,     /* the operation's own event is due */
};

struct loop_operation {
    uint8_t *local; /* source of a write, destination of a read */
    uint64_t length;
    uint64_t done;
    uint64_t remote_address;
    uint64_t remote_key;
    uint64_t cookie;
    uint32_t peer;
    uint32_t immediate;
    int32_t status;
    uint8_t stage; /* enum loop_stage */
    uint8_t kind;  /* FABRIC_WRITTEN or FABRIC_READ */
    bool announce;
};

struct loop_memory {
    uint64_t base;
    uint64_t length;
    uint64_t address; /* the address by which it is named: the base, or that of loop_adopt */
    uint64_t key;
    uint64_t cookie;
    uint32_t next; /* the next memory of the same hash */
    uint32_t access;
    uint32_t event; /* FABRIC_ADDED or FABRIC_DROPPED that is due; 0: none */
    bool live;
};

struct loop {
    struct fabric fabric; /* first */
    struct loop_operation *operations;
    uint32_t mask;       /* places - 1 */
    uint32_t head, tail; /* of the queue; both only grow */
    struct loop_memory *memories;
    struct places places; /* of our own memories: free again when FABRIC_DROPPED is delivered */
    uint32_t memory_count;
    uint32_t *named;     /* by the hash of a key: the first live memory, or NOBODY */
    uint64_t index_mask; /* the bits of our own keys that are an index; the other bits are random */
    uint32_t named_mask;
    uint32_t *due; /* indices of memories with an event due, in order */
    uint32_t due_mask;
    uint32_t due_head, due_tail;
    uint32_t peer;  /* NOBODY: not connected */
    int descriptor; /* for the caller to sleep on; never readable, because no event comes during a
                     * sleep */
};

static struct loop *loop_of(struct fabric *fabric)
{
    return (struct loop *)fabric;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Whether a range from `offset` on is in the memory; an offset below 0 is a large number. */
static bool inside(const struct loop_memory *m, uint64_t offset, uint64_t length)
{
    return offset <= m->length && length <= m->length - offset;
}

static uint32_t *named_slot(const struct loop *loop, uint64_t key)
{
    return &loop->named[(uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & loop->named_mask];
}

static void name_memory(struct loop *loop, uint32_t index)
{
    uint32_t *slot = named_slot(loop, loop->memories[index].key);

    loop->memories[index].next = *slot;
    *slot = index;
}

static void forget_name(struct loop *loop, uint32_t index)
{
    uint32_t *link = named_slot(loop, loop->memories[index].key);

    while (*link != index)
        link = &loop->memories[*link].next;
    *link = loop->memories[index].next;
    loop->memories[index].live = false;
}

static void memory_event(struct loop *loop, uint32_t index, uint32_t event, uint64_t cookie)
{
    loop->memories[index].event = event;
    loop->memories[index].cookie = cookie;
    loop->due[loop->due_tail++ & loop->due_mask] = index;
}

static int loop_mem_add(struct fabric *fabric, void *base, uint64_t length, unsigned access,
                        uint64_t cookie)
{
    struct loop *loop = loop_of(fabric);
    uint64_t random;
    uint32_t index;

    if (!base || length == 0 || length > UINT64_MAX - (uintptr_t)base)
        return -EINVAL;
    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        return -EIO;
    index = places_take(&loop->places);
    if (index == PLACES_NONE)
        return -ENOSPC;
    loop->memories[index] = (struct loop_memory){
        .base = (uintptr_t)base,
        .length = length,
        .address = (uintptr_t)base,
        .key = (random & ~loop->index_mask) | index,
        .access = access,
        .live = true,
    };
    name_memory(loop, index);
    memory_event(loop, index, FABRIC_ADDED, cookie);
    return 0;
}

static int loop_mem_drop(struct fabric *fabric, uint32_t index, uint64_t cookie)
{
    struct loop *loop = loop_of(fabric);

    if (index >= loop->memory_count || !loop->memories[index].live || loop->memories[index].event)
        return -EINVAL;
    forget_name(loop, index);
    memory_event(loop, index, FABRIC_DROPPED, cookie);
    return 0;
}

int loop_adopt(struct fabric *fabric, const struct fabric_memory *name, void *base, uint64_t length,
               unsigned access)
{
    struct loop *loop = loop_of(fabric);

    if (name->index >= loop->memory_count || loop->memories[name->index].live)
        return -ENOSPC;
    loop->memories[name->index] = (struct loop_memory){
        .base = (uintptr_t)base,
        .length = length,
        .address = name->address,
        .key = name->key,
        .access = access,
        .live = true,
    };
    name_memory(loop, name->index);
    return 0;
}

void loop_disown(struct fabric *fabric, uint32_t index)
{
    struct loop *loop = loop_of(fabric);

    if (index < loop->memory_count && loop->memories[index].live)
        forget_name(loop, index);
}

static int deliver_memory(struct loop *loop, struct fabric_event *events, int room)
{
    int n = 0;

    while (n < room && loop->due_head != loop->due_tail) {
        uint32_t index = loop->due[loop->due_head++ & loop->due_mask];
        struct loop_memory *m = &loop->memories[index];

        events[n++] = (struct fabric_event){
            .kind = m->event,
            .cookie = m->cookie,
            .memory = {index, m->address, m->key},
        };
        if (m->event == FABRIC_DROPPED)
            places_give(&loop->places, index);
        m->event = 0;
    }
    return n;
}

/* Whether a range is in the memory with this index. */
static bool local_range(const struct loop *loop, uint32_t index, const void *address,
                        uint64_t length)
{
    return index < loop->memory_count && loop->memories[index].live &&
           inside(&loop->memories[index], (uintptr_t)address - loop->memories[index].base, length);
}

/* Finds the memory that an operation names by address and key, as a peer would; NULL: there is
 * none. */
static const struct loop_memory *remote_range(const struct loop *loop,
                                              const struct loop_operation *o)
{
    uint32_t needed = o->kind == FABRIC_WRITTEN ? FABRIC_REMOTE_WRITE : FABRIC_REMOTE_READ;

    for (uint32_t i = *named_slot(loop, o->remote_key); i != NOBODY; i = loop->memories[i].next) {
        const struct loop_memory *m = &loop->memories[i];

        if (m->key == o->remote_key && (m->access & needed) &&
            inside(m, o->remote_address - m->address, o->length))
            return m;
    }
    return NULL;
}

/* ---- operations ----------------------------------------------------------------------------- */

static int post(struct loop *loop, const struct loop_operation *o)
{
    if (loop->peer == NOBODY || o->peer != loop->peer)
        return -ENOTCONN;
    if (loop->tail - loop->head > loop->mask)
        return -EAGAIN;
    loop->operations[loop->tail++ & loop->mask] = *o;
    return 0;
}

static int loop_write(struct fabric *fabric, const struct fabric_write *w)
{
    struct loop *loop = loop_of(fabric);
    struct loop_operation o = {
        .local = (uint8_t *)(uintptr_t)w->source,
        .length = w->length,
        .remote_address = w->remote_address,
        .remote_key = w->remote_key,
        .cookie = w->cookie,
        .peer = w->peer,
        .immediate = w->immediate,
        .kind = FABRIC_WRITTEN,
        .announce = w->announce,
    };

    if (!local_range(loop, w->memory, w->source, w->length))
        return -EINVAL;
    return post(loop, &o);
}

static int loop_read(struct fabric *fabric, const struct fabric_read *r)
{
    struct loop *loop = loop_of(fabric);
    struct loop_operation o = {
        .local = r->destination,
        .length = r->length,
        .remote_address = r->remote_address,
        .remote_key = r->remote_key,
        .cookie = r->cookie,
        .peer = r->peer,
        .kind = FABRIC_READ,
    };

    if (!local_range(loop, r->memory, r->destination, r->length))
        return -EINVAL;
    return post(loop, &o);
}

/* Copies what the budget allows. The key is checked for each piece, because memory may be dropped
 * in between. */
static void copy(struct loop *loop, struct loop_operation *o, uint64_t *budget)
{
    uint64_t left = o->length - o->done;
    uint64_t now = left < *budget ? left : *budget;
    const struct loop_memory *m = remote_range(loop, o);
    uint8_t *local = o->local + o->done, *remote;

    if (!m) {
        o->status = -EACCES;
        o->stage = LOOP_ENDING;
        return;
    }
    remote = (uint8_t *)(uintptr_t)m->base + (o->remote_address - m->address) + o->done;
    memmove(o->kind == FABRIC_WRITTEN ? remote : local, o->kind == FABRIC_WRITTEN ? local : remote,
            now);
    o->done += now;
    *budget -= now;
    if (o->done == o->length)
        o->stage = o->announce ? LOOP_ANNOUNCING : LOOP_ENDING;
}

static int loop_poll(struct fabric *fabric, struct fabric_event *events, int room)
{
    struct loop *loop = loop_of(fabric);
    uint64_t budget = PIECE;
    int n = deliver_memory(loop, events, room);

    while (n < room && loop->head != loop->tail) {
        struct loop_operation *o = &loop->operations[loop->head & loop->mask];

        if (o->stage == LOOP_COPYING)
            copy(loop, o, &budget);
        if (o->stage == LOOP_COPYING)
            break; /* the budget is spent */
        if (o->stage == LOOP_ANNOUNCING) {
            events[n++] = (struct fabric_event){
                .kind = FABRIC_ARRIVED, .peer = o->peer, .immediate = o->immediate};
            o->stage = LOOP_ENDING;
            continue;
        }
        events[n++] = (struct fabric_event){
            .kind = o->kind, .status = o->status, .peer = o->peer, .cookie = o->cookie};
        /* When the ring is empty, start at its beginning again, so that few of its pages are
         * used. */
        if (++loop->head == loop->tail)
            loop->head = loop->tail = 0;
    }
    return n;
}

static int loop_arm(struct fabric *fabric, int *descriptor)
{
    struct loop *loop = loop_of(fabric);

    if (loop->head != loop->tail || loop->due_head != loop->due_tail)
        return -EAGAIN;
    *descriptor = loop->descriptor;
    return 0;
}

/* ---- the peer ------------------------------------------------------------------------------- */

static int loop_address(struct fabric *fabric, struct fabric_address *out)
{
    static const char name[] = "loop";

    memset(out, 0, sizeof(*out));
    out->size = sizeof(name);
    memcpy(out->bytes, name, sizeof(name));
    return 0;
}

static int loop_disconnect(struct fabric *fabric, uint32_t peer)
{
    struct loop *loop = loop_of(fabric);

    if (peer != loop->peer)
        return 0;
    loop->peer = NOBODY;
    for (uint32_t i = loop->head; i != loop->tail; i++) {
        struct loop_operation *o = &loop->operations[i & loop->mask];

        if (o->stage == LOOP_ENDING)
            continue; /* its outcome is known */
        o->status = -ECANCELED;
        o->stage = LOOP_ENDING;
    }
    return 0;
}

static int loop_connect(struct fabric *fabric, uint32_t peer, const struct fabric_address *address)
{
    struct loop *loop = loop_of(fabric);
    struct fabric_address ours;

    (void)loop_address(fabric, &ours);
    if (peer == NOBODY || address->size != ours.size ||
        memcmp(address->bytes, ours.bytes, ours.size) != 0)
        return -EINVAL;
    (void)loop_disconnect(fabric, loop->peer);
    loop->peer = peer;
    return 0;
}

/* ---- opening and closing -------------------------------------------------------------------- */

static void loop_close(struct fabric *fabric)
{
    struct loop *loop = loop_of(fabric);

    if (loop->descriptor >= 0)
        close(loop->descriptor);
    places_close(&loop->places);
    free(loop->due);
    free(loop->named);
    free(loop->memories);
    free(loop->operations);
    free(loop);
}

static const struct fabric_ops loop_ops = {
    .name = "loop",
    .close = loop_close,
    .address = loop_address,
    .connect = loop_connect,
    .disconnect = loop_disconnect,
    .mem_add = loop_mem_add,
    .mem_drop = loop_mem_drop,
    .write = loop_write,
    .read = loop_read,
    .poll = loop_poll,
    .arm = loop_arm,
};

static uint32_t power_of_two(uint32_t count)
{
    uint32_t power = 1;

    while (power < count)
        power *= 2;
    return power;
}

int loop_open(const struct loop_config *config, struct fabric **out)
{
    uint32_t operations =
        power_of_two(config->operations_max ? config->operations_max : DEFAULT_OPERATIONS);
    uint32_t memories = config->memories_max ? config->memories_max : DEFAULT_MEMORIES;
    struct loop *loop = calloc(1, sizeof(*loop));
    int rc = -ENOMEM;

    if (!loop)
        return rc;
    loop->fabric.ops = &loop_ops;
    loop->fabric.traits = (struct fabric_traits){
        .message_max = UINT64_MAX,
        .ordered_write_max = UINT64_MAX,
        .can_sleep = true,
    };
    loop->peer = NOBODY;
    loop->mask = operations - 1;
    loop->memory_count = memories;
    loop->due_mask = power_of_two(memories) - 1;
    loop->index_mask = loop->due_mask;
    loop->named_mask = 2 * loop->due_mask + 1;
    loop->operations = calloc(operations, sizeof(*loop->operations));
    loop->memories = calloc(memories, sizeof(*loop->memories));
    loop->due = calloc(power_of_two(memories), sizeof(*loop->due));
    loop->named = malloc(2 * power_of_two(memories) * sizeof(*loop->named));
    loop->descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (loop->descriptor < 0)
        rc = -errno;
    if (!loop->operations || !loop->memories || !loop->due || !loop->named ||
        places_open(&loop->places, memories) < 0 || loop->descriptor < 0) {
        loop_close(&loop->fabric);
        return rc;
    }
    for (uint32_t i = 0; i <= loop->named_mask; i++)
        loop->named[i] = NOBODY;
    *out = &loop->fabric;
    return 0;
}
