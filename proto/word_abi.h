/*
 * The code of an operation on elements, one byte, in submissions (session_abi.h) and on the wire
 * (wire_abi.h):
 *
 *     bit 7            4 3             0
 *     +----------------+---------------+
 *     | enum word_type | enum word_op  |
 *     +----------------+---------------+
 *
 * There are two kinds: atomics on words (shm_ring/word.h), and collectives' reductions, which fold
 * elements in memory of their own (shm_ring/fold.h) and have more types and operations.
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
    WORD_TYPES,            /* the types from here on are for folds only */
    FOLD_C64 = WORD_TYPES, /* complex: two F32, the real part first */
    FOLD_C128 = 11,        /* two F64 */
    FOLD_BOOL = 12,        /* a byte, true if not 0 */
    FOLD_F64_AT = 13,      /* an F64, then its index, an I64 */
    FOLD_I64_AT = 14,      /* an I64, then its index, an I64 */
    FOLD_TYPES
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
    WORD_OPS, /* the operations from here on are for folds only */
    FOLD_LAND = WORD_OPS,
    FOLD_LOR = 12,
    FOLD_LXOR = 13,
    FOLD_MINLOC = 14,
    FOLD_MAXLOC = 15,
    FOLD_OPS
};
static_assert(FOLD_OPS <= 16 && FOLD_TYPES <= 16, "four bits each");
static_assert(FOLD_C64 == 10 && FOLD_LAND == 11, "numbers of a released contract");

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

/* Whether there is such an atomic. The functions below, and those of word.h, need a valid code. */
static inline bool word_code_valid(uint8_t code)
{
    enum word_op op = word_op(code);

    if (op >= WORD_OPS || word_type(code) >= WORD_TYPES)
        return false;
    return word_type(code) < WORD_F32 ||
           (op != WORD_AND && op != WORD_OR && op != WORD_XOR && op != WORD_MASKED_SWAP);
}

/* The logarithm (base 2) of an element's bytes. */
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

/* How many bytes of elements belong to operands of this many bytes, in a submission and on the
 * wire. */
static inline uint64_t word_reach(uint8_t code, uint64_t operands)
{
    return operands >> word_is_swap_if(code);
}

/* Whether this address or offset is naturally aligned, as an element's must be: an operation across
 * cache lines would lock the bus of the whole node. */
static inline bool word_aligned(uint64_t at, uint8_t code)
{
    return (at & (word_bytes(code) - 1)) == 0;
}

/* ---- folds ----------------------------------------------------------------------------------- */

/* Whether there is such a fold. */
static inline bool fold_code_valid(uint8_t code)
{
    static const uint16_t arithmetic = 1u << WORD_ADD | 1u << WORD_PROD;
    static const uint16_t order = 1u << WORD_MIN | 1u << WORD_MAX;
    static const uint16_t bits = 1u << WORD_AND | 1u << WORD_OR | 1u << WORD_XOR;
    static const uint16_t logic = 1u << FOLD_LAND | 1u << FOLD_LOR | 1u << FOLD_LXOR;
    static const uint16_t places = 1u << FOLD_MINLOC | 1u << FOLD_MAXLOC;
    uint16_t ops = 0;

    switch (word_type(code)) {
    case WORD_F32:
    case WORD_F64:
        ops = arithmetic | order;
        break;
    case FOLD_C64:
    case FOLD_C128:
        ops = arithmetic;
        break;
    case FOLD_BOOL:
        ops = logic;
        break;
    case FOLD_F64_AT:
    case FOLD_I64_AT:
        ops = places;
        break;
    default:
        ops = word_type(code) < WORD_F32 ? arithmetic | order | bits | logic : 0;
    }
    return ops >> word_op(code) & 1;
}

/* The logarithm (base 2) of an element's bytes, for a valid code of a fold. */
static inline uint32_t fold_shift(uint8_t code)
{
    switch (word_type(code)) {
    case FOLD_C64:
        return 3;
    case FOLD_BOOL:
        return 0;
    case FOLD_C128:
    case FOLD_F64_AT:
    case FOLD_I64_AT:
        return 4;
    default:
        return word_shift(code);
    }
}

#endif
