/*
 * Helpers: the functions that programs call by number. The host never sees a program's address:
 * helpers turn it into bytes of a window first, or the run fails.
 *
 * Each helper takes its units before it works, copies what it reads of a vector once, and makes a
 * wrong length 0 and a wrong index 0 without a branch before it branches on them (window.h has the
 * reason).
 *
 * Thread: the one that runs handlers.
 */
#ifndef PWC_HANDLERS_HELPERS_H
#define PWC_HANDLERS_HELPERS_H

#include "daemon/handlers/run.h"

/* The arguments are registers 1 to 5, at reg[1] and up. The result is register 0's; nothing where
 * the run has failed. */
typedef uint64_t helper_call(struct run *r, const uint64_t *reg);

/* By number; one that does not exist fails the run. */
extern helper_call *const helper_calls[HELPERS];

#endif
