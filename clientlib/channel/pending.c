/*
 * Owns the slots of operations in flight. Thread: the one that owns the context.
 */
#include "clientlib/channel/pending.h"
#include "shm_ring/fault.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

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

    *p = (struct pending_slots){.capacity = capacity, .free_slot = PENDING_NONE};
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

/* Takes a slot, zeroed except for its links: its number, or -EAGAIN. */
static int64_t take_slot(struct pending_slots *p)
{
    uint32_t number = p->free_slot;

    if (number != PENDING_NONE) {
        p->free_slot = p->slots[number].next_free;
    } else {
        if (p->fresh == p->capacity)
            return -EAGAIN;
        number = p->fresh++;
    }
    p->slots[number] = (struct pending_slot){.vector = PENDING_NONE, .left = 1, .busy = true};
    p->busy++;
    return number;
}

static void free_slot(struct pending_slots *p, uint32_t number)
{
    struct pending_slot *slot = &p->slots[number];

    if (slot->run.count > 0)
        grains_give(&p->grains, slot->run);
    slot->busy = false;
    slot->next_free = p->free_slot;
    p->free_slot = number;
    p->busy--;
}

static void set_id(struct pending_slots *p, int64_t number, const pwc_cid *id, unsigned flags)
{
    struct pending_slot *slot = &p->slots[number];

    slot->id = id->size == 0 ? id->value : 0;
    slot->id_len = (uint16_t)id->size;
    slot->silent = flags & SUBMIT_NO_LCE;
    slot->request = flags & SUBMIT_SLOT;
    if (id->size > 0)
        memcpy(id_of(p, (uint32_t)number), id->data, id->size);
}

static void set_copy(struct pending_slot *slot, void *destination, const void *shadow,
                     uint64_t length)
{
    slot->destination = destination;
    slot->shadow = shadow;
    slot->length = length;
}

int64_t pending_begin(struct pending_slots *p, const pwc_cid *id, unsigned flags, void *destination,
                      const void *shadow, uint64_t length)
{
    int64_t number = take_slot(p);

    if (number < 0)
        return number;
    set_id(p, number, id, flags);
    set_copy(&p->slots[number], destination, shadow, length);
    return number;
}

int64_t pending_begin_vector(struct pending_slots *p, const pwc_cid *id, unsigned flags, uint8_t op,
                             uint64_t length)
{
    int64_t number = take_slot(p);

    if (number < 0)
        return number;
    set_id(p, number, id, flags);
    p->slots[number].op = op;
    p->slots[number].length = length;
    return number;
}

int64_t pending_begin_piece(struct pending_slots *p, uint32_t vector, void *destination,
                            const void *shadow, uint64_t length)
{
    int64_t number = take_slot(p);

    if (number < 0)
        return number;
    set_copy(&p->slots[number], destination, shadow, length);
    p->slots[number].vector = vector;
    p->slots[vector].pieces++;
    return number;
}

void pending_stage(struct pending_slots *p, uint32_t number, struct grains_run run,
                   const void *shadow)
{
    p->slots[number].run = run;
    p->slots[number].shadow = shadow;
}

void pending_drop_staged(struct pending_slots *p, uint64_t request_id)
{
    for (uint32_t i = 0; i < p->fresh && grains_in_use(&p->grains); i++) {
        struct pending_slot *slot = &p->slots[i];
        const struct pending_slot *whole =
            slot->vector == PENDING_NONE ? slot : &p->slots[slot->vector];

        if (slot->busy && slot->run.count > 0 && whole->request && whole->id == request_id)
            slot->destination = NULL;
    }
}

void pending_cancel(struct pending_slots *p, uint32_t number)
{
    for (uint32_t i = 0; i < p->fresh && p->slots[number].pieces > 0; i++)
        if (p->slots[i].busy && p->slots[i].vector == number) {
            free_slot(p, i);
            p->slots[number].pieces--;
        }
    free_slot(p, number);
}

void pending_cancel_piece(struct pending_slots *p, uint32_t number)
{
    p->slots[p->slots[number].vector].pieces--;
    free_slot(p, number);
}

/* Called when the operation of this slot has ended. Returns the slot whose caller sees the end: for
 * a piece, its vector's. */
static uint32_t piece_settle(struct pending_slots *p, uint32_t number,
                             const struct event_record *event)
{
    const struct pending_slot *slot = &p->slots[number];
    uint32_t vector = slot->vector;

    if (event->status == 0 && slot->destination)
        memcpy(slot->destination, slot->shadow ? slot->shadow : (const void *)&event->bytes,
               slot->length);
    if (vector == PENDING_NONE)
        return number;
    free_slot(p, number);
    p->slots[vector].pieces--;
    return vector;
}

int pending_settle(struct pending_slots *p, struct event_record *event, bool *ended)
{
    struct pending_slot *slot;
    uint32_t number;

    *ended = false;
    if (event->id_len != 0 || event->id >= p->fresh || !p->slots[event->id].busy)
        return -EPROTO;
    number = piece_settle(p, (uint32_t)event->id, event);
    FAULT(SLOT_SETTLED);
    slot = &p->slots[number];
    if (slot->status == 0)
        slot->status = event->status;
    if (--slot->left > 0)
        return 0;
    *ended = true;
    if (slot->op)
        event->op = slot->op | EVENT_SLOT;
    if (!slot->request)
        event->op &= (uint8_t)~EVENT_SLOT;
    event->status = slot->status;
    if (slot->status == 0 && slot->destination && !slot->shadow) /* `bytes` was the fetched value */
        event->bytes = slot->length;
    if (slot->op)
        event->bytes = slot->status == 0 ? slot->length : 0;
    event->id = slot->id;
    event->id_len = slot->id_len;
    event->size = event_bytes(slot->id_len);
    memcpy(event + 1, id_of(p, number), slot->id_len);
    free_slot(p, number);
    return event->status < 0 || !slot->silent;
}
