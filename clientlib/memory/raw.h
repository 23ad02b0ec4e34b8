/*
 * System calls that write nothing but what the kernel writes: no errno, which stands in memory that
 * may be under way to another place (move.h).
 *
 * Thread: any.
 */
#ifndef PWC_CLIENTLIB_RAW_H
#define PWC_CLIENTLIB_RAW_H

#include <stdint.h>

/* One call of the kernel with up to five arguments: its result, or a negative errno. */
intptr_t raw_call(intptr_t number, const intptr_t arguments[5]);

#endif
