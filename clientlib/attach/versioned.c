/* Owns sorted tables, and the views that contexts have of them. Threads: see versioned.h. */
#include "clientlib/attach/versioned.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void versioned_init(struct versioned_table *table, size_t entry_bytes)
{
    memset(table, 0, sizeof(*table));
    table->entry_bytes = entry_bytes;
    pthread_mutex_init(&table->lock, NULL);
    atomic_init(&table->generation, 1);
}

void versioned_destroy(struct versioned_table *table)
{
    free(table->entries);
    pthread_mutex_destroy(&table->lock);
}

static int make_room(void **entries, size_t entry_bytes, uint32_t *room, uint32_t count)
{
    uint32_t larger = *room ? *room : 8;
    void *list;

    if (count <= *room)
        return 0;
    while (larger < count)
        larger *= 2;
    list = realloc(*entries, larger * entry_bytes);
    if (!list)
        return -ENOMEM;
    *entries = list;
    *room = larger;
    return 0;
}

uint32_t versioned_up_to(const void *entries, size_t entry_bytes, uint32_t count, uint64_t key)
{
    uint32_t low = 0;
    uint32_t high = count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        uint64_t found;

        memcpy(&found, (const uint8_t *)entries + middle * entry_bytes, sizeof(found));
        if (found <= key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint8_t *entry_at(const struct versioned_table *table, uint32_t at)
{
    return (uint8_t *)table->entries + at * table->entry_bytes;
}

static uint64_t key_of(const void *entry)
{
    uint64_t key;

    memcpy(&key, entry, sizeof(key));
    return key;
}

static uint32_t up_to(const struct versioned_table *table, uint64_t key)
{
    return versioned_up_to(table->entries, table->entry_bytes, table->count, key);
}

int versioned_add(struct versioned_table *table, const void *entry, versioned_clash *clash)
{
    uint32_t at;
    int rc;

    pthread_mutex_lock(&table->lock);
    rc = make_room(&table->entries, table->entry_bytes, &table->room, table->count + 1);
    if (rc < 0)
        goto unlock;
    at = up_to(table, key_of(entry));
    if ((at > 0 && clash(entry_at(table, at - 1), entry)) ||
        (at < table->count && clash(entry, entry_at(table, at)))) {
        rc = -EEXIST;
        goto unlock;
    }
    memmove(entry_at(table, at + 1), entry_at(table, at), (table->count - at) * table->entry_bytes);
    memcpy(entry_at(table, at), entry, table->entry_bytes);
    table->count++;
    atomic_fetch_add_explicit(&table->generation, 1, memory_order_release);
unlock:
    pthread_mutex_unlock(&table->lock);
    return rc;
}

void versioned_remove(struct versioned_table *table, uint64_t key)
{
    uint32_t after;

    pthread_mutex_lock(&table->lock);
    after = up_to(table, key);
    if (after > 0 && key_of(entry_at(table, after - 1)) == key) {
        memmove(entry_at(table, after - 1), entry_at(table, after),
                (table->count - after) * table->entry_bytes);
        table->count--;
        atomic_fetch_add_explicit(&table->generation, 1, memory_order_release);
    }
    pthread_mutex_unlock(&table->lock);
}

void versioned_view_destroy(struct versioned_view *view)
{
    free(view->entries);
    *view = (struct versioned_view){0};
}

int versioned_copy(struct versioned_view *view, struct versioned_table *table)
{
    int rc;

    pthread_mutex_lock(&table->lock);
    rc = make_room(&view->entries, table->entry_bytes, &view->room, table->count);
    if (rc == 0) {
        if (table->count > 0)
            memcpy(view->entries, table->entries, table->count * table->entry_bytes);
        view->count = table->count;
        view->generation = atomic_load_explicit(&table->generation, memory_order_relaxed);
        view->last = 0;
    }
    pthread_mutex_unlock(&table->lock);
    return rc;
}
