/* The state arena: opening and rolling back. Thread: the progress thread. */
#include "daemon/engine/state/arena.h"

#include <errno.h>
#include <string.h>

void arena_rollback(struct arena *a)
{
    struct arena_header *h = a->header;

    while (h->undo_count > 0) {
        const struct arena_undo *u = &h->undo[h->undo_count - 1];
        uint64_t offset = u->offset_width >> 8;
        uint64_t width = u->offset_width & 0xff;

        memcpy(a->base + offset, &u->old, width);
        atomic_signal_fence(memory_order_seq_cst);
        *(volatile uint64_t *)&h->undo_count = h->undo_count - 1;
        atomic_signal_fence(memory_order_seq_cst);
    }
}

bool arena_fits(const void *base, uint64_t bytes, uint64_t fingerprint)
{
    const struct arena_header *h = base;

    return h->magic == ARENA_MAGIC && h->version == ARENA_VERSION &&
           h->header_bytes == sizeof(*h) && h->bytes == bytes && h->fingerprint == fingerprint &&
           h->undo_count <= ARENA_UNDO;
}

int arena_open(struct arena *a, void *base, uint64_t bytes, uint64_t fingerprint)
{
    struct arena_header *h = base;

    a->base = base;
    a->header = h;
    if (h->magic == 0) {
        h->version = ARENA_VERSION;
        h->header_bytes = sizeof(*h);
        h->bytes = bytes;
        h->fingerprint = fingerprint;
        return 1;
    }
    if (!arena_fits(base, bytes, fingerprint))
        return -EUCLEAN;
    arena_rollback(a);
    return 0;
}
