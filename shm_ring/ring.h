/*
 * A single-producer single-consumer ring of variable-length records in shared memory.
 *
 * The shared part is a `struct ring_control` (two counters, each on its own line, each with one
 * writer) and a data area of a power of two. The types below are the private views: each side keeps
 * its own counter, and the last value that it read of the other side's, in memory that the other
 * side cannot reach. A counter in shared memory is a copy for the other side, which checks each
 * value that it reads.
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
 *     C and D are used by the doorbell (doorbell.h)
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
    uint64_t tail;      /* the true value; ring_publish shows it */
    uint64_t head_seen; /* the consumer's head when it was last read and valid */
    uint64_t size;
    uint64_t published; /* the value of shared->tail that we wrote last */
};

struct ring_consumer {
    struct ring_control *shared;
    const uint8_t *data;
    uint64_t head;      /* the true value; ring_release shows it */
    uint64_t tail_seen; /* the producer's tail when it was last read and valid */
    uint64_t size;
};

/* Views of a ring whose private counter begins at `tail` or `head` (0 for a new ring). */
void ring_producer_init(struct ring_producer *p, struct ring_control *shared, void *data,
                        uint64_t size, uint64_t tail);
void ring_consumer_init(struct ring_consumer *c, struct ring_control *shared, const void *data,
                        uint64_t size, uint64_t head);

/*
 * Finds contiguous room for one record of `size` bytes (a multiple of 8, at least 8, at most a
 * quarter of the ring). Where the record does not fit before the end of the data area, writes
 * padding there first. 0 with *out set; -EAGAIN: the ring is full; -EPROTO: the consumer's head is
 * out of range; -EINVAL: `size` is not allowed. The record is not visible before ring_advance and
 * ring_publish. A reservation without ring_advance is dropped: the next call makes another in its
 * place.
 */
static inline int ring_reserve(struct ring_producer *p, uint32_t size, void **out);
/* Moves the private tail past the reserved record. */
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
 * Copies the whole next record into private memory, and skips padding before it. 1 with *size_out
 * set; 0: there is no record; -EPROTO: tail or size is out of range; -EMSGSIZE: the record is
 * longer than `room`. The record stays in the ring until ring_consume. The daemon reads clients'
 * rings only by ring_copy and ring_word, so that each shared word is read once.
 */
int ring_copy(struct ring_consumer *c, void *to, uint32_t room, uint32_t *size_out);
/*
 * Peeks without a copy: *out points to the record in the ring, and is valid until the ring_release
 * after its ring_consume. For a consumer that trusts the producer, which could change the record
 * while it is read.
 */
int ring_look(struct ring_consumer *c, const void **out, uint32_t *size_out);
/* Moves the private head past the record that ring_copy or ring_look gave. */
static inline void ring_consume(struct ring_consumer *c, uint32_t size)
{
    c->head += size;
}
/* Gives the space back to the producer (B). */
static inline void ring_release(struct ring_consumer *c)
{
    atomic_store_explicit(&c->shared->head, c->head, memory_order_release); /* B */
}
/* 1 if a record is there; reads the tail afresh, for the second look after arming. */
int ring_pending(struct ring_consumer *c);
/* Whether ring_copy would find no record. A tail out of range counts as one: ring_copy reports
 * it. */
static inline bool ring_empty(const struct ring_consumer *c)
{
    return c->tail_seen == c->head &&
           atomic_load_explicit(&c->shared->tail, memory_order_relaxed) == c->head;
}

/*
 * For reading records word by word: sets *out to the next record, and returns how many bytes are
 * contiguous there, by the producer's tail as it was last read. The first word of each record shows
 * whether it has the wanted size and is no padding. The caller consumes records with ring_consume.
 */
static inline uint64_t ring_piece(const struct ring_consumer *c, const _Atomic uint64_t **out)
{
    uint64_t offset = c->head & (c->size - 1);
    uint64_t there = c->tail_seen - c->head, to_end = c->size - offset;

    *out = (const _Atomic uint64_t *)(const void *)(c->data + offset);
    return there < to_end ? there : to_end;
}
/* Word i of a piece. The other side may write it meanwhile: load each word once, and keep the
 * value. */
static inline uint64_t ring_word(const _Atomic uint64_t *piece, uint32_t i)
{
    return atomic_load_explicit(piece + i, memory_order_relaxed);
}

/* The rare cases of ring_reserve: a wrong size, a record that does not fit before the area's end,
 * and too little room according to `head_seen`, so that the head is read again. */
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
