/*
 * Free entries of the arena's tables. Each table has a stack, in the arena, of the free entries
 * that were in use before, and a number from which on no entry ever was. Memory from that entry on
 * is untouched, so a large table may take little memory. Taking and giving entries is part of the
 * open transaction, so a crash or a rollback undoes it. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_TABLE_H
#define PWC_ENGINE_TABLE_H

#include "daemon/engine/state/state.h"

static inline bool table_full(const struct engine *e, enum table table)
{
    const struct free_list *unused = &e->unused[table];

    return *unused->count == 0 && *unused->fresh == unused->size;
}

/* Bounds a walk: no entry from this number on was ever in use. Any thread. */
static inline uint32_t table_bound(const struct engine *e, enum table table)
{
    return __atomic_load_n(e->unused[table].fresh, __ATOMIC_RELAXED);
}

/* Whether any entry is in use. Any thread. */
static inline bool table_empty(const struct engine *e, enum table table)
{
    return __atomic_load_n(e->unused[table].count, __ATOMIC_RELAXED) == table_bound(e, table);
}

/* Within a transaction: takes a free entry; NONE: there is none. */
static inline uint32_t table_take(struct engine *e, enum table table)
{
    struct free_list *unused = &e->unused[table];
    uint32_t left = *unused->count, fresh = *unused->fresh;

    if (left > 0) {
        set32(e, unused->count, left - 1);
        return unused->stack[left - 1];
    }
    if (fresh == unused->size)
        return NONE;
    set32(e, unused->fresh, fresh + 1);
    return fresh;
}

/* Within a transaction: frees an entry that nothing names any more. */
static inline void table_give(struct engine *e, enum table table, uint32_t entry)
{
    struct free_list *unused = &e->unused[table];

    set32(e, &unused->stack[*unused->count], entry);
    set32(e, unused->count, *unused->count + 1);
}

/* Puts the entry on the leaving list: later sweeps look at it. */
static inline void table_keep_leaving(struct engine *e, enum table table, uint32_t entry)
{
    struct leaving *leaving = &e->leaving[table];

    if (leaving->listed[entry])
        return;
    leaving->listed[entry] = true;
    leaving->entries[(leaving->head + leaving->count++) % leaving->size] = entry;
}

/* As table_keep_leaving, and lets a sweep begin soon. */
static inline void table_leaves(struct engine *e, enum table table, uint32_t entry)
{
    table_keep_leaving(e, table, entry);
    e->sweep = true;
}

/* Calls `leave` for up to `most` entries at the front of the leaving list. An entry whose `leave`
 * returns false is off the list; others move to its end. */
static inline void table_sweep(struct engine *e, enum table table, uint32_t most,
                               bool (*leave)(struct engine *e, uint32_t entry))
{
    struct leaving *leaving = &e->leaving[table];
    uint32_t n = leaving->count < most ? leaving->count : most;

    leaving->due -= n < leaving->due ? n : leaving->due;
    for (uint32_t left = n; left > 0; left--) {
        uint32_t entry = leaving->entries[leaving->head];

        leaving->head = leaving->head + 1 < leaving->size ? leaving->head + 1 : 0;
        leaving->count--;
        leaving->listed[entry] = false;
        if (leave(e, entry))
            table_keep_leaving(e, table, entry);
    }
    if (leaving->count == 0)
        leaving->head = 0; /* the ring takes no more memory than its entries need */
}

#endif
