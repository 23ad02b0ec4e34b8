/*
 * Heaps: memory in units, for ledgers (staging and inbound rings), for teams and for programs.
 *
 * A heap's own table is private and is made again after a restart: rings are written again from the
 * arena, and the tables of teams and programs say which memory these have taken.
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

/* The piece takes whole units, and begins at a multiple of its size. NULL: there is no room. */
void *heap_take(struct heap *h, uint32_t size);
/* As heap_take, where at least `left` units stay free. */
void *heap_take_above(struct heap *h, uint32_t size, uint32_t left);
void heap_give(struct heap *h, void *at, uint32_t size);

#endif
