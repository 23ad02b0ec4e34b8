/*
 * Where the other threads' stacks are, as far as it can be recognised: the kernel knows of each
 * thread the head of its list of robust mutexes, which the C library keeps at the top of the stack,
 * beside the thread's own variables.
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

/* The threads of this process but its first one, whose stack has a name. 0 or -ENOMEM. Where the
 * kernel does not list the threads there are none. */
int stacks_open(struct stacks *stacks);
void stacks_close(struct stacks *stacks);

/* Whether [start, end) has pages of a stack that stands in this mapping. */
bool stacks_touch(const struct stacks *stacks, const struct maps_line *line, uintptr_t start,
                  uintptr_t end);

#endif
