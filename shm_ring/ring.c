/*
 * Owns nothing: the producer's and the consumer's calls on a ring (ring.h has the layout and the
 * paired barriers).
 *
 * Thread: each view belongs to one thread; the two sides meet only in ring_control and the data.
 */
#include "shm_ring/ring.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

enum {
    PAD_KIND = 0,
    HEAD_BYTES = sizeof(struct ring_record_head),
    ALIGN_MASK = 7, /* records start and end at multiples of 8 */
};
static_assert(sizeof(struct ring_record_head) == 8, "a record's head is read by one load");

void ring_producer_init(struct ring_producer *p, struct ring_control *shared, void *data,
                        uint64_t size, uint64_t tail)
{
    *p = (struct ring_producer){
        .shared = shared,
        .data = data,
        .tail = tail,
        /* The lowest head that the consumer can have: so the first reservation reads the real
         * one. */
        .head_seen = tail < size ? 0 : tail - size,
        .size = size,
        /* Differs from tail when an earlier view died before it published. */
        .published = atomic_load_explicit(&shared->tail, memory_order_relaxed),
    };
}

void ring_consumer_init(struct ring_consumer *c, struct ring_control *shared, const void *data,
                        uint64_t size, uint64_t head)
{
    *c = (struct ring_consumer){
        .shared = shared,
        .data = data,
        .head = head,
        .tail_seen = head,
        .size = size,
    };
}

/* Reads the consumer's head, which only grows and never passes our tail. */
static int look_at_head(struct ring_producer *p)
{
    uint64_t head = atomic_load_explicit(&p->shared->head, memory_order_acquire); /* B */

    if (head - p->head_seen > p->tail - p->head_seen || (head & ALIGN_MASK) != 0)
        return -EPROTO;
    p->head_seen = head;
    return 0;
}

/* Reads the producer's tail, which only grows and is at most a ring ahead of our head. */
static int look_at_tail(struct ring_consumer *c)
{
    uint64_t tail = atomic_load_explicit(&c->shared->tail, memory_order_acquire); /* A */
    uint64_t ahead = tail - c->head;

    if (ahead < c->tail_seen - c->head || ahead > c->size || (tail & ALIGN_MASK) != 0)
        return -EPROTO;
    c->tail_seen = tail;
    return 0;
}

static uint64_t free_bytes(const struct ring_producer *p)
{
    return p->size - (p->tail - p->head_seen);
}

int ring_reserve_anew(struct ring_producer *p, uint32_t size, void **out)
{
    if (size < HEAD_BYTES || (size & ALIGN_MASK) != 0 || size > p->size >> 2)
        return -EINVAL;

    uint64_t offset = p->tail & (p->size - 1);
    uint64_t to_end = p->size - offset;
    uint64_t pad = size <= to_end ? 0 : to_end;

    if (free_bytes(p) < pad + size) {
        int rc = look_at_head(p);
        if (rc != 0)
            return rc;
        if (free_bytes(p) < pad + size)
            return -EAGAIN;
    }
    if (pad != 0) {
        struct ring_record_head head = {.size = (uint32_t)pad, .kind = PAD_KIND};
        memcpy(p->data + offset, &head, sizeof(head));
        p->tail += pad; /* padding alone may be published: the consumer passes over it */
        offset = 0;
    }
    *out = p->data + offset;
    return 0;
}

int64_t ring_used(struct ring_producer *p)
{
    int rc = look_at_head(p);

    return rc != 0 ? rc : (int64_t)(p->tail - p->head_seen);
}

/* One load, so that the checked value is the one that is used, whatever the other side writes
 * meanwhile. */
static struct ring_record_head load_head(const uint8_t *record)
{
    uint64_t word =
        atomic_load_explicit((const _Atomic uint64_t *)(const void *)record, memory_order_relaxed);
    struct ring_record_head head;

    memcpy(&head, &word, sizeof(head));
    return head;
}

static void copy_record(uint8_t *to, const uint8_t *record, struct ring_record_head head)
{
    memcpy(to, &head, sizeof(head));
    memcpy(to + sizeof(head), record + sizeof(head), head.size - sizeof(head));
    /* Keeps the compiler from reading the shared record again in place of the copy. */
    atomic_signal_fence(memory_order_seq_cst);
}

/* Finds the next record in the ring, and checks its head: 1, 0 when there is none, -EPROTO. */
static int find_record(struct ring_consumer *c, const uint8_t **out, struct ring_record_head *head)
{
    for (;;) {
        if (c->tail_seen == c->head) {
            int rc = look_at_tail(c);
            if (rc != 0)
                return rc;
            if (c->tail_seen == c->head)
                return 0;
        }

        uint64_t offset = c->head & (c->size - 1);
        uint64_t to_end = c->size - offset;
        uint64_t there = c->tail_seen - c->head;

        *out = c->data + offset;
        *head = load_head(*out);
        if (head->size < HEAD_BYTES || (head->size & ALIGN_MASK) != 0 || head->size > there ||
            head->size > to_end)
            return -EPROTO;
        if (head->kind != PAD_KIND)
            return 1;
        /* Padding ends where the area ends, and never follows itself, so this loop ends. */
        if (head->size != to_end || offset == 0)
            return -EPROTO;
        c->head += head->size;
    }
}

int ring_copy(struct ring_consumer *c, void *to, uint32_t room, uint32_t *size_out)
{
    struct ring_record_head head;
    const uint8_t *record;
    int rc = find_record(c, &record, &head);

    if (rc != 1)
        return rc;
    if (head.size > room)
        return -EMSGSIZE;
    copy_record(to, record, head);
    *size_out = head.size;
    return 1;
}

int ring_look(struct ring_consumer *c, const void **out, uint32_t *size_out)
{
    struct ring_record_head head;
    const uint8_t *record;
    int rc = find_record(c, &record, &head);

    if (rc != 1)
        return rc;
    *out = record;
    *size_out = head.size;
    return 1;
}

int ring_pending(struct ring_consumer *c)
{
    /* A tail out of range counts as a record: ring_copy then reports what is wrong. */
    return look_at_tail(c) != 0 || c->tail_seen != c->head; /* A */
}
