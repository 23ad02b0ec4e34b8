/*
 * A sorted table that any thread may change, and that contexts read without a lock: each context
 * has a view of its own, a copy that is made again when the table's generation has changed.
 *
 * Every entry starts with a 64-bit key, by which entries are sorted.
 *
 * Threads: any thread uses a table, and holds its lock for as long as a copy takes at most. Only
 * the thread that owns a context uses the context's view.
 */
#ifndef PWC_CLIENTLIB_VERSIONED_H
#define PWC_CLIENTLIB_VERSIONED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct versioned_table {
    pthread_mutex_t lock;
    void *entries;
    size_t entry_bytes;
    uint32_t count;
    uint32_t room;
    _Atomic uint64_t generation; /* grows with every change */
};

struct versioned_view {
    void *entries;
    uint32_t count;
    uint32_t room;
    uint32_t last; /* index of the last hit; the view's owner may use it */
    uint64_t generation;
};

/* Whether two entries, adjacent by key, cannot both be in the table. */
typedef bool versioned_clash(const void *left, const void *right);

void versioned_init(struct versioned_table *table, size_t entry_bytes);
void versioned_destroy(struct versioned_table *table);
/* -EEXIST: the entry clashes with an adjacent one; -ENOMEM. */
int versioned_add(struct versioned_table *table, const void *entry, versioned_clash *clash);
/* Does nothing when no entry has this key. */
void versioned_remove(struct versioned_table *table, uint64_t key);

void versioned_view_destroy(struct versioned_view *view);
int versioned_copy(struct versioned_view *view, struct versioned_table *table);

/* Brings the view up to date with the table: 0 or -ENOMEM. */
static inline int versioned_refresh(struct versioned_view *view, struct versioned_table *table)
{
    if (atomic_load_explicit(&table->generation, memory_order_acquire) == view->generation)
        return 0;
    return versioned_copy(view, table);
}

/* How many of the entries have this key or a lower one. */
uint32_t versioned_up_to(const void *entries, size_t entry_bytes, uint32_t count, uint64_t key);

#endif
