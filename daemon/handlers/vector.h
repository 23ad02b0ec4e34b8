/*
 * The helpers scatter and gather: bytes side by side to and from blocks of the same length, whose
 * starts lie `stride` apart (struct handler_vector, proto/handler_abi.h).
 *
 *     start     stride              stride
 *       |---------------------|---------------------|
 *       [ block ]             [ block ]             [ block ]
 *            ^ skip: the first of the n bytes
 *
 * Thread: the one that runs handlers.
 */
#ifndef PWC_HANDLERS_VECTOR_H
#define PWC_HANDLERS_VECTOR_H

#include "daemon/handlers/run.h"

/* scatter(to, from, n, vector): n bytes at `from` go to the blocks behind `to`. 0. */
uint64_t scatter(struct run *r, const uint64_t *reg);
/* gather(to, from, n, vector): n bytes of the blocks behind `from` go to `to`. 0. */
uint64_t gather(struct run *r, const uint64_t *reg);

#endif
