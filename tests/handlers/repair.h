/*
 * Makes programs out of random bytes: each 8 bytes become an instruction that the check accepts.
 * Before these, the registers are loaded with numbers, most of which are addresses near a window's
 * edge. For fuzzers and long runs. Thread: one.
 */
#ifndef PWC_TESTS_HANDLERS_REPAIR_H
#define PWC_TESTS_HANDLERS_REPAIR_H

#include <stddef.h>
#include "tests/handlers/bench.h"

enum {
    REPAIR_SEEDS = 9
}; /* registers 1 to 9: a byte of the input for each, and two for the number in it */

/* Makes the bench's image from these bytes. Returns false if they are too few for an instruction.
 */
bool repair_program(struct bench *b, const uint8_t *bytes, size_t size);

#endif
