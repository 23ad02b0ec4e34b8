/* A short access to memory counts more bytes in turns and steps than it moves. */
#ifndef PWC_ENGINE_ACCESS_H
#define PWC_ENGINE_ACCESS_H

#include <stdint.h>

/* The least bytes that an element or piece counts, because each is an access to memory of its own:
 * one to a byte takes as long as one to the whole cache line. */
#define ACCESS_COUNTS 64u

static inline uint32_t access_rounded(uint32_t bytes)
{
    return bytes < ACCESS_COUNTS ? ACCESS_COUNTS - bytes : 0;
}

#endif
