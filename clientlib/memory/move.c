/*
 * Owns nothing: puts other pages under a range of addresses, and back. Thread: the caller's, which
 * keeps all others away from the range.
 */
#include "clientlib/memory/move.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* One line of /proc/self/maps: a range, and whether its memory may be moved. */
static bool parse_line(const char *line, uintptr_t *start, uintptr_t *end, bool *movable)
{
    char rights[5];
    uint64_t inode;
    int name_at = 0;

    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*x %*s %" SCNu64 " %n", start, end, rights,
               &inode, &name_at) < 4)
        return false;

    const char *name = line + name_at;
    bool named = *name != '\0' && *name != '\n' && strncmp(name, "[anon:", 6) != 0;

    *movable = memcmp(rights, "rw", 2) == 0 && rights[3] == 'p' && inode == 0 && !named;
    return true;
}

/* A thread's stack has no name in the list of mappings. That of this thread is found by its frame.
 */
static bool on_this_stack(uintptr_t start, uintptr_t end)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    return here >= start && here < end;
}

int move_check(const void *address, size_t length)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (uintptr_t)address;
    uintptr_t end = start + length;
    uintptr_t covered = start; /* up to here all is movable */
    char *line = NULL;
    size_t room = 0;
    FILE *maps;

    if (length == 0 || start % page != 0 || length % page != 0 || end < start ||
        on_this_stack(start, end))
        return -EINVAL;
    maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return -errno;
    while (covered < end && getline(&line, &room, maps) > 0) {
        uintptr_t from, to;
        bool movable;

        if (!parse_line(line, &from, &to, &movable) || to <= covered)
            continue;
        if (from > covered || !movable)
            break;
        covered = to;
    }
    free(line);
    fclose(maps);
    return covered >= end ? 0 : -EINVAL;
}

int move_in(struct mapping *mapping, int fd, void *start, size_t length)
{
    void *copy = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (copy == MAP_FAILED)
        return -errno;
    memcpy(copy, start, length);
    munmap(copy, length);
    return mapping_adopt_at(mapping, fd, length, start);
}

int move_out(struct mapping *mapping)
{
    void *copy =
        mmap(NULL, mapping->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (copy == MAP_FAILED)
        return -errno;
    memcpy(copy, mapping->base, mapping->size);
    if (mremap(copy, mapping->size, mapping->size, MREMAP_MAYMOVE | MREMAP_FIXED, mapping->base) ==
        MAP_FAILED) {
        int rc = -errno;

        munmap(copy, mapping->size);
        return rc;
    }
    mapping_close_fd(mapping);
    mapping->base = NULL;
    mapping->size = 0;
    return 0;
}
