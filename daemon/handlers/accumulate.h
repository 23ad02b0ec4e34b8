/*
 * The helper accumulate: elements of one array combined with those of another, by the types and
 * operations of collectives (proto/word_abi.h, shm_ring/fold.h). Not atomic, at any alignment.
 *
 * Thread: the one that runs handlers.
 */
#ifndef PWC_HANDLERS_ACCUMULATE_H
#define PWC_HANDLERS_ACCUMULATE_H

#include "daemon/handlers/run.h"

/* accumulate(to, from, count, type, op): to[i] = to[i] op from[i]. 0. */
uint64_t accumulate(struct run *r, const uint64_t *reg);

#endif
