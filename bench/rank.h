/*
 * The ranks of the measuring programs share these functions: a check that ends the program when a
 * call has failed, the time, and a median. Each program has one thread a rank.
 */
#ifndef PWC_BENCH_RANK_H
#define PWC_BENCH_RANK_H

#include <pwc/pwc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Returns rc, unless it is an error: then prints the error of this call, and ends the program. */
static inline int checked(const char *call, int rc)
{
    if (rc < 0) {
        (void)fprintf(stderr, "%s: %s\n", call, pwc_strerror(rc));
        exit(1);
    }
    return rc;
}
#define CHECK(call) checked(#call, call)

/* Microseconds of the monotonic clock, which all ranks of a machine share. */
static inline double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1000;
}

static inline int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorts the values, of which there is at least one. */
static inline double median(double *values, size_t count)
{
    qsort(values, count, sizeof(values[0]), by_value);
    return values[count / 2];
}

#endif
