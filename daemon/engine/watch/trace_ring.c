/* Writing and reading trace rings (trace_ring.h). Thread: one writes, any read. */
#include "daemon/engine/watch/trace_ring.h"

#include <stdbool.h>
#include <string.h>

size_t trace_ring_bytes(uint64_t size)
{
    return sizeof(struct trace_ring) + size * sizeof(struct trace_record);
}

void trace_ring_init(struct trace_ring *ring, uint64_t size)
{
    ring->size = size;
    atomic_store_explicit(&ring->head, 0, memory_order_relaxed);
}

void trace_ring_write(struct trace_ring *ring, const struct trace_record *record)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    _Atomic uint64_t *words = ring->words + (head & (ring->size - 1)) * TRACE_WORDS;
    uint64_t copy[TRACE_WORDS];

    memcpy(copy, record, sizeof(copy));
    atomic_store_explicit(&words[0], 0, memory_order_relaxed);
    /* Release: a reader that sees one of these stores sees that the index is no longer the old
     * one. */
    for (size_t i = 1; i < TRACE_WORDS; i++)
        atomic_store_explicit(&words[i], copy[i], memory_order_release);
    atomic_store_explicit(&words[0], head + 1, memory_order_release);
    atomic_store_explicit(&ring->head, head + 1, memory_order_release);
}

/* Reads record `index` (from 0); false: it is no longer there. */
static bool read_record(const struct trace_ring *ring, uint64_t index, struct trace_record *out)
{
    const _Atomic uint64_t *words = ring->words + (index & (ring->size - 1)) * TRACE_WORDS;
    uint64_t copy[TRACE_WORDS];

    copy[0] = atomic_load_explicit(&words[0], memory_order_acquire);
    for (size_t i = 1; i < TRACE_WORDS; i++)
        copy[i] = atomic_load_explicit(&words[i], memory_order_acquire);
    if (copy[0] != index + 1 || atomic_load_explicit(&words[0], memory_order_relaxed) != index + 1)
        return false;
    memcpy(out, copy, sizeof(copy));
    return true;
}

int trace_ring_read(const struct trace_ring *ring, uint64_t *from, struct trace_record *records,
                    int room, uint64_t *lost)
{
    uint64_t head = trace_ring_head(ring);
    int n = 0;

    if (head - *from > ring->size) {
        *lost += head - ring->size - *from;
        *from = head - ring->size;
    }
    for (; *from < head && n < room; ++*from) {
        if (read_record(ring, *from, &records[n]))
            n++;
        else
            ++*lost;
    }
    return n;
}
