/*
 * Memory of the ledgers (staging and inbound rings, powers of two from one unit on), and of teams.
 *
 * Private: what stands in a ring is derived from the arena and is written again after a restart;
 * which memory of the arena teams have taken, their table says.
 * Thread: the progress thread; off the hot path.
 */
#ifndef PWC_ENGINE_HEAP_H
#define PWC_ENGINE_HEAP_H

#include <stdint.h>

struct heap {
    uint8_t *base;
    uint8_t *used; /* one byte a unit */
    uint32_t unit;
    uint32_t units;
};

/* `size` is a multiple of the unit; the piece stands at a multiple of its size. NULL when there is
 * no room. */
void *heap_take(struct heap *h, uint32_t size);
void heap_give(struct heap *h, void *at, uint32_t size);

#endif
