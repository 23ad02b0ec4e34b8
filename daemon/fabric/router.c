/* The router between the net and the loop. Thread: the progress thread. */
#include "daemon/fabric/router.h"

#include <errno.h>
#include <stdlib.h>

#define MEMORIES_DEFAULT 4096u

enum memory_state {
    MEMORY_FREE = 0,
    MEMORY_ADDING = 1,
    MEMORY_READY = 2,
    MEMORY_DROPPING = 3,
};

/* One registration with both fabrics. Owned by the router. */
struct router_memory {
    uint32_t state;
    uint32_t waiting; /* answers still to come */
    int32_t status;   /* of the first that failed */
    bool refused;     /* one of the two could not add it: never given out */
    uint32_t added;   /* bit 0: with the net, bit 1: with the loop */
    uint64_t length;
    uint64_t cookie;
    struct fabric_memory net;
    struct fabric_memory loop;
    uint32_t next; /* of the same hash */
};

struct router {
    struct fabric base;
    struct fabric *net;
    struct fabric *loop;
    uint32_t self;
    uint32_t memories_max;
    uint32_t first;       /* side that is polled first: 0 the net, 1 the loop */
    uint32_t ready_count; /* finished answers not yet given to poll */
    struct router_memory *memories;
    struct fabric_event *ready;
    uint32_t *hash; /* by the net's key: first memory, or UINT32_MAX */
    uint32_t hash_mask;
};

static struct router *router_of(struct fabric *fabric)
{
    return (struct router *)fabric;
}

static uint32_t hash_of(const struct router *r, uint64_t key)
{
    return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & r->hash_mask;
}

static void hash_insert(struct router *r, uint32_t index)
{
    uint32_t *slot = &r->hash[hash_of(r, r->memories[index].net.key)];

    r->memories[index].next = *slot;
    *slot = index;
}

static void hash_remove(struct router *r, uint32_t index)
{
    uint32_t *link = &r->hash[hash_of(r, r->memories[index].net.key)];

    while (*link != UINT32_MAX && *link != index)
        link = &r->memories[*link].next;
    if (*link == index)
        *link = r->memories[index].next;
}

/* Turns the net's name of our own memory into the loop's. */
static int translate(const struct router *r, uint64_t *address, uint64_t *key, uint64_t length)
{
    for (uint32_t i = r->hash[hash_of(r, *key)]; i != UINT32_MAX; i = r->memories[i].next) {
        const struct router_memory *m = &r->memories[i];
        uint64_t offset = *address - m->net.address;

        if (m->net.key != *key || !(offset <= m->length && length <= m->length - offset))
            continue;
        *address = m->loop.address + offset;
        *key = m->loop.key;
        return 0;
    }
    return -EKEYREJECTED;
}

static void router_close(struct fabric *fabric)
{
    struct router *r = router_of(fabric);

    r->net->ops->close(r->net);
    r->loop->ops->close(r->loop);
    free(r->memories);
    free(r->ready);
    free(r->hash);
    free(r);
}

static int router_address(struct fabric *fabric, struct fabric_address *out)
{
    return fabric_address_of(router_of(fabric)->net, out);
}

static struct fabric *side_of(struct router *r, uint32_t peer)
{
    return peer == r->self ? r->loop : r->net;
}

static int router_connect(struct fabric *fabric, uint32_t peer,
                          const struct fabric_address *address)
{
    struct router *r = router_of(fabric);
    struct fabric_address own;
    int status;

    if (peer != r->self)
        return fabric_connect(r->net, peer, address);
    status = fabric_address_of(r->loop, &own); /* the engine knows only the net's address */
    return status < 0 ? status : fabric_connect(r->loop, peer, &own);
}

static int router_disconnect(struct fabric *fabric, uint32_t peer)
{
    return fabric_disconnect(side_of(router_of(fabric), peer), peer);
}

/* One answer has come: with the last, the registration is ready, or what succeeded is taken back.
 */
static void memory_answered(struct router *r, uint32_t index)
{
    struct router_memory *m = &r->memories[index];
    struct fabric_event *event;

    if (--m->waiting > 0)
        return;
    if (m->state == MEMORY_ADDING && m->status < 0) {
        uint32_t added = m->added;

        m->state = MEMORY_DROPPING;
        m->refused = true;
        m->added = 0;
        m->waiting = 1;
        if (added & 1 && fabric_mem_drop(r->net, m->net.index, index) == 0)
            m->waiting++;
        if (added & 2 && fabric_mem_drop(r->loop, m->loop.index, index) == 0)
            m->waiting++;
        memory_answered(r, index);
        return;
    }
    event = &r->ready[r->ready_count++];
    *event = (struct fabric_event){.status = m->status, .cookie = m->cookie};
    if (m->state == MEMORY_ADDING) {
        m->state = MEMORY_READY;
        event->kind = FABRIC_ADDED;
        event->memory =
            (struct fabric_memory){.index = index, .address = m->net.address, .key = m->net.key};
        hash_insert(r, index);
    } else {
        event->kind = m->refused ? FABRIC_ADDED : FABRIC_DROPPED; /* the answer to mem_add, late */
        m->state = MEMORY_FREE;
    }
}

static int router_mem_add(struct fabric *fabric, void *base, uint64_t length, unsigned access,
                          uint64_t cookie)
{
    struct router *r = router_of(fabric);
    uint32_t i = 0;
    int status;

    while (i < r->memories_max && r->memories[i].state != MEMORY_FREE)
        i++;
    if (i == r->memories_max)
        return -ENOSPC;
    status = fabric_mem_add(r->net, base, length, access, i);
    if (status < 0)
        return status;
    r->memories[i] = (struct router_memory){
        .state = MEMORY_ADDING, .waiting = 2, .length = length, .cookie = cookie};
    status = fabric_mem_add(r->loop, base, length, access, i);
    if (status < 0) {
        r->memories[i].status = status;
        r->memories[i].waiting = 1;
    }
    return 0;
}

static struct router_memory *ready_memory(struct router *r, uint32_t index)
{
    return index < r->memories_max && r->memories[index].state == MEMORY_READY ? &r->memories[index]
                                                                               : NULL;
}

static int router_mem_drop(struct fabric *fabric, uint32_t memory, uint64_t cookie)
{
    struct router *r = router_of(fabric);
    struct router_memory *m = ready_memory(r, memory);
    int status;

    if (!m)
        return -EINVAL;
    status = fabric_mem_drop(r->net, m->net.index, memory);
    if (status < 0)
        return status;
    hash_remove(r, memory);
    m->state = MEMORY_DROPPING;
    m->cookie = cookie;
    m->status = 0;
    m->waiting = 1;
    if (fabric_mem_drop(r->loop, m->loop.index, memory) == 0)
        m->waiting++;
    return 0;
}

static int router_write(struct fabric *fabric, const struct fabric_write *write)
{
    struct router *r = router_of(fabric);
    struct fabric_write copy = *write;
    const struct router_memory *m = ready_memory(r, write->memory);

    if (!m)
        return -EINVAL;
    if (write->peer != r->self) {
        copy.memory = m->net.index;
        return fabric_post_write(r->net, &copy);
    }
    copy.memory = m->loop.index;
    if (translate(r, &copy.remote_address, &copy.remote_key, copy.length) < 0)
        return -EKEYREJECTED;
    return fabric_post_write(r->loop, &copy);
}

static int router_read(struct fabric *fabric, const struct fabric_read *read)
{
    struct router *r = router_of(fabric);
    struct fabric_read copy = *read;
    const struct router_memory *m = ready_memory(r, read->memory);

    if (!m)
        return -EINVAL;
    if (read->peer != r->self) {
        copy.memory = m->net.index;
        return fabric_post_read(r->net, &copy);
    }
    copy.memory = m->loop.index;
    if (translate(r, &copy.remote_address, &copy.remote_key, copy.length) < 0)
        return -EKEYREJECTED;
    return fabric_post_read(r->loop, &copy);
}

/* Takes the answers about memory out of a side's events; returns how many events remain. */
static int sift(struct router *r, struct fabric_event *events, int n, uint32_t side)
{
    int kept = 0;

    for (int i = 0; i < n; i++) {
        const struct fabric_event *event = &events[i];
        uint32_t index = (uint32_t)event->cookie;
        struct router_memory *m;

        if (event->kind != FABRIC_ADDED && event->kind != FABRIC_DROPPED) {
            events[kept++] = *event;
            continue;
        }
        m = &r->memories[index];
        if (event->kind == FABRIC_ADDED && event->status == 0) {
            *(side == 0 ? &m->net : &m->loop) = event->memory;
            m->added |= 1u << side;
        } else if (event->status < 0 && m->status == 0) {
            m->status = event->status;
        }
        memory_answered(r, index);
    }
    return kept;
}

/* Delivers finished answers; returns how many. */
static int give_ready(struct router *r, struct fabric_event *events, int room)
{
    int given = 0;

    while (given < (int)r->ready_count && given < room) {
        events[given] = r->ready[given];
        given++;
    }
    r->ready_count -= (uint32_t)given;
    for (uint32_t i = 0; given > 0 && i < r->ready_count; i++)
        r->ready[i] = r->ready[i + (uint32_t)given];
    return given;
}

/* The two sides are polled first in turn, so that neither one that fills all the room nor one that
 * fails keeps the other's events away. */
static int router_poll(struct fabric *fabric, struct fabric_event *events, int room)
{
    struct router *r = router_of(fabric);
    struct fabric *sides[] = {r->net, r->loop};
    int n = give_ready(r, events, room), status = 0;

    r->first ^= 1;
    for (uint32_t i = 0; i < 2 && n < room; i++) {
        uint32_t side = r->first ^ i;
        int got = fabric_poll(sides[side], events + n, room - n);

        if (got < 0)
            status = got;
        else
            n += sift(r, events + n, got, side);
    }
    n += give_ready(r, events + n, room - n);
    return n > 0 ? n : status;
}

static int router_arm(struct fabric *fabric, int *descriptor)
{
    struct router *r = router_of(fabric);
    int unused, status;

    if (r->ready_count > 0)
        return -EAGAIN;
    status = fabric_arm(r->loop, &unused);
    if (status == -EAGAIN)
        return status;
    return fabric_arm(r->net, descriptor);
}

static const struct fabric_ops router_ops = {
    .name = "router",
    .close = router_close,
    .address = router_address,
    .connect = router_connect,
    .disconnect = router_disconnect,
    .mem_add = router_mem_add,
    .mem_drop = router_mem_drop,
    .write = router_write,
    .read = router_read,
    .poll = router_poll,
    .arm = router_arm,
};

int router_open(const struct router_config *config, struct fabric *net, struct fabric *loop,
                struct fabric **out)
{
    uint32_t max = config->memories_max ? config->memories_max : MEMORIES_DEFAULT;
    uint32_t hash_size = 16;
    struct router *r = calloc(1, sizeof(*r));

    while (hash_size < 2 * max)
        hash_size *= 2;
    if (r) {
        r->memories = calloc(max, sizeof(*r->memories));
        r->ready = calloc(max, sizeof(*r->ready));
        r->hash = malloc(hash_size * sizeof(*r->hash));
    }
    if (!r || !r->memories || !r->ready || !r->hash) {
        net->ops->close(net);
        loop->ops->close(loop);
        if (r) {
            free(r->memories);
            free(r->ready);
            free(r->hash);
        }
        free(r);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < hash_size; i++)
        r->hash[i] = UINT32_MAX;
    r->base.ops = &router_ops;
    r->base.traits = net->traits;
    if (loop->traits.message_max < r->base.traits.message_max)
        r->base.traits.message_max = loop->traits.message_max;
    if (loop->traits.ordered_write_max < r->base.traits.ordered_write_max)
        r->base.traits.ordered_write_max = loop->traits.ordered_write_max;
    r->net = net;
    r->loop = loop;
    r->self = config->node;
    r->memories_max = max;
    r->hash_mask = hash_size - 1;
    *out = &r->base;
    return 0;
}
