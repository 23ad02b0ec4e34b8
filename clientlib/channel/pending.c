/*
 * Owns the slots of operations in flight. Thread: the one that owns the context.
 */
#include "clientlib/channel/pending.h"
#include "shm_ring/fault.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define NO_SLOT UINT32_MAX

static size_t slot_bytes(uint32_t capacity)
{
    return capacity * sizeof(struct pending_slot);
}

static size_t id_bytes(uint32_t capacity)
{
    return (size_t)capacity * SESSION_ID_MAX;
}

static void *map_lazily(size_t size)
{
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return base == MAP_FAILED ? NULL : base;
}

int pending_open(struct pending_slots *p, uint32_t local_limit)
{
    uint32_t capacity = local_limit / event_bytes(0);

    *p = (struct pending_slots){.capacity = capacity, .free_slot = NO_SLOT};
    p->slots = map_lazily(slot_bytes(capacity));
    p->ids = map_lazily(id_bytes(capacity));
    if (p->slots && p->ids)
        return 0;
    pending_close(p);
    return -ENOMEM;
}

void pending_close(struct pending_slots *p)
{
    if (p->slots)
        munmap(p->slots, slot_bytes(p->capacity));
    if (p->ids)
        munmap(p->ids, id_bytes(p->capacity));
    p->slots = NULL;
    p->ids = NULL;
}

static uint8_t *id_of(struct pending_slots *p, uint32_t slot)
{
    return p->ids + (size_t)slot * SESSION_ID_MAX;
}

int64_t pending_begin(struct pending_slots *p, const pwc_cid *id, unsigned flags, void *destination,
                      const void *shadow, uint64_t length)
{
    uint32_t number = p->free_slot;
    struct pending_slot *slot;

    if (number != NO_SLOT) {
        p->free_slot = p->slots[number].next_free;
    } else {
        if (p->fresh == p->capacity)
            return -EAGAIN;
        number = p->fresh++;
    }
    slot = &p->slots[number];
    *slot = (struct pending_slot){
        .id = id->size == 0 ? id->value : 0,
        .destination = destination,
        .shadow = shadow,
        .length = length,
        .id_len = (uint16_t)id->size,
        .silent = flags & SUBMIT_NO_LCE,
        .request = flags & SUBMIT_SLOT,
        .busy = true,
    };
    if (id->size > 0)
        memcpy(id_of(p, number), id->data, id->size);
    p->busy++;
    return number;
}

void pending_cancel(struct pending_slots *p, uint32_t number)
{
    struct pending_slot *slot = &p->slots[number];

    slot->busy = false;
    slot->next_free = p->free_slot;
    p->free_slot = number;
    p->busy--;
}

int pending_settle(struct pending_slots *p, struct event_record *event)
{
    struct pending_slot *slot;

    if (event->id_len != 0 || event->id >= p->fresh || !p->slots[event->id].busy)
        return -EPROTO;

    uint32_t number = (uint32_t)event->id;

    slot = &p->slots[number];
    if (event->status == 0 && slot->destination)
        memcpy(slot->destination, slot->shadow, slot->length);
    FAULT(SLOT_SETTLED);
    if (!slot->request)
        event->op &= (uint8_t)~EVENT_SLOT;
    event->id = slot->id;
    event->id_len = slot->id_len;
    event->size = event_bytes(slot->id_len);
    memcpy(event + 1, id_of(p, number), slot->id_len);
    pending_cancel(p, number);
    return event->status < 0 || !slot->silent;
}
