/*
 * Random numbers that a hostile client writes: boundaries from a list, numbers near the right one,
 * or any. A seed always gives the same numbers.
 *
 * Thread: the owner's.
 */
#ifndef PWC_TESTS_HOSTILE_VALUES_H
#define PWC_TESTS_HOSTILE_VALUES_H

#include <stdint.h>

struct values {
    uint64_t state; /* never 0 */
};

void values_init(struct values *v, uint64_t seed);
uint64_t values_any(struct values *v);
/* Returns a number below `bound`, which is not 0. */
uint64_t values_below(struct values *v, uint64_t bound);
/* Returns a number to write where `right` would be right. */
uint64_t values_wrong(struct values *v, uint64_t right);

#endif
