/*
 * The table of keys: a key of libfabric has 64 bits, a key of libpwc 32 bytes. Each domain has a
 * table with the libpwc key of each of its libfabric keys. A peer that uses a key for the first
 * time reads the table by a get, so the owner has nothing to do. The libpwc key of the table itself
 * is a part of an endpoint's address (address.h).
 *
 *     key --hash--> home slot | entry | entry | ... KEYS_WINDOW entries, one get
 *
 * An entry stands in one of the KEYS_WINDOW slots from its home on. The domain owns its table;
 * threads that register memory share it, so its calls take its lock.
 */
#ifndef PWC_PROVIDER_KEYS_H
#define PWC_PROVIDER_KEYS_H

#include <pwc/pwc.h>
#include <stdbool.h>
#include <stdint.h>

#define KEYS_SLOTS  4096
#define KEYS_WINDOW 16

/* An entry, which peers on any node read: a contract between all processes with this provider. */
struct key_entry {
    uint64_t key;
    uint64_t base;   /* the address that offset 0 of the region has for peers */
    uint64_t length; /* of the region */
    uint32_t valid;  /* 1; 0 while the other words change */
    uint32_t skip;   /* bytes of the region before the range that peers may reach */
    struct pwc_key region;
};

_Static_assert(sizeof(struct key_entry) == 64, "an entry is one line");

struct keys;

int keys_open(pwc_client *client, struct keys **out);
void keys_close(struct keys *keys);

/* The table's own key, for peers. */
const struct pwc_key *keys_region(const struct keys *keys);

/* Adds an entry with the caller's key. -EEXIST: the key is in use; -ENOSPC: no slot is free in its
 * window. */
int keys_add(struct keys *keys, const struct key_entry *entry);

/* Adds an entry with a key that this table has never had, and stores the key in entry->key. */
int keys_add_new(struct keys *keys, struct key_entry *entry);

void keys_remove(struct keys *keys, uint64_t key);

/* The slot where the window of a key begins. */
unsigned keys_home(uint64_t key);

/* Finds a key's entry in a window that was read from a peer, or returns NULL. */
const struct key_entry *keys_find(const struct key_entry window[KEYS_WINDOW], uint64_t key);

#endif
