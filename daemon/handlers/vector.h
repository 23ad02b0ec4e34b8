/*
 * The helpers scatter and gather: copy consecutive bytes to and from blocks of the same length,
 * whose starts are `stride` apart (struct handler_vector, proto/handler_abi.h).
 *
 *     start     stride              stride
 *       |---------------------|---------------------|
 *       [ block ]             [ block ]             [ block ]
 *            ^ skip: the first of the n bytes
 *
 * Thread: the thread that runs the handler.
 */
#ifndef PWC_HANDLERS_VECTOR_H
#define PWC_HANDLERS_VECTOR_H

#include "daemon/handlers/run.h"

/* scatter(to, from, n, vector): copies n bytes at `from` to the blocks from `to` on. Returns 0. */
uint64_t scatter(struct run *r, const uint64_t *reg);
/* gather(to, from, n, vector): copies n bytes of the blocks from `from` on to `to`. Returns 0. */
uint64_t gather(struct run *r, const uint64_t *reg);

#endif
