/*
 * Finds the memory of a region by its slot and generation: where a Long's payload was placed.
 *
 * The table has all regions of the client that have a key. Each context reads a view of its own
 * (versioned.h), without a lock. The program must not end a region while a handler works on its
 * memory.
 *
 * Threads: any thread uses a table; only the thread that owns the context uses its view.
 */
#ifndef PWC_CLIENTLIB_LANDINGS_H
#define PWC_CLIENTLIB_LANDINGS_H

#include <stdint.h>
#include "clientlib/attach/versioned.h"

struct landing_table {
    struct versioned_table table;
};

struct landing_view {
    struct versioned_view view;
};

void landing_table_init(struct landing_table *landings);
void landing_table_destroy(struct landing_table *landings);
/* -EEXIST: the table has this slot and generation already; -ENOMEM. */
int landing_table_add(struct landing_table *landings, uint32_t slot, uint32_t generation,
                      uint8_t *base, uint64_t length);
void landing_table_remove(struct landing_table *landings, uint32_t slot, uint32_t generation);

void landing_view_destroy(struct landing_view *view);
/* 0 with *at; -EKEYREJECTED: there is no such region, or no such range in it; or -ENOMEM. */
int landing_view_find(struct landing_view *view, struct landing_table *landings, uint32_t slot,
                      uint32_t generation, uint64_t offset, uint64_t length, uint8_t **at);

#endif
