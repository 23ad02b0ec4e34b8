/*
 * Owns the list of a segment's free ranges. Thread: the one that holds the client's lock.
 */
#include "clientlib/memory/extents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Room for this many free ranges: n taken ranges have at most n + 1 free ones between them. */
static int make_room(struct extents *extents, uint32_t count)
{
    uint32_t room = extents->room ? extents->room : 8;
    struct extent *free_list;

    if (count <= extents->room)
        return 0;
    while (room < count)
        room *= 2;
    free_list = realloc(extents->free, room * sizeof(*free_list));
    if (!free_list)
        return -ENOMEM;
    extents->free = free_list;
    extents->room = room;
    return 0;
}

int extents_init(struct extents *extents, uint64_t length)
{
    *extents = (struct extents){0};
    if (make_room(extents, 1) < 0)
        return -ENOMEM;
    extents->free[0] = (struct extent){.offset = 0, .length = length};
    extents->count = 1;
    return 0;
}

void extents_destroy(struct extents *extents)
{
    free(extents->free);
    *extents = (struct extents){0};
}

static void insert_at(struct extents *extents, uint32_t at, struct extent extent)
{
    memmove(&extents->free[at + 1], &extents->free[at],
            (extents->count - at) * sizeof(extents->free[0]));
    extents->free[at] = extent;
    extents->count++;
}

static void remove_at(struct extents *extents, uint32_t at)
{
    extents->count--;
    memmove(&extents->free[at], &extents->free[at + 1],
            (extents->count - at) * sizeof(extents->free[0]));
}

/* Cuts [offset, offset + length) out of the free range `at`. */
static void cut(struct extents *extents, uint32_t at, uint64_t offset, uint64_t length)
{
    struct extent *range = &extents->free[at];
    uint64_t before = offset - range->offset;
    struct extent after = {
        .offset = offset + length,
        .length = range->length - before - length,
    };

    if (before > 0) {
        range->length = before;
        if (after.length > 0)
            insert_at(extents, at + 1, after);
    } else if (after.length > 0) {
        *range = after;
    } else {
        remove_at(extents, at);
    }
}

int extents_take(struct extents *extents, uint64_t length, uint64_t align, uint64_t *offset)
{
    if (length == 0 || make_room(extents, extents->taken + 2) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < extents->count; i++) {
        const struct extent *range = &extents->free[i];
        uint64_t at = (range->offset + align - 1) & ~(align - 1);
        uint64_t skipped = at - range->offset;

        if (skipped <= range->length && length <= range->length - skipped) {
            cut(extents, i, at, length);
            extents->taken++;
            *offset = at;
            return 0;
        }
    }
    return -ENOMEM;
}

void extents_give(struct extents *extents, uint64_t offset, uint64_t length)
{
    struct extent *list = extents->free;
    uint32_t at = 0;

    while (at < extents->count && list[at].offset < offset)
        at++;

    int joins_left = at > 0 && list[at - 1].offset + list[at - 1].length == offset;
    int joins_right = at < extents->count && offset + length == list[at].offset;

    extents->taken--;
    if (joins_left) {
        list[at - 1].length += length;
        if (joins_right) {
            list[at - 1].length += list[at].length;
            remove_at(extents, at);
        }
    } else if (joins_right) {
        list[at].offset = offset;
        list[at].length += length;
    } else {
        insert_at(extents, at, (struct extent){.offset = offset, .length = length});
    }
}
