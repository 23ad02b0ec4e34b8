/*
 * The code of an atomic operation on words, one byte, in submissions (session_abi.h) and on the
 * wire (wire_abi.h):
 *
 *     bit 7            4 3             0
 *     +----------------+---------------+
 *     | enum word_type | enum word_op  |
 *     +----------------+---------------+
 *
 * shm_ring/word.h does what the code says.
 */
#ifndef PWC_PROTO_WORD_ABI_H
#define PWC_PROTO_WORD_ABI_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum word_type {
    WORD_I8 = 0,
    WORD_U8 = 1,
    WORD_I16 = 2,
    WORD_U16 = 3,
    WORD_I32 = 4,
    WORD_U32 = 5,
    WORD_I64 = 6,
    WORD_U64 = 7,
    WORD_F32 = 8,
    WORD_F64 = 9,
    WORD_TYPES
};

enum word_op {
    WORD_SET = 0,
    WORD_ADD = 1,
    WORD_PROD = 2,
    WORD_MIN = 3,
    WORD_MAX = 4,
    WORD_AND = 5,
    WORD_OR = 6,
    WORD_XOR = 7,
    WORD_READ = 8,
    WORD_COMPARE_SWAP = 9,
    WORD_MASKED_SWAP = 10,
    WORD_OPS
};
static_assert(WORD_OPS <= 16 && WORD_TYPES <= 16, "four bits each");

static inline uint8_t word_code(enum word_op op, enum word_type type)
{
    return (uint8_t)(op | type << 4);
}

static inline enum word_op word_op(uint8_t code)
{
    return (enum word_op)(code & 15);
}

static inline enum word_type word_type(uint8_t code)
{
    return (enum word_type)(code >> 4);
}

/* Whether there is such an operation on such a type. The functions below, and those of word.h, ask
 * for a valid code. */
static inline bool word_code_valid(uint8_t code)
{
    enum word_op op = word_op(code);

    if (op >= WORD_OPS || word_type(code) >= WORD_TYPES)
        return false;
    return word_type(code) < WORD_F32 ||
           (op != WORD_AND && op != WORD_OR && op != WORD_XOR && op != WORD_MASKED_SWAP);
}

/* Bytes of an element: 1 << this. */
static inline uint32_t word_shift(uint8_t code)
{
    enum word_type type = word_type(code);

    return type < WORD_F32 ? type / 2 : type - WORD_F32 + 2;
}

static inline uint32_t word_bytes(uint8_t code)
{
    return 1u << word_shift(code);
}

/* Whether an element has two operands. */
static inline bool word_is_swap_if(uint8_t code)
{
    return word_op(code) == WORD_COMPARE_SWAP || word_op(code) == WORD_MASKED_SWAP;
}

/* Bytes of the elements that operands of so many bytes are for, in a submission and on the wire. */
static inline uint64_t word_reach(uint8_t code, uint64_t operands)
{
    return operands >> word_is_swap_if(code);
}

/* Whether an element may stand at this address or offset: naturally aligned. An operation across
 * cache lines would lock the bus of the whole node. */
static inline bool word_aligned(uint64_t at, uint8_t code)
{
    return (at & (word_bytes(code) - 1)) == 0;
}

#endif
