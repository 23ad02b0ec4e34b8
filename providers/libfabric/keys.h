/*
 * The table of keys: libfabric's keys have 64 bits, those of libpwc 32 bytes. Each domain has a
 * table that peers read by themselves when they meet a key for the first time, so that its owner
 * has nothing to do for it. Its own libpwc key is a part of an endpoint's address (address.h).
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

/* Peers read it, on any node: a contract of this provider's version. */
struct key_entry {
    uint64_t key;
    uint64_t base; /* the address that offset 0 has for peers */
    uint64_t length;
    uint32_t valid; /* 1; 0 while the other words change */
    uint32_t reserved;
    struct pwc_key region;
};

_Static_assert(sizeof(struct key_entry) == 64, "an entry is one line");

struct keys;

int keys_open(pwc_client *client, struct keys **out);
void keys_close(struct keys *keys);

/* The table's own key, for peers. */
const struct pwc_key *keys_region(const struct keys *keys);

/* Adds an entry. `entry->key` is the caller's, or is chosen here where `choose` gave it. -EEXIST:
 * the key is in use; -ENOSPC: no slot is free near its home. */
int keys_add(struct keys *keys, const struct key_entry *entry);

/* Adds an entry with a key that this table has never had, and gives it. */
int keys_add_new(struct keys *keys, struct key_entry *entry);

void keys_remove(struct keys *keys, uint64_t key);

/* The slot where the window of a key begins. */
unsigned keys_home(uint64_t key);

/* The entry of a key in the window that a peer has read, or NULL. */
const struct key_entry *keys_find(const struct key_entry window[KEYS_WINDOW], uint64_t key);

#endif
