/* Copies of equal elements at equal distances: rows of a matrix, every third number. Owns nothing.
 * Thread: any. */
#ifndef PWC_SHM_RING_STRIDED_H
#define PWC_SHM_RING_STRIDED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline __attribute__((always_inline)) void strided_copy_each(uint8_t *to, int64_t to_stride,
                                                                    const uint8_t *from,
                                                                    int64_t from_stride,
                                                                    size_t element, uint32_t count)
{
    for (int64_t i = 0; i < count; i++)
        memcpy(to + i * to_stride, from + i * from_stride, element);
}

/* Copies elements one by one. Only addresses of elements are computed: behind the last one, a
 * stride may lead anywhere. The usual lengths are constants, so that their copies need no call; 8
 * bytes are one store. */
static inline void strided_copy(uint8_t *to, int64_t to_stride, const uint8_t *from,
                                int64_t from_stride, size_t element, uint32_t count)
{
    switch (element) {
    case 8:
        strided_copy_each(to, to_stride, from, from_stride, 8, count);
        break;
    case 16:
        strided_copy_each(to, to_stride, from, from_stride, 16, count);
        break;
    case 32:
        strided_copy_each(to, to_stride, from, from_stride, 32, count);
        break;
    case 64:
        strided_copy_each(to, to_stride, from, from_stride, 64, count);
        break;
    default:
        strided_copy_each(to, to_stride, from, from_stride, element, count);
    }
}

#endif
