/*
 * Peers that must be looked at by a time: a binary heap in order of time, with each peer once at
 * most.
 *
 * Private memory, which is touched as the heap grows. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_DUE_H
#define PWC_ENGINE_DUE_H

#include <stdint.h>

struct due_entry {
    uint64_t at; /* ns */
    uint32_t peer;
};

struct due {
    struct due_entry *entries;
    uint32_t *places; /* by peer: its entry's number plus one; 0: it has none */
    uint32_t count;
};

/* Notes that the peer must be looked at by `at`. An earlier time that is noted already stays. */
void due_by(struct due *due, uint32_t peer, uint64_t at);
/* Removes the peer with the earliest time, and returns it. The heap must not be empty. */
uint32_t due_take(struct due *due);

/* The earliest time; UINT64_MAX: the heap is empty. */
static inline uint64_t due_next(const struct due *due)
{
    return due->count > 0 ? due->entries[0].at : UINT64_MAX;
}

#endif
