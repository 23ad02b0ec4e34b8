/*
 * Helpers: the functions that programs call by number. The host never gets an address of a program:
 * a helper first turns it into bytes of a window, or the run fails.
 *
 * Each helper takes its units before it works. The description of a vector is copied once, and then
 * the copy is checked. A wrong length or index is first made 0 without a branch, and only then does
 * the helper branch on it (window.h has the reason).
 *
 * Thread: the thread that runs the handler.
 */
#ifndef PWC_HANDLERS_HELPERS_H
#define PWC_HANDLERS_HELPERS_H

#include "daemon/handlers/run.h"

/* The arguments are registers 1 to 5, in reg[1] to reg[5]. The result is for register 0, and means
 * nothing where the run has failed. */
typedef uint64_t helper_call(struct run *r, const uint64_t *reg);

/* The helpers by number. A number without a helper fails the run. */
extern helper_call *const helper_calls[HELPERS];

#endif
