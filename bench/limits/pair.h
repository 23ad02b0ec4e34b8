/*
 * Code that the programs of bare limits share: two or four processes on two processors, a mapping
 * between them, the clock, and medians. Each process is single-threaded.
 */
#ifndef BENCH_LIMITS_PAIR_H
#define BENCH_LIMITS_PAIR_H

#include <stddef.h>
#include <stdint.h>

/* The work of one process; returns its exit status. */
typedef int (*pair_role)(void *shared, const void *options);

uint64_t pair_now(void); /* nanoseconds */

/* Pins this process to a processor; a negative number leaves the process where it is. */
void pair_pin(int cpu);

/* Zeroed memory that children inherit, page-aligned and touched; NULL where there is none. */
void *pair_memory(size_t length);

/*
 * Runs the last role here and the others in children, each on its processor, and waits for all.
 * Children die with this process. Returns 0 when all of them returned 0.
 */
int pair_run(const pair_role *roles, const int *cpus, int count, void *shared, const void *options);

/* Returns the median, and sorts the values; count is at least 1. */
double pair_median(double *values, size_t count);

/* Parses "A,B". Returns -1 after a message if the text is not two numbers. */
int pair_parse_cpus(const char *program, const char *text, int cpus[2]);

#endif
