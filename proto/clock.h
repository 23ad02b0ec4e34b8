/* The monotonic clock of this machine, for processes that compare times. Thread: any. */
#ifndef PWC_CLOCK_H
#define PWC_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static inline int64_t now_ms(void)
{
    return now_ns() / 1000000;
}

#endif
