/*
 * Owns the gets in flight of a context. Thread: the one that owns the context.
 */
#include "clientlib/calls/gets.h"
#include "shm_ring/fault.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define NO_SLOT UINT32_MAX

static size_t slot_bytes(uint32_t capacity)
{
    return capacity * sizeof(struct get_slot);
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

int gets_open(struct gets *gets, uint32_t capacity)
{
    *gets = (struct gets){.capacity = capacity, .free_slot = NO_SLOT};
    gets->slots = map_lazily(slot_bytes(capacity));
    gets->ids = map_lazily(id_bytes(capacity));
    if (gets->slots && gets->ids)
        return 0;
    gets_close(gets);
    return -ENOMEM;
}

void gets_close(struct gets *gets)
{
    if (gets->slots)
        munmap(gets->slots, slot_bytes(gets->capacity));
    if (gets->ids)
        munmap(gets->ids, id_bytes(gets->capacity));
    gets->slots = NULL;
    gets->ids = NULL;
}

static uint8_t *id_of(struct gets *gets, uint32_t slot)
{
    return gets->ids + (size_t)slot * SESSION_ID_MAX;
}

int64_t gets_begin(struct gets *gets, const pwc_cid *id, bool silent, void *destination,
                   const void *shadow, uint64_t length)
{
    uint32_t number = gets->free_slot;
    struct get_slot *slot;

    if (number != NO_SLOT) {
        gets->free_slot = gets->slots[number].next_free;
    } else {
        if (gets->fresh == gets->capacity)
            return -EAGAIN;
        number = gets->fresh++;
    }
    slot = &gets->slots[number];
    *slot = (struct get_slot){
        .id = id->size == 0 ? id->value : 0,
        .destination = destination,
        .shadow = shadow,
        .length = length,
        .id_len = (uint16_t)id->size,
        .silent = silent,
        .busy = true,
    };
    if (id->size > 0)
        memcpy(id_of(gets, number), id->data, id->size);
    gets->pending++;
    return number;
}

void gets_cancel(struct gets *gets, uint32_t number)
{
    struct get_slot *slot = &gets->slots[number];

    slot->busy = false;
    slot->next_free = gets->free_slot;
    gets->free_slot = number;
    gets->pending--;
}

int gets_settle(void *context, struct event_record *event)
{
    struct gets *gets = context;
    struct get_slot *slot;

    if (event->id_len != 0 || event->id >= gets->fresh || !gets->slots[event->id].busy)
        return -EPROTO;

    uint32_t number = (uint32_t)event->id;

    slot = &gets->slots[number];
    if (event->status == 0 && slot->destination)
        memcpy(slot->destination, slot->shadow, slot->length);
    FAULT(GET_SETTLED);
    event->id = slot->id;
    event->id_len = slot->id_len;
    event->size = event_bytes(slot->id_len);
    memcpy(event + 1, id_of(gets, number), slot->id_len);
    gets_cancel(gets, number);
    return event->status < 0 || !slot->silent;
}
