/*
 * Owns a domain's table of keys, in a region that peers read. Threads: all that register memory;
 * the table's lock keeps them apart. Peers read entries while these change: `valid` is cleared
 * first and set last, and if a peer has read an entry that was changing, its bind fails.
 */
#include "providers/libfabric/members/keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "providers/libfabric/lock.h"

struct keys {
    struct lock lock;
    pwc_region *region;
    struct pwc_key region_key;
    struct key_entry *entries; /* KEYS_SLOTS + KEYS_WINDOW - 1: a window never wraps */
    uint64_t next;             /* the last key that was chosen here */
};

unsigned keys_home(uint64_t key)
{
    return (unsigned)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 52) % KEYS_SLOTS;
}

int keys_open(pwc_client *client, struct keys **out)
{
    struct keys *keys = calloc(1, sizeof(*keys));
    int rc = -ENOMEM;

    if (!keys)
        return rc;
    rc = pwc_alloc(client, (KEYS_SLOTS + KEYS_WINDOW - 1) * sizeof(struct key_entry),
                   PWC_REMOTE_READ, &keys->region);
    if (rc < 0)
        goto fail;
    rc = pwc_region_key(keys->region, &keys->region_key);
    if (rc < 0)
        goto fail;
    keys->entries = pwc_region_addr(keys->region);
    lock_init(&keys->lock, true);
    *out = keys;
    return 0;
fail:
    if (keys->region)
        pwc_region_free(keys->region);
    free(keys);
    return rc;
}

void keys_close(struct keys *keys)
{
    pwc_region_free(keys->region);
    lock_destroy(&keys->lock);
    free(keys);
}

const struct pwc_key *keys_region(const struct keys *keys)
{
    return &keys->region_key;
}

/* Finds a slot for a new key. NULL: the window is full, or has this key already. */
static struct key_entry *free_slot(struct keys *keys, uint64_t key, int *why)
{
    struct key_entry *window = &keys->entries[keys_home(key)];
    struct key_entry *found = NULL;

    *why = -ENOSPC;
    for (unsigned i = 0; i < KEYS_WINDOW; i++) {
        if (window[i].valid && window[i].key == key) {
            *why = -EEXIST;
            return NULL;
        }
        if (!window[i].valid && !found)
            found = &window[i];
    }
    return found;
}

static void fill_slot(struct key_entry *slot, const struct key_entry *entry)
{
    slot->key = entry->key;
    slot->base = entry->base;
    slot->length = entry->length;
    slot->skip = entry->skip;
    slot->region = entry->region;
    __atomic_store_n(&slot->valid, 1, __ATOMIC_RELEASE);
}

int keys_add(struct keys *keys, const struct key_entry *entry)
{
    struct key_entry *slot;
    int rc;

    lock_take(&keys->lock);
    slot = free_slot(keys, entry->key, &rc);
    if (slot) {
        fill_slot(slot, entry);
        rc = 0;
    }
    lock_give(&keys->lock);
    return rc;
}

int keys_add_new(struct keys *keys, struct key_entry *entry)
{
    struct key_entry *slot = NULL;
    int rc = -ENOSPC;

    lock_take(&keys->lock);
    for (unsigned tries = 0; !slot && tries < KEYS_SLOTS; tries++) {
        entry->key = ++keys->next;
        slot = free_slot(keys, entry->key, &rc);
    }
    if (slot) {
        fill_slot(slot, entry);
        rc = 0;
    }
    lock_give(&keys->lock);
    return rc;
}

void keys_remove(struct keys *keys, uint64_t key)
{
    struct key_entry *window = &keys->entries[keys_home(key)];

    lock_take(&keys->lock);
    for (unsigned i = 0; i < KEYS_WINDOW; i++)
        if (window[i].valid && window[i].key == key)
            __atomic_store_n(&window[i].valid, 0, __ATOMIC_RELEASE);
    lock_give(&keys->lock);
}

const struct key_entry *keys_find(const struct key_entry window[KEYS_WINDOW], uint64_t key)
{
    for (unsigned i = 0; i < KEYS_WINDOW; i++)
        if (window[i].valid == 1 && window[i].key == key)
            return &window[i];
    return NULL;
}
