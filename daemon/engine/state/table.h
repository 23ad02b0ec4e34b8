/*
 * Free entries of the arena's tables: a stack of their numbers for each table, in the arena. Giving
 * and taking are part of the open transaction, so a crash or a rollback undoes them too. Thread:
 * the progress thread.
 */
#ifndef PWC_ENGINE_TABLE_H
#define PWC_ENGINE_TABLE_H

#include "daemon/engine/state/state.h"

static inline bool table_full(const struct engine *e, enum table table)
{
    return *e->unused[table].count == 0;
}

/* Within a transaction: an entry that was free, or NONE. */
static inline uint32_t table_take(struct engine *e, enum table table)
{
    struct free_list *unused = &e->unused[table];
    uint32_t left = *unused->count;

    if (left == 0)
        return NONE;
    set32(e, unused->count, left - 1);
    return unused->stack[left - 1];
}

/* Within a transaction: nothing names the entry any more. */
static inline void table_give(struct engine *e, enum table table, uint32_t entry)
{
    struct free_list *unused = &e->unused[table];

    set32(e, &unused->stack[*unused->count], entry);
    set32(e, unused->count, *unused->count + 1);
}

/* Later sweeps look at the entry. */
static inline void table_keep_leaving(struct engine *e, enum table table, uint32_t entry)
{
    struct leaving *leaving = &e->leaving[table];

    if (leaving->listed[entry])
        return;
    leaving->listed[entry] = true;
    leaving->entries[(leaving->head + leaving->count++) % leaving->size] = entry;
}

/* So does the next step. */
static inline void table_leaves(struct engine *e, enum table table, uint32_t entry)
{
    table_keep_leaving(e, table, entry);
    e->sweep = true;
}

/* Calls `leave` for the first entries that leave, `most` of them: false takes one off the list,
 * others go to its end. */
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
}

#endif
