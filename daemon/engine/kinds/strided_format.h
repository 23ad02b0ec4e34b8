/* Equal elements at equal distances, in a submission, in its operation (op_strided.c) and on the
 * wire (record_strided.c). Thread: the progress thread. */
#ifndef PWC_ENGINE_STRIDED_FORMAT_H
#define PWC_ENGINE_STRIDED_FORMAT_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

/* Computes where the highest of `count` elements ends; the first one begins at `at`. Returns 0, or
 * -ERANGE: some would begin before 0 or end beyond all offsets. */
static inline int strided_end(uint64_t at, int64_t stride, uint32_t element, uint32_t count,
                              uint64_t *end)
{
    uint64_t last;
    int64_t span;

    if (__builtin_mul_overflow(stride, (int64_t)count - 1, &span) ||
        __builtin_add_overflow(at, span, &last))
        return -ERANGE;
    return __builtin_add_overflow(span < 0 ? at : last, element, end) ? -ERANGE : 0;
}

static inline __attribute__((always_inline)) void strided_copy_each(uint8_t *to, int64_t to_stride,
                                                                    const uint8_t *from,
                                                                    int64_t from_stride,
                                                                    size_t element, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, to += to_stride, from += from_stride)
        memcpy(to, from, element);
}

/* Copies elements one by one. The usual lengths are constants, so that their copies need no call;
 * 8 bytes are one store. */
static inline void strided_copy(uint8_t *to, int64_t to_stride, const uint8_t *from,
                                int64_t from_stride, uint32_t element, uint32_t count)
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
