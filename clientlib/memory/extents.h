/*
 * Which ranges of a segment are free: first fit over a sorted list.
 *
 * Thread: the one that holds the client's lock.
 */
#ifndef PWC_CLIENTLIB_EXTENTS_H
#define PWC_CLIENTLIB_EXTENTS_H

#include <stdint.h>

struct extent {
    uint64_t offset;
    uint64_t length;
};

struct extents {
    struct extent *free; /* by offset; no two are adjacent */
    uint32_t count;
    uint32_t room;
    uint32_t taken; /* number of ranges that are taken */
};

/* For a segment of `length` bytes, all of them free. */
int extents_init(struct extents *extents, uint64_t length);
void extents_destroy(struct extents *extents);

/* The lowest free range of `length` bytes at a multiple of `align` (a power of two): 0 with
 * *offset, or -ENOMEM. */
int extents_take(struct extents *extents, uint64_t length, uint64_t align, uint64_t *offset);
/* Gives back exactly a range that was taken. Cannot fail: extents_take has made room for it. */
void extents_give(struct extents *extents, uint64_t offset, uint64_t length);

#endif
