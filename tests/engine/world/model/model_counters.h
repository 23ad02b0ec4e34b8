/*
 * Counters: words at each end to which atomics of all other ends add one, and the values that they
 * may have. An operation that has ended well is counted once, an operation with an unknown outcome
 * at most once, and no other operation. Values that were fetched from one counter all differ.
 *
 * Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_MODEL_COUNTERS_H
#define PWC_TESTS_ENGINE_MODEL_COUNTERS_H

#include "tests/engine/world/model/model.h"

/* Places counters at this offset of each end; nothing else uses these words from now on. */
void model_counters(struct model *m, uint64_t offset);
/* The end's context is back: the present values of its counters count as zero. */
void model_counters_again(struct model *m, uint32_t end);
/* Checks all counters; call this when nothing moves. Returns NULL, or what is wrong. */
const char *model_counters_check(const struct model *m, char failure[300]);
/* The number of operations whose outcome is unknown: done or not. */
uint32_t model_counters_unknown(const struct model *m);

#endif
