/*
 * Deadlines: points of the monotonic clock in nanoseconds. DEADLINE_NEVER never passes. Thread:
 * any.
 */
#ifndef PWC_CLIENTLIB_DEADLINE_H
#define PWC_CLIENTLIB_DEADLINE_H

#include <stdint.h>
#include <time.h>

#define DEADLINE_NEVER INT64_MAX

static inline int64_t clock_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* A negative timeout gives DEADLINE_NEVER. */
static inline int64_t deadline_after_ms(int timeout_ms)
{
    return timeout_ms < 0 ? DEADLINE_NEVER : clock_now() + timeout_ms * INT64_C(1000000);
}

/* The time left, for poll: milliseconds rounded up, 0 when the deadline has passed, -1 for
 * DEADLINE_NEVER. */
static inline int deadline_poll_ms(int64_t deadline)
{
    int64_t left = deadline - clock_now();

    if (deadline == DEADLINE_NEVER)
        return -1;
    if (left <= 0)
        return 0;
    left = (left + 999999) / 1000000;
    return left > INT32_MAX ? INT32_MAX : (int)left;
}

static inline struct timespec deadline_timespec(int64_t deadline)
{
    return (struct timespec){.tv_sec = deadline / 1000000000, .tv_nsec = deadline % 1000000000};
}

#endif
