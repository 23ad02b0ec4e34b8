/*
 * Chains: which entries of one table belong to an entry of another, or to a key, so that nobody
 * walks a table to find them. Doubly linked lists of numbers in private memory, which is zeroed:
 * numbers are kept plus one. An entry is in one place of a chain at a time.
 *
 *     first[home] --> entry <--> entry <--> entry
 *
 * The homes of keys grow with the entries, one home with each entry (linear hashing): a new home
 * takes its share of one other, so no entry waits while many move, and little memory is touched for
 * few entries. Homes stay when entries go.
 *
 * An entry may stay in its chain after a transaction that was rolled back; so code that walks a
 * chain looks at the entry's state, and an entry that is added again leaves its place first. Code
 * that adds to a chain of keys does not do so while it walks that chain.
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_CHAIN_H
#define PWC_ENGINE_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

struct chain_link {
    uint32_t next, back; /* plus one; 0: none */
    uint32_t home;       /* number plus one; 0: in no place */
    uint32_t hash;       /* where homes belong to keys */
};

/* Homes of keys that a chain begins with; a power of two. */
#define CHAIN_HOMES 64u

struct chain {
    uint32_t *first; /* by home */
    struct chain_link *links;
    /* Only where homes belong to keys: */
    uint32_t homes;   /* in use */
    uint32_t doubled; /* twice the largest power of two that is not above `homes`; it divides hashes
                       */
    uint32_t members; /* entries in their places */
    uint32_t most;    /* homes for which there is memory */
};

/* The first entry of the home, and the one after another entry; UINT32_MAX: none. */
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

/* Adds a home, and moves the entries to it that belong to it. */
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
