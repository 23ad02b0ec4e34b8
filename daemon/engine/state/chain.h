/*
 * Chains: which entries of one table belong to an entry of another, or to a key, so that nobody
 * walks a table to find them. Doubly linked lists of numbers in private memory, which is zeroed:
 * numbers are kept plus one. An entry is in one place of a chain at a time.
 *
 *     first[home] --> entry <--> entry <--> entry
 *
 * An entry may stay in its chain behind a transaction that was rolled back; so code that walks a
 * chain looks at the entry's state, and an entry that is added again leaves its place first.
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_CHAIN_H
#define PWC_ENGINE_CHAIN_H

#include <stdint.h>

struct chain_link {
    uint32_t next, back; /* plus one; 0: none */
    uint32_t home;       /* plus one; 0: in no place */
};

struct chain {
    uint32_t *first; /* by home */
    struct chain_link *links;
    uint32_t mask; /* of homes, where they are keys */
};

/* The first entry there, and the one behind another; UINT32_MAX: none. */
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
}

static inline void chain_add(struct chain *c, uint32_t home, uint32_t entry)
{
    chain_remove(c, entry);
    c->links[entry] = (struct chain_link){.next = c->first[home], .home = home + 1};
    if (c->first[home] != 0)
        c->links[c->first[home] - 1].back = entry + 1;
    c->first[home] = entry + 1;
}

/* The home of a key of two or three words. */
static inline uint32_t chain_home(const struct chain *c, uint32_t a, uint64_t b)
{
    uint64_t hash = (b ^ (uint64_t)a << 32) * UINT64_C(0x9e3779b97f4a7c15);

    return (uint32_t)((hash ^ (uint64_t)a * UINT64_C(0xc2b2ae3d27d4eb4f)) >> 33) & c->mask;
}

#endif
