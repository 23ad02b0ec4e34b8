/* Ledger memory: first fit at natural alignment. Thread: the progress thread. */
#include "daemon/engine/state/heap.h"

#include <string.h>

void *heap_take(struct heap *h, uint32_t size)
{
    uint32_t n = size / h->unit;

    for (uint32_t at = 0; at + n <= h->units; at += n) {
        uint32_t i = 0;

        while (i < n && !h->used[at + i])
            i++;
        if (i == n) {
            memset(h->used + at, 1, n);
            return h->base + (uint64_t)at * h->unit;
        }
    }
    return NULL;
}

void heap_give(struct heap *h, void *at, uint32_t size)
{
    uint64_t first = (uint64_t)((uint8_t *)at - h->base) / h->unit;

    memset(h->used + first, 0, size / h->unit);
}
