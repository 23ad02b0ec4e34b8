/* Bytes that show where they come from: each depends on a seed and on its position. */
#ifndef PWCPERF_PATTERN_H
#define PWCPERF_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/* Returns a well mixed word for any word (the finisher of splitmix64). */
static inline uint64_t pattern_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Writes the bytes of stream `seed` from position `from` on. */
void pattern_fill(void *to, size_t size, uint64_t seed, uint64_t from);
/* Returns the position (from 0) of the first byte that differs, or `size`. */
size_t pattern_check(const void *at, size_t size, uint64_t seed, uint64_t from);

#endif
