/*
 * The helper accumulate: combines the elements of one array with those of another, with the types
 * and operations of collectives (proto/word_abi.h, shm_ring/fold.h). The arrays may have any
 * alignment; the operation is not atomic.
 *
 * Thread: the thread that runs the handler.
 */
#ifndef PWC_HANDLERS_ACCUMULATE_H
#define PWC_HANDLERS_ACCUMULATE_H

#include "daemon/handlers/run.h"

/* accumulate(to, from, count, type, op): to[i] = to[i] op from[i]. Returns 0. */
uint64_t accumulate(struct run *r, const uint64_t *reg);

#endif
