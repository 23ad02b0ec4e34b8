/*
 * The operations that each end has counted (pwc/counter.h), compared with what the model knows of
 * them. An operation that has ended well, or whose remote event was seen, has arrived once; one
 * with an unknown outcome at most once; no other has arrived.
 *
 * Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_MODEL_COUNTS_H
#define PWC_TESTS_ENGINE_MODEL_COUNTS_H

#include "clientlib/channel/channel.h"
#include "tests/engine/world/model/model.h"

/* The counts of a context without neighbours. */
struct path_counts model_counts_of(const struct channel *ch);
/* Takes the counts of an end before the first operation of the model; a context that has come back
 * begins with 0. */
void model_counts_begin(struct model *m, uint32_t end, const struct path_counts *counts);
/* Checks the counts of an end; call this when nothing moves. Returns NULL, or what is wrong. */
const char *model_counts_check(const struct model *m, uint32_t end,
                               const struct path_counts *counts, char failure[300]);

#endif
