/*
 * Owns nothing: the atomic operations on words (word.h).
 *
 * Values of all types are handled as bits, in the low bytes of 64. Thread: any.
 */
#include "shm_ring/word.h"

#include <assert.h>
#include <errno.h>
#include <math.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values stand in the low bytes");

/* ---- values in private memory ---------------------------------------------------------------- */

static inline uint64_t bits_load(const void *from, uint32_t width)
{
    uint64_t bits = 0;

    switch (width) {
    case 1:
        memcpy(&bits, from, 1);
        break;
    case 2:
        memcpy(&bits, from, 2);
        break;
    case 4:
        memcpy(&bits, from, 4);
        break;
    default:
        memcpy(&bits, from, 8);
    }
    return bits;
}

static inline void bits_store(void *to, uint32_t width, uint64_t bits)
{
    switch (width) {
    case 1:
        memcpy(to, &bits, 1);
        break;
    case 2:
        memcpy(to, &bits, 2);
        break;
    case 4:
        memcpy(to, &bits, 4);
        break;
    default:
        memcpy(to, &bits, 8);
    }
}

/* ---- instructions, by width ------------------------------------------------------------------ */

static inline uint64_t word_load(const void *at, uint32_t width)
{
    switch (width) {
    case 1:
        return __atomic_load_n((const word_8 *)at, __ATOMIC_SEQ_CST);
    case 2:
        return __atomic_load_n((const word_16 *)at, __ATOMIC_SEQ_CST);
    case 4:
        return __atomic_load_n((const word_32 *)at, __ATOMIC_SEQ_CST);
    default:
        return __atomic_load_n((const word_64 *)at, __ATOMIC_SEQ_CST);
    }
}

static inline uint64_t word_exchange(void *at, uint32_t width, uint64_t value)
{
    switch (width) {
    case 1:
        return __atomic_exchange_n((word_8 *)at, (uint8_t)value, __ATOMIC_SEQ_CST);
    case 2:
        return __atomic_exchange_n((word_16 *)at, (uint16_t)value, __ATOMIC_SEQ_CST);
    case 4:
        return __atomic_exchange_n((word_32 *)at, (uint32_t)value, __ATOMIC_SEQ_CST);
    default:
        return __atomic_exchange_n((word_64 *)at, value, __ATOMIC_SEQ_CST);
    }
}

static inline uint64_t word_fetch_add(void *at, uint32_t width, uint64_t value)
{
    switch (width) {
    case 1:
        return __atomic_fetch_add((word_8 *)at, (uint8_t)value, __ATOMIC_SEQ_CST);
    case 2:
        return __atomic_fetch_add((word_16 *)at, (uint16_t)value, __ATOMIC_SEQ_CST);
    case 4:
        return __atomic_fetch_add((word_32 *)at, (uint32_t)value, __ATOMIC_SEQ_CST);
    default:
        return __atomic_fetch_add((word_64 *)at, value, __ATOMIC_SEQ_CST);
    }
}

/* When the earlier value is not used, each of these is one instruction; else the compiler makes a
 * loop without a bound. So only operations that fetch nothing use these. */
static inline void word_and(void *at, uint32_t width, uint64_t value)
{
    switch (width) {
    case 1:
        (void)__atomic_fetch_and((word_8 *)at, (uint8_t)value, __ATOMIC_SEQ_CST);
        break;
    case 2:
        (void)__atomic_fetch_and((word_16 *)at, (uint16_t)value, __ATOMIC_SEQ_CST);
        break;
    case 4:
        (void)__atomic_fetch_and((word_32 *)at, (uint32_t)value, __ATOMIC_SEQ_CST);
        break;
    default:
        (void)__atomic_fetch_and((word_64 *)at, value, __ATOMIC_SEQ_CST);
    }
}

static inline void word_or(void *at, uint32_t width, uint64_t value)
{
    switch (width) {
    case 1:
        (void)__atomic_fetch_or((word_8 *)at, (uint8_t)value, __ATOMIC_SEQ_CST);
        break;
    case 2:
        (void)__atomic_fetch_or((word_16 *)at, (uint16_t)value, __ATOMIC_SEQ_CST);
        break;
    case 4:
        (void)__atomic_fetch_or((word_32 *)at, (uint32_t)value, __ATOMIC_SEQ_CST);
        break;
    default:
        (void)__atomic_fetch_or((word_64 *)at, value, __ATOMIC_SEQ_CST);
    }
}

static inline void word_xor(void *at, uint32_t width, uint64_t value)
{
    switch (width) {
    case 1:
        (void)__atomic_fetch_xor((word_8 *)at, (uint8_t)value, __ATOMIC_SEQ_CST);
        break;
    case 2:
        (void)__atomic_fetch_xor((word_16 *)at, (uint16_t)value, __ATOMIC_SEQ_CST);
        break;
    case 4:
        (void)__atomic_fetch_xor((word_32 *)at, (uint32_t)value, __ATOMIC_SEQ_CST);
        break;
    default:
        (void)__atomic_fetch_xor((word_64 *)at, value, __ATOMIC_SEQ_CST);
    }
}

/* One compare and swap: returns whether it took place; *expected becomes the word's earlier
 * value. */
static inline bool word_swap(void *at, uint32_t width, uint64_t *expected, uint64_t desired)
{
    uint8_t was_8 = (uint8_t)*expected;
    uint16_t was_16 = (uint16_t)*expected;
    uint32_t was_32 = (uint32_t)*expected;
    bool swapped;

    switch (width) {
    case 1:
        swapped = __atomic_compare_exchange_n((word_8 *)at, &was_8, (uint8_t)desired, false,
                                              __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        *expected = was_8;
        return swapped;
    case 2:
        swapped = __atomic_compare_exchange_n((word_16 *)at, &was_16, (uint16_t)desired, false,
                                              __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        *expected = was_16;
        return swapped;
    case 4:
        swapped = __atomic_compare_exchange_n((word_32 *)at, &was_32, (uint32_t)desired, false,
                                              __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        *expected = was_32;
        return swapped;
    default:
        return __atomic_compare_exchange_n((word_64 *)at, expected, desired, false,
                                           __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

static double as_double(uint64_t bits, enum word_type type)
{
    float single;
    double value;

    if (type == WORD_F64) {
        memcpy(&value, &bits, sizeof(value));
        return value;
    }
    memcpy(&single, &bits, sizeof(single));
    return single;
}

/* A NaN is never less, and -0.0 is less than 0.0. */
static bool float_less(double a, double b)
{
    return a < b || (a == b && signbit(a) && !signbit(b));
}

static bool integer_less(uint64_t a, uint64_t b, enum word_type type)
{
    switch (type) {
    case WORD_I8:
        return (int8_t)a < (int8_t)b;
    case WORD_I16:
        return (int16_t)a < (int16_t)b;
    case WORD_I32:
        return (int32_t)a < (int32_t)b;
    case WORD_I64:
        return (int64_t)a < (int64_t)b;
    default:
        return a < b;
    }
}

/* Which of the two values MIN or MAX leaves in the word. */
static uint64_t chosen(enum word_op op, enum word_type type, uint64_t old, uint64_t operand)
{
    uint64_t low = op == WORD_MIN ? operand : old, high = op == WORD_MIN ? old : operand;
    bool take;

    if (type < WORD_F32)
        take = integer_less(low, high, type);
    else if (isnan(as_double(old, type)))
        take = !isnan(as_double(operand, type));
    else
        take = float_less(as_double(low, type), as_double(high, type));
    return take ? operand : old;
}

static uint64_t computed_f32(enum word_op op, uint64_t old, uint64_t operand)
{
    float a, b, value;
    uint64_t bits = 0;

    memcpy(&a, &old, sizeof(a));
    memcpy(&b, &operand, sizeof(b));
    value = op == WORD_ADD ? a + b : a * b;
    memcpy(&bits, &value, sizeof(value));
    return bits;
}

static uint64_t computed_f64(enum word_op op, uint64_t old, uint64_t operand)
{
    double a = as_double(old, WORD_F64), b = as_double(operand, WORD_F64);
    double value = op == WORD_ADD ? a + b : a * b;
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* The value after the operation, for operations that are loops. `mask` is for MASKED_SWAP. */
static uint64_t computed(uint8_t code, uint64_t old, uint64_t operand, uint64_t mask)
{
    enum word_type type = word_type(code);
    enum word_op op = word_op(code);

    switch (op) {
    case WORD_MIN:
    case WORD_MAX:
        return chosen(op, type, old, operand);
    case WORD_AND:
        return old & operand;
    case WORD_OR:
        return old | operand;
    case WORD_XOR:
        return old ^ operand;
    case WORD_MASKED_SWAP:
        return (old & ~mask) | (operand & mask);
    default: /* ADD of floating point, and PROD */
        if (type == WORD_F32)
            return computed_f32(op, old, operand);
        return type == WORD_F64 ? computed_f64(op, old, operand) : old * operand;
    }
}

/* ---- operations ------------------------------------------------------------------------------ */

/* A bounded loop of compare and swap. */
static int apply_by_swap(void *at, uint8_t code, uint64_t operand, uint64_t mask, uint64_t *old)
{
    uint32_t width = word_bytes(code);
    uint64_t seen = word_load(at, width);

    for (uint32_t i = 0; i < WORD_TRIES; i++) {
        uint64_t before = seen;

        if (word_swap(at, width, &seen, computed(code, before, operand, mask))) {
            *old = before;
            return 0;
        }
    }
    return -EBUSY;
}

/* COMPARE_SWAP's and MASKED_SWAP's desired value. */
static inline uint64_t second_operand(const void *operands, uint32_t width)
{
    return bits_load((const uint8_t *)operands + width, width);
}

static uint64_t compare_swap(void *at, const void *operands, uint32_t width)
{
    uint64_t seen = bits_load(operands, width);

    (void)word_swap(at, width, &seen, second_operand(operands, width));
    return seen;
}

/* AND, OR or XOR that fetches nothing. */
static void combine(void *at, uint32_t width, enum word_op op, uint64_t operand)
{
    if (op == WORD_AND)
        word_and(at, width, operand);
    else if (op == WORD_OR)
        word_or(at, width, operand);
    else
        word_xor(at, width, operand);
}

int word_apply(void *at, uint8_t code, const void *operands, void *fetched)
{
    uint32_t width = word_bytes(code);
    enum word_op op = word_op(code);
    uint64_t old = 0;
    int rc = 0;

    switch (op) {
    case WORD_READ:
        old = word_load(at, width);
        break;
    case WORD_SET:
        old = word_exchange(at, width, bits_load(operands, width));
        break;
    case WORD_COMPARE_SWAP:
        old = compare_swap(at, operands, width);
        break;
    case WORD_MASKED_SWAP:
        rc = apply_by_swap(at, code, second_operand(operands, width), bits_load(operands, width),
                           &old);
        break;
    case WORD_AND:
    case WORD_OR:
    case WORD_XOR:
        if (fetched)
            rc = apply_by_swap(at, code, bits_load(operands, width), 0, &old);
        else
            combine(at, width, op, bits_load(operands, width));
        break;
    default: /* ADD, PROD, MIN, MAX */
        if (op == WORD_ADD && word_type(code) < WORD_F32)
            old = word_fetch_add(at, width, bits_load(operands, width));
        else
            rc = apply_by_swap(at, code, bits_load(operands, width), 0, &old);
    }
    if (rc == 0 && fetched)
        bits_store(fetched, width, old);
    return rc;
}

uint32_t word_apply_all(void *at, uint8_t code, uint32_t count, const void *operands, void *fetched)
{
    uint32_t width = word_bytes(code), step = word_operand_bytes(code);
    const uint8_t *from = operands;
    uint8_t *to = at, *result = fetched;

    for (uint32_t i = 0; i < count; i++) {
        if (word_apply(to, code, from, result) < 0)
            return i;
        to += width;
        from = step > 0 ? from + step : from;
        result = result ? result + width : NULL;
    }
    return count;
}
