/*
 * A single-producer single-consumer ring of variable-length records in shared memory.
 *
 * The shared part is a `struct ring_control` (two counters, each on its own line, each with one
 * writer) and a data area of a power of two. The types below are the private views: each side keeps
 * its own counter, and its last sight of the other's, in memory that the other cannot reach. The
 * counter in shared memory is only published, and values read from shared memory are checked.
 *
 *     data area      head                      tail
 *     +--------------+-------------------------+---------------+-----+
 *     |  free        | record | record | ...   | free          | pad |
 *     +--------------+-------------------------+---------------+-----+
 *
 * A record is contiguous: where it does not fit before the end of the data area, the producer fills
 * the rest with one padding record (kind 0) and starts at offset 0. Records start with { uint32_t
 * size; uint8_t kind; ... } and sizes are multiples of 8.
 *
 * Paired barriers (each atomic in ring.c cites its letter):
 *
 *     A  producer: records written, then tail stored (release)
 *        consumer: tail loaded (acquire), then records read
 *     B  consumer: records read, then head stored (release)
 *        producer: head loaded (acquire), then the space written again
 *     C, D are the doorbell's (doorbell.h)
 *
 * Thread: one thread a side; nothing here blocks, allocates or makes a system call.
 */
#ifndef PWC_SHM_RING_RING_H
#define PWC_SHM_RING_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "proto/session_abi.h"

/* The first eight bytes of every record. */
struct ring_record_head {
    uint32_t size;
    uint8_t kind;
    uint8_t byte5;
    uint16_t half6;
};

struct ring_producer {
    struct ring_control *shared;
    uint8_t *data;
    uint64_t tail;      /* private truth; published by ring_publish */
    uint64_t head_seen; /* last valid sight of the consumer's head */
    uint64_t size;
    uint64_t published; /* the value of shared->tail, as far as we wrote it */
};

struct ring_consumer {
    struct ring_control *shared;
    const uint8_t *data;
    uint64_t head;      /* private truth; published by ring_release */
    uint64_t tail_seen; /* last valid sight of the producer's tail */
    uint64_t size;
};

/* Views over a ring whose private counter stands at `tail` or `head` (0 for a new ring). */
void ring_producer_init(struct ring_producer *p, struct ring_control *shared, void *data,
                        uint64_t size, uint64_t tail);
void ring_consumer_init(struct ring_consumer *c, struct ring_control *shared, const void *data,
                        uint64_t size, uint64_t head);

/*
 * Room for one record of `size` bytes (multiple of 8, at least 8, at most a quarter of the ring),
 * contiguous, padding written where the end of the area comes first. 0 with *out set, -EAGAIN when
 * the ring is full, -EPROTO when the consumer's head is out of range. Nothing is visible before
 * ring_advance and ring_publish; a reservation that is not advanced is simply made again. -EINVAL
 * on a size that is none of these.
 */
static inline int ring_reserve(struct ring_producer *p, uint32_t size, void **out);
/* Takes the reserved record into the private tail. */
static inline void ring_advance(struct ring_producer *p, uint32_t size)
{
    p->tail += size;
}
/* Whether all records up to the private tail are visible. */
static inline bool ring_published(const struct ring_producer *p)
{
    return p->published == p->tail;
}
/* Makes all records up to the private tail visible (A). */
static inline void ring_publish(struct ring_producer *p)
{
    if (ring_published(p))
        return;
    p->published = p->tail;
    atomic_store_explicit(&p->shared->tail, p->tail, memory_order_release); /* A */
}
/* Bytes from the consumer's head, as published now, to the private tail; -EPROTO: out of range. */
int64_t ring_used(struct ring_producer *p);

/*
 * Copies the next record, whole, into private memory. 1 with *size_out set, 0 when there is none,
 * -EPROTO when tail or size is out of range, -EMSGSIZE when it is longer than `room`. Padding is
 * passed over. The record stays until ring_consume. This, and ring_word, are the daemon's ways to
 * read a client's ring: each shared word is read once.
 */
int ring_copy(struct ring_consumer *c, void *to, uint32_t room, uint32_t *size_out);
/*
 * Peeks without a copy: the record where it stands, until ring_release after its ring_consume. For
 * a consumer that trusts the producer, which could change the record while it is read.
 */
int ring_look(struct ring_consumer *c, const void **out, uint32_t *size_out);
/* Passes over the record that ring_copy or ring_look gave, in the private head. */
static inline void ring_consume(struct ring_consumer *c, uint32_t size)
{
    c->head += size;
}
/* Gives the space back to the producer (B). */
static inline void ring_release(struct ring_consumer *c)
{
    atomic_store_explicit(&c->shared->head, c->head, memory_order_release); /* B */
}
/* 1 if a record is there, by a fresh look at tail; for the second look after arming. */
int ring_pending(struct ring_consumer *c);
/* Whether ring_copy would find nothing: what is wrong with a tail is for it to say. */
static inline bool ring_empty(const struct ring_consumer *c)
{
    return c->tail_seen == c->head &&
           atomic_load_explicit(&c->shared->tail, memory_order_relaxed) == c->head;
}

/*
 * Where records may be looked at a word at a time: *out at the next one, and the bytes that stand
 * there in one piece, by the last sight of the producer. The first word of each record shows
 * whether it has the wanted size and is no padding. The caller consumes records with ring_consume.
 */
static inline uint64_t ring_piece(const struct ring_consumer *c, const _Atomic uint64_t **out)
{
    uint64_t offset = c->head & (c->size - 1);
    uint64_t there = c->tail_seen - c->head, to_end = c->size - offset;

    *out = (const _Atomic uint64_t *)(const void *)(c->data + offset);
    return there < to_end ? there : to_end;
}
/* Word i from there. The other side may write it meanwhile: load each once, and keep that. */
static inline uint64_t ring_word(const _Atomic uint64_t *piece, uint32_t i)
{
    return atomic_load_explicit(piece + i, memory_order_relaxed);
}

/* ring_reserve where the last sight of the consumer is not enough, or the area's end is near. */
int ring_reserve_anew(struct ring_producer *p, uint32_t size, void **out);

static inline int ring_reserve(struct ring_producer *p, uint32_t size, void **out)
{
    uint64_t offset = p->tail & (p->size - 1);

    if (size < sizeof(struct ring_record_head) || (size & 7) != 0 || size > p->size >> 2 ||
        size > p->size - offset || p->tail - p->head_seen + size > p->size)
        return ring_reserve_anew(p, size, out);
    *out = p->data + offset;
    return 0;
}

#endif
