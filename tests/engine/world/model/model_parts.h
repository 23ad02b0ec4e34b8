/* Declarations that the parts of the model share (model.h): model.c, model_signals.c. Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_MODEL_PARTS_H
#define PWC_TESTS_ENGINE_MODEL_PARTS_H

#include "tests/engine/world/model/model.h"

/* Keeps the first failure. Returns false. */
__attribute__((format(printf, 2, 3))) bool model_fail(struct model *m, const char *format, ...);

static inline struct model_pair *model_pair_of(const struct model *m, uint32_t from, uint32_t to)
{
    return &m->pairs[from * m->count + to];
}

/* Whether the operation's payload goes to its target. */
static inline bool model_is_put(const struct model_op *op)
{
    return op->kind == PATH_PUT || op->kind == PATH_SIGNAL;
}

/* Whether the operation's data stands in the place to which it was moved. */
bool model_data_is_there(struct model *m, uint32_t number);

/* ---- model_signals.c: the words that puts with signal change, one for each pair */

/* From now on the word's present value is what later signals change. */
void model_signals_begin(struct model *m, uint32_t from, uint32_t to);
/* Whether the signal of an operation that has ended well was done. */
bool model_signal_is_there(struct model *m, uint32_t number);
/* Checks at the end that each signal that was done counts once. */
bool model_signals_check(struct model *m);

#endif
