/*
 * Finds the stacks of other threads, where this is possible: the kernel knows for each thread the
 * head of its list of robust mutexes, which the C library keeps at the top of the thread's stack,
 * beside its thread-local variables.
 *
 * Thread: any; a list belongs to its caller.
 */
#ifndef PWC_CLIENTLIB_STACKS_H
#define PWC_CLIENTLIB_STACKS_H

#include <stdbool.h>
#include <stdint.h>
#include "clientlib/memory/maps.h"

struct stacks {
    uintptr_t *heads;
    uint32_t count;
};

/* Lists the threads of this process except the first, whose stack has a name in the mappings. 0 or
 * -ENOMEM. Where the kernel does not list threads, the list is empty. */
int stacks_open(struct stacks *stacks);
void stacks_close(struct stacks *stacks);

/* Whether [start, end) has pages of a stack that is in this mapping. */
bool stacks_touch(const struct stacks *stacks, const struct maps_line *line, uintptr_t start,
                  uintptr_t end);

#endif
