/* Memory in units: first fit at multiples of the size. Thread: the progress thread. */
#include "daemon/engine/state/heap.h"

#include <string.h>

static uint32_t units_of(const struct heap *h, uint32_t size)
{
    return size / h->unit + (size % h->unit > 0);
}

/* The first multiple of `n` units at or after the first free unit from `from` on; UINT32_MAX: there
 * is no room for n units. */
static uint32_t next_free(const struct heap *h, uint32_t from, uint32_t n)
{
    const uint8_t *free = from < h->units ? memchr(h->used + from, 0, h->units - from) : NULL;
    uint32_t at = free ? (uint32_t)(free - h->used + n - 1) / n * n : UINT32_MAX;

    return at <= h->units && n <= h->units - at ? at : UINT32_MAX;
}

/* Moves from piece to piece instead of from unit to unit: an engine with 1 GiB of team memory has
 * 262,144 units. */
void *heap_take(struct heap *h, uint32_t size)
{
    uint32_t n = units_of(h, size), at = next_free(h, 0, n);

    while (at != UINT32_MAX) {
        const uint8_t *last = memrchr(h->used + at, 1, n);

        if (!last) {
            memset(h->used + at, 1, n);
            return h->base + (uint64_t)at * h->unit;
        }
        at = next_free(h, (uint32_t)(last - h->used) + 1, n);
    }
    return NULL;
}

void *heap_take_above(struct heap *h, uint32_t size, uint32_t left)
{
    uint32_t free = h->units;

    for (uint32_t i = 0; i < h->units; i++)
        free -= h->used[i];
    return units_of(h, size) + left <= free ? heap_take(h, size) : NULL;
}

void heap_give(struct heap *h, void *at, uint32_t size)
{
    uint64_t first = (uint64_t)((uint8_t *)at - h->base) / h->unit;

    memset(h->used + first, 0, units_of(h, size));
}
