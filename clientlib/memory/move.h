/*
 * Moving anonymous memory under a shared mapping in place, and back: the same addresses, the same
 * contents, other pages.
 *
 * Thread: any; the caller promises that nothing touches the range meanwhile.
 */
#ifndef PWC_CLIENTLIB_MOVE_H
#define PWC_CLIENTLIB_MOVE_H

#include <stddef.h>
#include "shm_ring/mapping.h"

/*
 * Whether the range may be moved: whole pages of private, anonymous, readable and writable memory
 * that is neither heap break nor stack. 0, -EINVAL, or why /proc/self/maps could not be read.
 */
int move_check(const void *start, size_t length);

/* Copies the contents into the descriptor's file and maps that over the range. The descriptor
 * passes on success. On failure the range is as before. */
int move_in(struct mapping *mapping, int fd, void *start, size_t length);

/* Puts private anonymous memory with the contents back in the place of the mapping. On failure the
 * range stays shared. */
int move_out(struct mapping *mapping);

#endif
