/* The monotonic clock, in nanoseconds. Thread: any. */
#ifndef PWC_SHM_RING_CLOCK_H
#define PWC_SHM_RING_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_of(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_ns(void)
{
    return clock_of(CLOCK_MONOTONIC);
}

#endif
