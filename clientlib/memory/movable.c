/* Owns nothing: decides whether ranges of memory can be moved (movable.h). Thread: any. */
#include "clientlib/memory/movable.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "clientlib/memory/maps.h"
#include "clientlib/memory/stacks.h"

static bool starts(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* Why a mapping cannot be moved, or NULL. */
static const char *fault_of(enum movable what, const struct maps_line *line)
{
    bool heap = strcmp(line->name, "[heap]") == 0;
    bool kernels = line->name[0] == '[' && !heap && !starts(line->name, "[anon:");

    if (starts(line->name, "[stack"))
        return "a stack";
    if (kernels)
        return "the kernel's";
    if (line->shared)
        return "shared: a region's, or a shared mapping of the program's own";
    if (!line->writable || !line->readable)
        return "not both readable and writable";
    if (line->executable)
        return "executable";
    if (what == MOVABLE_PRIVATE)
        return NULL;
    if (heap)
        return "the heap break's: use PWC_SHARE";
    return line->inode != 0 ? "a file's: use PWC_SHARE" : NULL;
}

static int refuse(char *why, uintptr_t from, uintptr_t to, const char *fault)
{
    snprintf(why, MOVABLE_WHY_MAX, "memory at 0x%" PRIxPTR " to 0x%" PRIxPTR " is %s", from, to,
             fault);
    return -EINVAL;
}

/* Checks all mappings of the range, and that there is no gap between them. */
static int check(enum movable what, const struct stacks *stacks, struct maps *maps, uintptr_t start,
                 uintptr_t end, char *why)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uintptr_t covered = start; /* everything before this address is movable */
    struct maps_line line;
    int rc = 0;

    while (covered < end && (rc = maps_next(maps, &line)) > 0) {
        const char *fault = fault_of(what, &line);

        if (line.end <= covered)
            continue;
        if (line.start > covered)
            break;
        if (!fault && (stacks_touch(stacks, &line, start, end) || (here >= start && here < end)))
            fault = "a thread's stack";
        if (fault)
            return refuse(why, line.start, line.end, fault);
        covered = line.end;
    }
    if (rc < 0)
        return rc;
    return covered >= end ? 0 : refuse(why, covered, end, "not mapped, at least its first page");
}

int movable_check(enum movable what, const void *address, size_t length, char *why)
{
    uintptr_t start = (uintptr_t)address;
    struct stacks stacks;
    struct maps maps;
    int rc = stacks_open(&stacks);

    why[0] = '\0';
    if (rc < 0)
        return rc;
    rc = maps_open(&maps);
    if (rc == 0) {
        rc = check(what, &stacks, &maps, start, start + length, why);
        maps_close(&maps);
    }
    stacks_close(&stacks);
    return rc;
}
