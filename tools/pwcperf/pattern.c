/* Fills and compares patterns, a word at a time. */
#include "tools/pwcperf/pattern.h"
#include <string.h>

static uint64_t word_at(uint64_t seed, uint64_t index)
{
    return pattern_mix(seed + index);
}

/* Returns the eight bytes at any position: of two words, if the position is not aligned. */
static uint64_t bytes_at(uint64_t seed, uint64_t position)
{
    uint64_t index = position / 8;
    unsigned shift = (unsigned)(position % 8) * 8;
    uint64_t word = word_at(seed, index) >> shift;
    return shift == 0 ? word : word | word_at(seed, index + 1) << (64 - shift);
}

void pattern_fill(void *to, size_t size, uint64_t seed, uint64_t from)
{
    unsigned char *byte = to;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = bytes_at(seed, from + i);
        memcpy(byte + i, &word, size - i < 8 ? size - i : 8);
    }
}

size_t pattern_check(const void *at, size_t size, uint64_t seed, uint64_t from)
{
    const unsigned char *byte = at;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t expected = bytes_at(seed, from + i);
        size_t length = size - i < 8 ? size - i : 8;
        if (memcmp(byte + i, &expected, length) == 0)
            continue;
        size_t same = 0;
        while (byte[i + same] == (unsigned char)(expected >> 8 * same))
            same++;
        return i + same;
    }
    return size;
}
