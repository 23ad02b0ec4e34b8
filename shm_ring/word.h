/*
 * Words: atomic operations on 1, 2, 4 or 8 bytes of shared memory, and placement by one store.
 *
 * Only this module has these instructions. The daemon of the memory's owner, neighbours on the
 * owner's node, and the owner itself all call the functions here, so that their operations are
 * atomic to one another. All are sequentially consistent.
 *
 * proto/word_abi.h has the code of an operation. Its operands are packed, `width` being the bytes
 * of the type:
 *
 *     SET ADD PROD MIN MAX AND OR XOR   one of `width` bytes for each element
 *     READ                              none
 *     COMPARE_SWAP                      expected, then desired: 2 * width for each element
 *     MASKED_SWAP                       mask, then desired: 2 * width for each element
 *
 * Integers wrap around. AND, OR, XOR and MASKED_SWAP are for integers only. MASKED_SWAP takes the
 * bits of `desired` where the mask has ones, and leaves the other bits unchanged.
 *
 * Floating point:
 *   - ADD and PROD are IEEE 754's, in the rounding mode of the thread that computes: a word that
 *     has become NaN stays NaN, and -0.0 + 0.0 is 0.0. The order of additions decides the last
 *     bits of a sum.
 *   - MIN and MAX are IEEE 754-2019's minimumNumber and maximumNumber: a number beats a NaN, and
 *     -0.0 is less than 0.0. So their result does not depend on the order of operations. Where word
 *     and operand are NaN, the word keeps its value.
 *   - COMPARE_SWAP compares bits: -0.0 differs from 0.0, and a NaN equals itself.
 *
 * MIN, MAX, PROD, MASKED_SWAP, fetching AND, OR and XOR, and all arithmetic on floating point are
 * loops of compare and swap. A hostile process that shares the memory can make each try fail, so a
 * loop ends with -EBUSY after WORD_TRIES failures in a row, and has then changed nothing.
 *
 * Thread: any. Nothing here allocates, blocks, or divides.
 */
#ifndef PWC_SHM_RING_WORD_H
#define PWC_SHM_RING_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "proto/word_abi.h"

#define WORD_TRIES 4096u

/* ---- codes ----------------------------------------------------------------------------------- */

/* Bytes of the operands of one element. */
static inline uint32_t word_operand_bytes(uint8_t code)
{
    enum word_op op = word_op(code);

    if (op == WORD_READ)
        return 0;
    return op == WORD_COMPARE_SWAP || op == WORD_MASKED_SWAP ? 2 * word_bytes(code)
                                                             : word_bytes(code);
}

/* ---- operations ------------------------------------------------------------------------------ */

/*
 * Changes one element at `at`, which must be aligned, and mapped readable (READ) or writable.
 * `fetched` gets the element's earlier value, unless it is NULL. 0, or -EBUSY with nothing changed.
 */
int word_apply(void *at, uint8_t code, const void *operands, void *fetched);

/* `count` elements in a row, each changed by an atomic operation of its own. Stops at the first
 * -EBUSY. Returns how many elements are done. */
uint32_t word_apply_all(void *at, uint8_t code, uint32_t count, const void *operands,
                        void *fetched);

/* ---- placement ------------------------------------------------------------------------------- */

typedef uint8_t __attribute__((may_alias)) word_8;
typedef uint16_t __attribute__((may_alias)) word_16;
typedef uint32_t __attribute__((may_alias)) word_32;
typedef uint64_t __attribute__((may_alias)) word_64;

/* Whether word_place needs one store: 1, 2, 4 or 8 bytes, naturally aligned. */
static inline bool word_is_one_store(uint64_t at, uint64_t length)
{
    return length - 1 < 8 && (length & (length - 1)) == 0 && (at & (length - 1)) == 0;
}

/* As word_place, for all but 8 aligned bytes. */
void word_place_other(void *to, const void *from, size_t length);

/*
 * Copies `length` bytes: 1, 2, 4 or 8 naturally aligned bytes by one store that is a release (so
 * all earlier stores are visible first), others as memcpy does. Most copies have 8 bytes, which
 * need no call.
 */
static inline void word_place(void *to, const void *from, size_t length)
{
    uint64_t value;

    if (length != sizeof(value) || (uintptr_t)to % sizeof(value) != 0) {
        word_place_other(to, from, length);
        return;
    }
    memcpy(&value, from, sizeof(value));
    __atomic_store_n((word_64 *)to, value, __ATOMIC_RELEASE);
}

#endif
