/*
 * Words that count (struct session_counts, pair_counts.arrived). Each has one writer, and only
 * grows; a reader adds up several of them (clientlib/calls/counter.c has the picture).
 *
 * Paired barriers:
 *
 *     P  writer: data placed, then the count stored (release)
 *        reader: count loaded (acquire), then the data read
 *
 * A sleeper that waits for a count arms a bell and looks again, as doorbell.h says; the writer
 * looks at that bell after the store.
 *
 * Thread: each word is written by one thread, and read by any.
 */
#ifndef PWC_SHM_RING_COUNTS_H
#define PWC_SHM_RING_COUNTS_H

#include <stdatomic.h>
#include <stdint.h>

static inline void count_show(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release); /* P */
}

static inline uint64_t count_look(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire); /* P */
}

/* For the writer, which may read its own word. */
static inline void count_up(_Atomic uint64_t *word, uint64_t by)
{
    count_show(word, atomic_load_explicit(word, memory_order_relaxed) + by);
}

#endif
