/*
 * Owns the table of regions by slot and generation, and the contexts' views of it. Threads: see
 * landings.h.
 */
#include "clientlib/memory/landings.h"

#include <errno.h>

struct landing {
    uint64_t key; /* the region's slot and generation, because slots are used again */
    uint8_t *base;
    uint64_t length;
};

static uint64_t key_of(uint32_t slot, uint32_t generation)
{
    return (uint64_t)slot << 32 | generation;
}

static bool same(const void *left, const void *right)
{
    const struct landing *a = left, *b = right;

    return a->key == b->key;
}

void landing_table_init(struct landing_table *landings)
{
    versioned_init(&landings->table, sizeof(struct landing));
}

void landing_table_destroy(struct landing_table *landings)
{
    versioned_destroy(&landings->table);
}

int landing_table_add(struct landing_table *landings, uint32_t slot, uint32_t generation,
                      uint8_t *base, uint64_t length)
{
    struct landing landing = {
        .key = key_of(slot, generation),
        .base = base,
        .length = length,
    };

    return versioned_add(&landings->table, &landing, same);
}

void landing_table_remove(struct landing_table *landings, uint32_t slot, uint32_t generation)
{
    versioned_remove(&landings->table, key_of(slot, generation));
}

void landing_view_destroy(struct landing_view *view)
{
    versioned_view_destroy(&view->view);
}

int landing_view_find(struct landing_view *view, struct landing_table *table, uint32_t slot,
                      uint32_t generation, uint64_t offset, uint64_t length, uint8_t **at)
{
    struct versioned_view *v = &view->view;
    uint64_t key = key_of(slot, generation);
    const struct landing *landings;
    uint32_t index;
    int rc = versioned_refresh(v, &table->table);

    if (rc < 0)
        return rc;
    landings = v->entries;
    index = v->last;
    if (index >= v->count || landings[index].key != key) {
        index = versioned_up_to(landings, sizeof(*landings), v->count, key);
        if (index == 0 || landings[--index].key != key)
            return -EKEYREJECTED;
        v->last = index;
    }
    if (offset > landings[index].length || length > landings[index].length - offset)
        return -EKEYREJECTED;
    *at = landings[index].base + offset;
    return 0;
}
