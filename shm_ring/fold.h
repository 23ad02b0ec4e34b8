/*
 * Folds combine elements of one array with those of another, for the reductions of collectives.
 * proto/word_abi.h defines the codes of operations.
 *
 *     ADD PROD          integers, floating point, complex
 *     MIN MAX           integers, floating point
 *     AND OR XOR        integers, bit by bit
 *     LAND LOR LXOR     integers and BOOL; the result is 1 or 0
 *     MINLOC MAXLOC     pairs: the element with the least or greatest value; of equal values the
 *                       one with the least index
 *
 * Each fold is commutative to the bit: exchanging the two arrays gives the same result. So results
 * depend only on how elements are grouped, which the schedules decide
 * (daemon/engine/coll/schedule.h).
 *
 *   - Integers wrap around.
 *   - ADD and PROD of floating point are IEEE 754's, each rounded on its own (no fused operation),
 *     in the rounding mode of the thread that computes. A NaN as a result is always the same one:
 *     quiet, positive, without payload. -0.0 + 0.0 is 0.0.
 *   - MIN and MAX are IEEE 754-2019's minimumNumber and maximumNumber: a number beats a NaN, two
 *     NaNs give that NaN, and -0.0 is less than 0.0. MINLOC and MAXLOC order their values in this
 *     way too; between NaNs the index decides.
 *   - A complex product is (ac - bd, ad + bc), with no special case for infinities; a part that is
 *     a NaN is that NaN.
 *
 * Arrays are packed, aligned or not, and do not overlap. Thread: any. Nothing here allocates,
 * blocks, or divides.
 */
#ifndef PWC_SHM_RING_FOLD_H
#define PWC_SHM_RING_FOLD_H

#include <stddef.h>
#include <stdint.h>
#include "proto/word_abi.h"

/* into[i] = into[i] op from[i] for `count` elements. `code` is valid (fold_code_valid). */
void fold(uint8_t code, void *restrict into, const void *restrict from, size_t count);

#endif
