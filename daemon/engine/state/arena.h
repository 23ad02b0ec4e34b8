/*
 * The state arena: all of the engine's state that outlives the process, and its transactions.
 *
 * The arena is memory that only the daemon maps. It holds a header, then tables of fixed entries
 * (state.h, table.h); links between entries are indices. An engine that dies at any store leaves
 * the arena such that the next engine_open can resume:
 *
 *   - memory that no index reaches yet (a new entry, bytes past a tail) is written freely;
 *   - everything else is changed by arena_set*, which first notes the old value in the undo log;
 *   - arena_commit ends the transaction by emptying the log;
 *   - opening puts the values of an unfinished transaction back, latest first.
 *
 * Nothing leaves the engine (a published tail, a fabric write) before the changes that it shows are
 * committed. Compiler barriers are enough between these stores, because only a later process on the
 * same machine reads them.
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_ARENA_H
#define PWC_ENGINE_ARENA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARENA_MAGIC   UINT64_C(0x314152414e455750)
#define ARENA_VERSION 18u
#define ARENA_UNDO    1024u

struct arena_undo {
    uint64_t offset_width; /* offset << 8 | bytes */
    uint64_t old;
};

struct arena_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes;
    uint64_t bytes;        /* of the whole arena */
    uint64_t fingerprint;  /* hash of entry sizes and counts: an arena of another layout is
                            * refused */
    uint32_t pairs, binds; /* the tables' sizes that the configuration asks for */
    uint32_t incarnation;
    uint32_t fenced; /* 1: a process has fenced for clients (engine_host.fence), and they rely on
                      * that */
    uint64_t undo_count; /* 0: no transaction is open */
    struct arena_undo undo[ARENA_UNDO];
};

struct arena {
    uint8_t *base;
    struct arena_header *header;
};

/* Whether arena_open can take this arena over. */
bool arena_fits(const void *base, uint64_t bytes, uint64_t fingerprint);
/* Returns 1: the arena is new; 0: it is inherited, and rolled back to its last commit; -EUCLEAN: it
 * is of another layout. */
int arena_open(struct arena *a, void *base, uint64_t bytes, uint64_t fingerprint);

static inline void arena_note(struct arena *a, const void *field, uint64_t width, uint64_t old)
{
    struct arena_header *h = a->header;
    uint64_t n = h->undo_count;
    uint64_t offset = (uint64_t)((const uint8_t *)field - a->base);

    h->undo[n].offset_width = offset << 8 | width;
    h->undo[n].old = old;
    atomic_signal_fence(memory_order_seq_cst);
    *(volatile uint64_t *)&h->undo_count = n + 1;
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void arena_set64(struct arena *a, uint64_t *field, uint64_t value)
{
    arena_note(a, field, sizeof(*field), *field);
    *(volatile uint64_t *)field = value;
}

static inline void arena_set32(struct arena *a, uint32_t *field, uint32_t value)
{
    arena_note(a, field, sizeof(*field), *field);
    *(volatile uint32_t *)field = value;
}

static inline void arena_set8(struct arena *a, uint8_t *field, uint8_t value)
{
    arena_note(a, field, sizeof(*field), *field);
    *(volatile uint8_t *)field = value;
}

static inline void arena_commit(struct arena *a)
{
    atomic_signal_fence(memory_order_seq_cst);
    *(volatile uint64_t *)&a->header->undo_count = 0;
    atomic_signal_fence(memory_order_seq_cst);
}

/* Whether less than half of the undo log is in use. A transaction of many parts goes on only then,
 * and each part makes fewer changes than the other half has room for. */
static inline bool arena_has_room(const struct arena *a)
{
    return a->header->undo_count < ARENA_UNDO / 2;
}

/* Undoes the open transaction, for a caller that finds halfway that it cannot complete it. */
void arena_rollback(struct arena *a);

#endif
