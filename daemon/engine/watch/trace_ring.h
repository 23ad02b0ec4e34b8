/*
 * The ring of a trace: the size is fixed, the oldest records are overwritten, and a reader gets the
 * number of records it has missed.
 *
 * The caller owns the memory (trace_ring_bytes, zeroed). One thread writes; any number of threads
 * read, each with a place of its own, and never hold the writer up.
 */
#ifndef PWC_ENGINE_TRACE_RING_H
#define PWC_ENGINE_TRACE_RING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/trace_abi.h"

#define TRACE_WORDS (sizeof(struct trace_record) / sizeof(uint64_t))

/* The first word of a record is its index, and 0 while it is being written. */
struct trace_ring {
    uint64_t size;         /* records, a power of two */
    _Atomic uint64_t head; /* written so far */
    _Alignas(64) _Atomic uint64_t words[];
};

size_t trace_ring_bytes(uint64_t size);
void trace_ring_init(struct trace_ring *ring, uint64_t size);
/* Writes a record, whose index this fills in. */
void trace_ring_write(struct trace_ring *ring, const struct trace_record *record);
/* The number of records written so far. */
static inline uint64_t trace_ring_head(const struct trace_ring *ring)
{
    return atomic_load_explicit(&ring->head, memory_order_acquire);
}
/* Reads up to `room` records from *from on (0 is the first ever) and returns their number. Moves
 * *from, and adds to *lost the number of records that were overwritten before they could be
 * read. */
int trace_ring_read(const struct trace_ring *ring, uint64_t *from, struct trace_record *records,
                    int room, uint64_t *lost);

#endif
