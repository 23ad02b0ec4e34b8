/* Equal elements at equal distances, in a submission, in its operation (op_strided.c) and on the
 * wire (record_strided.c). Thread: the progress thread. */
#ifndef PWC_ENGINE_STRIDED_FORMAT_H
#define PWC_ENGINE_STRIDED_FORMAT_H

#include <errno.h>
#include <stdint.h>
#include "daemon/engine/kinds/access.h"
#include "daemon/engine/state/state.h"
#include "shm_ring/strided.h"

/* Elements are copied: counts what they cost beyond their bytes. */
static inline void strided_round(struct engine *e, uint32_t element, uint32_t count)
{
    e->rounded += (uint64_t)access_rounded(element) * count;
}

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

#endif
