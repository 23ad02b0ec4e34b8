/*
 * The slice of a thread: how long the scheduler lets it run in one piece while others wait. Since
 * Linux 6.12 a thread may ask for its own slice, and a thread that wakes up goes ahead of a thread
 * with a longer one, if it has had no more than its share of the processor. So with a short slice
 * what arrives wakes the progress thread also while a program computes (docs/lab/daemon.md,
 * "Slices").
 *
 * Thread: the thread whose slice it is.
 */
#ifndef PWC_CONTROL_SLICE_H
#define PWC_CONTROL_SLICE_H

#include <stdbool.h>
#include <stdint.h>

#define SLICE_SHORT_NS UINT64_C(100000) /* the shortest that Linux gives */

struct slice {
    bool is_short;
    bool refused; /* the system does not let the thread ask for a slice */
};

/* Gives the thread a short slice, or the system's. Does nothing where the thread has it, or while
 * it has another policy than that of ordinary programs. */
void slice_choose(struct slice *s, bool is_short);

#endif
