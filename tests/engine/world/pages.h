/*
 * Zeroed memory for nodes that come and go. Fresh pages cost a fault each, and in a world of a few
 * rounds these faults take most of the time. So memory that is given back is cleared and given out
 * again. The oldest memory comes first, so that a node that opens again gets other memory than it
 * had.
 * A write to memory that was given back ends the test, at the latest when the memory is taken
 * again; under the address sanitizer a read does, too.
 *
 * Thread: one in each process. A child shares the pages of its parent; it gives none back.
 */
#ifndef PWC_TESTS_ENGINE_PAGES_H
#define PWC_TESTS_ENGINE_PAGES_H

#include <stddef.h>

/* NULL: there is no memory. */
void *pages_take(size_t bytes);
/* `bytes` as they were taken. */
void pages_give(void *at, size_t bytes);

#endif
