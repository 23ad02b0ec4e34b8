/*
 * Chains: lists of the entries of one table that belong to the same entry of another table, or to
 * the same key, so that no code walks a whole table to find them. A chain has a list for each
 * *home*: an entry of the other table, or a bucket of keys. The lists are doubly linked, by numbers
 * of entries. Private memory begins zeroed, so numbers are stored plus one. An entry is in one list
 * of a chain at most.
 *
 *     first[home] --> entry <--> entry <--> entry
 *
 * The number of buckets grows with that of the entries (linear hashing). A new bucket takes its
 * share of the entries of one other bucket, so no call moves many entries, and few entries touch
 * little memory. Buckets stay when entries leave.
 *
 * A rollback does not undo changes of chains, so a list may have an entry that no longer belongs
 * there. Code that walks a list checks each entry's state, and adding an entry first removes it
 * from its old list. Code must not add to a chain of keys while it walks that chain.
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_CHAIN_H
#define PWC_ENGINE_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

struct chain_link {
    uint32_t next, back; /* plus one; 0: none */
    uint32_t home;       /* the home's number plus one; 0: in no list */
    uint32_t hash;       /* only in a chain of keys: the hash of the entry's key */
};

/* Buckets that a chain of keys begins with; a power of two. */
#define CHAIN_HOMES 64u

struct chain {
    uint32_t *first; /* by home */
    struct chain_link *links;
    /* Only for a chain of keys: */
    uint32_t homes;   /* in use */
    uint32_t doubled; /* twice the largest power of two that is <= `homes`; divides hashes */
    uint32_t members; /* entries in the lists */
    uint32_t most;    /* homes for which there is memory */
};

/* The first entry of a home, and the entry after another one; UINT32_MAX: there is none. */
static inline uint32_t chain_first(const struct chain *c, uint32_t home)
{
    return c->first[home] - 1;
}

static inline uint32_t chain_next(const struct chain *c, uint32_t entry)
{
    return c->links[entry].next - 1;
}

static inline void chain_remove(struct chain *c, uint32_t entry)
{
    struct chain_link *link = &c->links[entry];

    if (link->home == 0)
        return;
    if (link->back == 0)
        c->first[link->home - 1] = link->next;
    else
        c->links[link->back - 1].next = link->next;
    if (link->next != 0)
        c->links[link->next - 1].back = link->back;
    *link = (struct chain_link){0};
    c->members--;
}

static inline void chain_add(struct chain *c, uint32_t home, uint32_t entry)
{
    chain_remove(c, entry);
    c->links[entry] = (struct chain_link){.next = c->first[home], .home = home + 1};
    if (c->first[home] != 0)
        c->links[c->first[home] - 1].back = entry + 1;
    c->first[home] = entry + 1;
    c->members++;
}

/* ---- by keys --------------------------------------------------------------------------------- */

/* `first` and `links` have room for `most` homes and entries. */
static inline void chain_keys_init(struct chain *c, uint32_t most)
{
    c->most = most;
    c->homes = most < CHAIN_HOMES ? most : CHAIN_HOMES;
    c->doubled = 2 * c->homes;
}

/* The hash of a key of two or three words. */
static inline uint32_t chain_hash(uint32_t a, uint64_t b)
{
    uint64_t hash = (b ^ (uint64_t)a << 32) * UINT64_C(0x9e3779b97f4a7c15);

    return (uint32_t)((hash ^ (uint64_t)a * UINT64_C(0xc2b2ae3d27d4eb4f)) >> 33);
}

static inline uint32_t chain_home_of(const struct chain *c, uint32_t hash)
{
    uint32_t home = hash & (c->doubled - 1);

    return home < c->homes ? home : home - c->doubled / 2;
}

/* The home of a key of two or three words. */
static inline uint32_t chain_home(const struct chain *c, uint32_t a, uint64_t b)
{
    return chain_home_of(c, chain_hash(a, b));
}

/* Adds a bucket, and moves to it the entries whose hashes belong there. */
static inline void chain_grow(struct chain *c)
{
    uint32_t to = c->homes++;
    uint32_t next, hash;

    for (uint32_t i = chain_first(c, to - c->doubled / 2); i != UINT32_MAX; i = next) {
        next = chain_next(c, i);
        hash = c->links[i].hash;
        if ((hash & (c->doubled - 1)) != to)
            continue;
        chain_add(c, to, i);
        c->links[i].hash = hash;
    }
    if (c->homes == c->doubled)
        c->doubled *= 2;
}

static inline void chain_add_key(struct chain *c, uint32_t hash, uint32_t entry)
{
    chain_add(c, chain_home_of(c, hash), entry);
    c->links[entry].hash = hash;
    if (c->members > c->homes && c->homes < c->most)
        chain_grow(c);
}

#endif
