/*
 * Owns the registration of memory with libfabric, in a thread of its own: to pin pages takes
 * milliseconds on real cards, and meanwhile the progress thread must serve all clients.
 *
 * Threads: the progress thread calls all functions of ofi_private.h; the registration thread runs
 * serve(). The threads pass indices of memories through two queues; the thread that has the index
 * owns the memory.
 *
 * Paired barriers of a queue:
 *     A  producer: item written, then tail stored (release)
 *        consumer: tail loaded (acquire), then the item read
 *     B  consumer: item read, then head stored (release). The producer never loads it, because a
 * queue has a place for each memory, and each memory is in at most one queue.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>
#include "daemon/fabric/ofi/ofi_private.h"

#define KEY_RETRIES 8

/* ---- the queues ------------------------------------------------------------------------------ */

static int queue_open(struct ofi_index_queue *queue, uint32_t count)
{
    uint32_t places = 1;

    while (places < count)
        places *= 2;
    queue->items = calloc(places, sizeof(*queue->items));
    queue->mask = places - 1;
    atomic_init(&queue->tail, 0);
    atomic_init(&queue->head, 0);
    return queue->items ? 0 : -ENOMEM;
}

static void queue_push(struct ofi_index_queue *queue, uint32_t item)
{
    uint32_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);

    queue->items[tail & queue->mask] = item;
    atomic_store_explicit(&queue->tail, tail + 1, memory_order_release); /* A */
}

static bool queue_empty(struct ofi_index_queue *queue)
{
    return atomic_load_explicit(&queue->tail, memory_order_acquire) ==
           atomic_load_explicit(&queue->head, memory_order_relaxed);
}

static bool queue_pop(struct ofi_index_queue *queue, uint32_t *item)
{
    uint32_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);

    if (atomic_load_explicit(&queue->tail, memory_order_acquire) == head) /* A */
        return false;
    *item = queue->items[head & queue->mask];
    atomic_store_explicit(&queue->head, head + 1, memory_order_release); /* B */
    return true;
}

/* ---- the registration thread ----------------------------------------------------------------- */

static uint64_t provider_access(uint32_t access)
{
    uint64_t flags = FI_READ | FI_WRITE;

    if (access & FABRIC_REMOTE_READ)
        flags |= FI_REMOTE_READ;
    if (access & FABRIC_REMOTE_WRITE)
        flags |= FI_REMOTE_WRITE;
    return flags;
}

static int try_register(struct ofi_registrar *r, struct ofi_memory *memory)
{
    uint64_t key = 0;

    if (!(r->mode & FI_MR_PROV_KEY)) {
        if (getrandom(&key, sizeof(key), 0) != sizeof(key))
            return -EIO;
        key &= r->key_mask;
    }
    return fi_mr_reg(r->domain, (void *)(uintptr_t)memory->base, memory->length,
                     provider_access(memory->access), 0, key, 0, &memory->registration, NULL);
}

static int add(struct ofi_registrar *r, struct ofi_memory *memory)
{
    int rc = -FI_ENOKEY;

    for (int i = 0; rc == -FI_ENOKEY && i < KEY_RETRIES; i++)
        rc = try_register(r, memory);
    if (rc)
        return ofi_error(rc);
    if (r->mode & FI_MR_ENDPOINT) {
        rc = fi_mr_bind(memory->registration, &r->endpoint->fid, 0);
        if (!rc)
            rc = fi_mr_enable(memory->registration);
        if (rc)
            goto undo;
    }
    memory->key = fi_mr_key(memory->registration);
    /* Newer versions of libfabric give no key to memory that no peer may reach. */
    if (memory->key == FI_KEY_NOTAVAIL &&
        memory->access & (FABRIC_REMOTE_READ | FABRIC_REMOTE_WRITE)) {
        rc = -EOPNOTSUPP; /* the provider's keys have more than 64 bits */
        goto undo;
    }
    memory->descriptor = fi_mr_desc(memory->registration);
    memory->address = r->mode & FI_MR_VIRT_ADDR ? memory->base : 0;
    return 0;

undo:
    (void)fi_close(&memory->registration->fid);
    memory->registration = NULL;
    return ofi_error(rc);
}

static int drop(struct ofi_memory *memory)
{
    int rc = fi_close(&memory->registration->fid);

    if (rc)
        return ofi_error(rc);
    memory->registration = NULL;
    memory->descriptor = NULL;
    return 0;
}

static void *serve(void *argument)
{
    struct ofi_registrar *r = argument;
    uint32_t index;

    for (;;) {
        while (sem_wait(&r->wake) != 0)
            ; /* EINTR */
        if (atomic_load_explicit(&r->stop, memory_order_acquire))
            return NULL;
        while (queue_pop(&r->requests, &index)) {
            struct ofi_memory *memory = &r->memories[index];

            memory->status = memory->registration ? drop(memory) : add(r, memory);
            queue_push(&r->results, index);
            (void)eventfd_write(r->result_event, 1);
        }
    }
}

/* ---- the progress thread --------------------------------------------------------------------- */

int ofi_registrar_open(struct ofi_registrar *r, struct fid_domain *domain, struct fid_ep *endpoint,
                       const struct fi_info *info, uint32_t count)
{
    size_t key_size = info->domain_attr->mr_key_size;
    int rc;

    r->domain = domain;
    r->endpoint = endpoint;
    r->mode = (uint64_t)info->domain_attr->mr_mode;
    r->key_mask = key_size < 8 ? (UINT64_C(1) << (8 * key_size)) - 1 : UINT64_MAX;
    r->count = count;
    r->result_event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (r->result_event < 0)
        return -errno;
    if (sem_init(&r->wake, 0, 0) != 0) {
        rc = -errno;
        goto no_semaphore;
    }
    rc = -ENOMEM;
    r->memories = calloc(count, sizeof(*r->memories));
    if (!r->memories || places_open(&r->places, count) || queue_open(&r->requests, count) ||
        queue_open(&r->results, count))
        goto no_memory;
    atomic_init(&r->stop, false);
    rc = -pthread_create(&r->thread, NULL, serve, r);
    if (rc)
        goto no_memory;
    return 0;

no_memory:
    free(r->requests.items);
    free(r->results.items);
    places_close(&r->places);
    free(r->memories);
    r->memories = NULL;
    sem_destroy(&r->wake);
no_semaphore:
    close(r->result_event);
    return rc;
}

void ofi_registrar_close(struct ofi_registrar *r)
{
    atomic_store_explicit(&r->stop, true, memory_order_release);
    sem_post(&r->wake);
    pthread_join(r->thread, NULL);
    for (uint32_t i = 0; i < r->count; i++)
        if (r->memories[i].registration)
            (void)fi_close(&r->memories[i].registration->fid);
    free(r->requests.items);
    free(r->results.items);
    places_close(&r->places);
    free(r->memories);
    sem_destroy(&r->wake);
    close(r->result_event);
}

static void request(struct ofi_registrar *r, uint32_t index)
{
    queue_push(&r->requests, index);
    sem_post(&r->wake);
}

int ofi_mem_add(struct fabric *fabric, void *base, uint64_t length, unsigned access,
                uint64_t cookie)
{
    struct ofi_registrar *r = &((struct ofi *)fabric)->registrar;
    uint32_t index;

    if (!base || length == 0 || length > SIZE_MAX - (uintptr_t)base)
        return -EINVAL;
    index = places_take(&r->places);
    if (index == PLACES_NONE)
        return -ENOSPC;

    struct ofi_memory *memory = &r->memories[index];

    memory->state = OFI_MEMORY_ADDING;
    memory->base = (uintptr_t)base;
    memory->length = length;
    memory->access = access;
    memory->cookie = cookie;
    request(r, index);
    return 0;
}

int ofi_mem_drop(struct fabric *fabric, uint32_t index, uint64_t cookie)
{
    struct ofi_registrar *r = &((struct ofi *)fabric)->registrar;

    if (index >= r->count || r->memories[index].state != OFI_MEMORY_LIVE)
        return -EINVAL;
    r->memories[index].state = OFI_MEMORY_DROPPING;
    r->memories[index].cookie = cookie;
    request(r, index);
    return 0;
}

uint32_t ofi_registrar_results(struct ofi_registrar *r)
{
    return atomic_load_explicit(&r->results.tail, memory_order_acquire); /* A */
}

int ofi_registrar_collect(struct ofi_registrar *r, uint32_t end, struct fabric_event *events,
                          int room)
{
    uint32_t index;
    int n = 0;

    while (n < room && atomic_load_explicit(&r->results.head, memory_order_relaxed) != end &&
           queue_pop(&r->results, &index)) {
        struct ofi_memory *memory = &r->memories[index];
        bool adding = memory->state == OFI_MEMORY_ADDING;
        bool live = adding == (memory->status == 0); /* added now, or could not be dropped */

        events[n++] = (struct fabric_event){
            .kind = adding ? FABRIC_ADDED : FABRIC_DROPPED,
            .status = memory->status,
            .cookie = memory->cookie,
            .memory = {index, memory->address, memory->key},
        };
        if (live) {
            memory->state = OFI_MEMORY_LIVE;
        } else {
            memory->state = OFI_MEMORY_FREE;
            places_give(&r->places, index);
        }
    }
    return n;
}

bool ofi_registrar_arm(struct ofi_registrar *r)
{
    eventfd_t value;

    /* A result that comes after this read makes the eventfd readable again. */
    (void)eventfd_read(r->result_event, &value);
    return !queue_empty(&r->results);
}
