/*
 * System calls without the C library, which write only what the kernel writes: not errno, whose
 * memory may be the range that is being moved (move.h).
 *
 * Thread: any.
 */
#ifndef PWC_CLIENTLIB_RAW_H
#define PWC_CLIENTLIB_RAW_H

#include <stdint.h>

/* One call of the kernel with up to five arguments: its result, or a negative errno. */
intptr_t raw_call(intptr_t number, const intptr_t arguments[5]);

#endif
