/*
 * From an address to (segment, offset): which ranges of this process's memory the daemon reaches.
 *
 * The table is the client's: whole segments, and ranges that go through a copy. Each context looks
 * addresses up in a view of its own, which it copies again when the table's generation has changed:
 * so the hot path takes no lock. A lookup that races with the withdrawal of the very range may
 * still find it; using memory while withdrawing it is the caller's error.
 *
 * Threads: a table, any, under its own lock, which is held for a copy at most; a view, its
 * context's.
 */
#ifndef PWC_CLIENTLIB_SPANS_H
#define PWC_CLIENTLIB_SPANS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct span {
    uintptr_t start;
    uint64_t length;
    uint64_t offset; /* of the start, in the segment */
    uint32_t segment;
    uint8_t *shadow; /* not NULL: the daemon reaches this copy instead */
};

struct span_table {
    pthread_mutex_t lock;
    struct span *spans; /* by start, never overlapping */
    uint32_t count;
    uint32_t room;
    _Atomic uint64_t generation; /* grows with every change */
};

struct span_view {
    struct span *spans;
    uint32_t count;
    uint32_t room;
    uint32_t last; /* index of the last hit */
    uint64_t generation;
};

void span_table_init(struct span_table *table);
void span_table_destroy(struct span_table *table);
/* -EEXIST: overlaps another; -ENOMEM. */
int span_table_add(struct span_table *table, const struct span *span);
void span_table_remove(struct span_table *table, uintptr_t start);

void span_view_destroy(struct span_view *view);
/*
 * The span that holds all of [start, start + length), with the offset of `start` in its segment
 * (and in *shadow the address of its copy, or NULL): 0, -EFAULT when there is none, or -ENOMEM.
 */
int span_view_find(struct span_view *view, struct span_table *table, const void *start,
                   uint64_t length, uint32_t *segment, uint64_t *offset, uint8_t **shadow);

#endif
