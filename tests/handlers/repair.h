/*
 * Programs out of random bytes: each 8 bytes become an instruction that the check accepts, in front
 * of them stand numbers in the registers, most of these addresses near a window's edge. For fuzzers
 * and long runs.
 */
#ifndef PWC_TESTS_HANDLERS_REPAIR_H
#define PWC_TESTS_HANDLERS_REPAIR_H

#include <stddef.h>
#include "tests/handlers/bench.h"

enum {
    REPAIR_SEEDS = 9
}; /* registers 1 to 9, a byte of the input each, and two of each's number */

/* The bench's image from these bytes. False: too few for an instruction. */
bool repair_program(struct bench *b, const uint8_t *bytes, size_t size);

#endif
