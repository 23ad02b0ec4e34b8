/*
 * The mappings of this process, as /proc/thread-self/maps lists them. The reader allocates nothing,
 * so the heap does not change while it is looked at.
 *
 * Thread: any; a reader belongs to its caller.
 */
#ifndef PWC_CLIENTLIB_MAPS_H
#define PWC_CLIENTLIB_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { MAPS_NAME_MAX = 64 };

struct maps_line {
    uintptr_t start, end;
    uint64_t offset, inode;
    dev_t device;
    bool readable, writable, executable, shared;
    char name[MAPS_NAME_MAX]; /* cut if it is longer; "": the mapping has none */
};

struct maps {
    int fd;
    bool skipping; /* the rest of a too long line is being skipped */
    uint32_t at, filled;
    char buffer[2048];
};

/* 0, or why the list cannot be read. */
int maps_open(struct maps *maps);
void maps_close(struct maps *maps);
/* The next mapping, by ascending address: 1, 0 at the end, or a negative errno. */
int maps_next(struct maps *maps, struct maps_line *line);

/* The mapping that has this address: 1, 0 if none has it, or why the list cannot be read. */
int maps_find(uintptr_t at, struct maps_line *line);

#endif
