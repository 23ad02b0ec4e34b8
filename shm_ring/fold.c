/*
 * Owns nothing: the folds (fold.h). Thread: any.
 *
 * There is one loop for each width. All callers pass the operation as a constant, so the compiler
 * makes a copy of the loop for each operation, without branches and mostly with vector
 * instructions. Integers are computed as unsigned 64 bits, whose overflow C defines, and then
 * truncated.
 */
#include "shm_ring/fold.h"

#include <math.h>
#include <stdbool.h>

#define FOLD_INLINE static inline __attribute__((always_inline))

/* Elements at any address, in memory of any type. */
typedef uint8_t __attribute__((may_alias)) fold_8;
typedef uint16_t __attribute__((may_alias, aligned(1))) fold_16;
typedef uint32_t __attribute__((may_alias, aligned(1))) fold_32;
typedef uint64_t __attribute__((may_alias, aligned(1))) fold_64;
typedef int64_t __attribute__((may_alias, aligned(1))) fold_i64;
typedef float __attribute__((may_alias, aligned(1))) fold_f32;
typedef double __attribute__((may_alias, aligned(1))) fold_f64;

/* ---- integers -------------------------------------------------------------------------------- */

/* `sign` is the type's sign bit, or 0: when this bit is flipped, unsigned comparison puts negative
 * numbers first. */
FOLD_INLINE uint64_t integer(enum word_op op, uint64_t sign, uint64_t a, uint64_t b)
{
    switch (op) {
    case WORD_ADD:
        return a + b;
    case WORD_PROD:
        return a * b;
    case WORD_MIN:
        return (a ^ sign) < (b ^ sign) ? a : b;
    case WORD_MAX:
        return (a ^ sign) < (b ^ sign) ? b : a;
    case WORD_AND:
        return a & b;
    case WORD_OR:
        return a | b;
    case WORD_XOR:
        return a ^ b;
    case FOLD_LAND:
        return (a != 0) & (b != 0);
    case FOLD_LOR:
        return (a | b) != 0;
    default: /* LXOR */
        return (a != 0) ^ (b != 0);
    }
}

FOLD_INLINE void integers_8(enum word_op op, uint64_t sign, fold_8 *restrict into,
                            const fold_8 *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        into[i] = (uint8_t)integer(op, sign, into[i], from[i]);
}

FOLD_INLINE void integers_16(enum word_op op, uint64_t sign, fold_16 *restrict into,
                             const fold_16 *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        into[i] = (uint16_t)integer(op, sign, into[i], from[i]);
}

FOLD_INLINE void integers_32(enum word_op op, uint64_t sign, fold_32 *restrict into,
                             const fold_32 *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        into[i] = (uint32_t)integer(op, sign, into[i], from[i]);
}

FOLD_INLINE void integers_64(enum word_op op, uint64_t sign, fold_64 *restrict into,
                             const fold_64 *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        into[i] = integer(op, sign, into[i], from[i]);
}

FOLD_INLINE void integers(enum word_op op, enum word_type type, void *restrict into,
                          const void *restrict from, size_t count)
{
    bool ordered = op == WORD_MIN || op == WORD_MAX;

    switch (ordered ? type : type | 1) { /* other operations give the same bits for both: use the
                                            unsigned type */
    case WORD_I8:
        integers_8(op, UINT64_C(1) << 7, into, from, count);
        break;
    case WORD_U8:
        integers_8(op, 0, into, from, count);
        break;
    case WORD_I16:
        integers_16(op, UINT64_C(1) << 15, into, from, count);
        break;
    case WORD_U16:
        integers_16(op, 0, into, from, count);
        break;
    case WORD_I32:
        integers_32(op, UINT64_C(1) << 31, into, from, count);
        break;
    case WORD_U32:
        integers_32(op, 0, into, from, count);
        break;
    case WORD_I64:
        integers_64(op, UINT64_C(1) << 63, into, from, count);
        break;
    default:
        integers_64(op, 0, into, from, count);
    }
}

static void fold_integers(enum word_op op, enum word_type type, void *restrict into,
                          const void *restrict from, size_t count)
{
    switch (op) {
    case WORD_ADD:
        integers(WORD_ADD, type, into, from, count);
        break;
    case WORD_PROD:
        integers(WORD_PROD, type, into, from, count);
        break;
    case WORD_MIN:
        integers(WORD_MIN, type, into, from, count);
        break;
    case WORD_MAX:
        integers(WORD_MAX, type, into, from, count);
        break;
    case WORD_AND:
        integers(WORD_AND, type, into, from, count);
        break;
    case WORD_OR:
        integers(WORD_OR, type, into, from, count);
        break;
    case WORD_XOR:
        integers(WORD_XOR, type, into, from, count);
        break;
    case FOLD_LAND:
        integers(FOLD_LAND, type, into, from, count);
        break;
    case FOLD_LOR:
        integers(FOLD_LOR, type, into, from, count);
        break;
    default:
        integers(FOLD_LXOR, type, into, from, count);
    }
}

/* ---- floating point -------------------------------------------------------------------------- */

/* Replaces any NaN by the one that a fold gives. */
FOLD_INLINE float settled_f32(float value)
{
    return value == value ? value : NAN;
}

FOLD_INLINE double settled_f64(double value)
{
    return value == value ? value : (double)NAN;
}

/* minimumNumber, except for the NaN of two NaNs. Only selections, and comparisons that do not trap
 * on a NaN: the compiler turns these into vector instructions. */
FOLD_INLINE float lesser_f32(float a, float b)
{
    float zero = __builtin_isless(__builtin_copysignf(1, a), 0) ? a : b; /* the result where a ==
                                                                            b */
    float value = __builtin_isless(a, b) ? a : b;

    value = a == b ? zero : value;
    value = a != a ? b : value;
    return b != b ? a : value;
}

FOLD_INLINE double lesser_f64(double a, double b)
{
    double zero = __builtin_isless(__builtin_copysign(1, a), 0) ? a : b;
    double value = __builtin_isless(a, b) ? a : b;

    value = a == b ? zero : value;
    value = a != a ? b : value;
    return b != b ? a : value;
}

FOLD_INLINE float computed_f32(enum word_op op, float a, float b)
{
    switch (op) {
    case WORD_ADD:
        return settled_f32(a + b);
    case WORD_PROD:
        return settled_f32(a * b);
    case WORD_MIN:
        return settled_f32(lesser_f32(a, b));
    default:
        return settled_f32(-lesser_f32(-a, -b));
    }
}

FOLD_INLINE double computed_f64(enum word_op op, double a, double b)
{
    switch (op) {
    case WORD_ADD:
        return settled_f64(a + b);
    case WORD_PROD:
        return settled_f64(a * b);
    case WORD_MIN:
        return settled_f64(lesser_f64(a, b));
    default:
        return settled_f64(-lesser_f64(-a, -b));
    }
}

FOLD_INLINE void floats_32(enum word_op op, fold_f32 *restrict into, const fold_f32 *restrict from,
                           size_t count)
{
    for (size_t i = 0; i < count; i++)
        into[i] = computed_f32(op, into[i], from[i]);
}

FOLD_INLINE void floats_64(enum word_op op, fold_f64 *restrict into, const fold_f64 *restrict from,
                           size_t count)
{
    for (size_t i = 0; i < count; i++)
        into[i] = computed_f64(op, into[i], from[i]);
}

static void fold_f32s(enum word_op op, void *restrict into, const void *restrict from, size_t count)
{
    switch (op) {
    case WORD_ADD:
        floats_32(WORD_ADD, into, from, count);
        break;
    case WORD_PROD:
        floats_32(WORD_PROD, into, from, count);
        break;
    case WORD_MIN:
        floats_32(WORD_MIN, into, from, count);
        break;
    default:
        floats_32(WORD_MAX, into, from, count);
    }
}

static void fold_f64s(enum word_op op, void *restrict into, const void *restrict from, size_t count)
{
    switch (op) {
    case WORD_ADD:
        floats_64(WORD_ADD, into, from, count);
        break;
    case WORD_PROD:
        floats_64(WORD_PROD, into, from, count);
        break;
    case WORD_MIN:
        floats_64(WORD_MIN, into, from, count);
        break;
    default:
        floats_64(WORD_MAX, into, from, count);
    }
}

/* ---- complex numbers ------------------------------------------------------------------------- */

static void products_c64(fold_f32 *restrict into, const fold_f32 *restrict from, size_t count)
{
    for (size_t i = 0; i < 2 * count; i += 2) {
        float a = into[i], b = into[i + 1], c = from[i], d = from[i + 1];

        into[i] = settled_f32(a * c - b * d);
        into[i + 1] = settled_f32(a * d + b * c);
    }
}

static void products_c128(fold_f64 *restrict into, const fold_f64 *restrict from, size_t count)
{
    for (size_t i = 0; i < 2 * count; i += 2) {
        double a = into[i], b = into[i + 1], c = from[i], d = from[i + 1];

        into[i] = settled_f64(a * c - b * d);
        into[i + 1] = settled_f64(a * d + b * c);
    }
}

/* ---- values with an index -------------------------------------------------------------- */

/* Whether `a` is strictly less than `b` in the order of MIN, which puts NaNs after all numbers. */
static bool before(double a, double b)
{
    return __builtin_isless(a, b) || (a == b && signbit(a) && !signbit(b)) || (a == a && b != b);
}

static void places_f64(enum word_op op, void *restrict into, const void *restrict from,
                       size_t count)
{
    fold_f64 *values = into;
    fold_i64 *places = into;
    const fold_f64 *from_values = from;
    const fold_i64 *from_places = from;
    double sign = op == FOLD_MINLOC ? 1 : -1;

    for (size_t i = 0; i < 2 * count; i += 2) {
        double a = values[i], b = from_values[i];
        bool equal = !before(sign * a, sign * b) && !before(sign * b, sign * a);

        if (before(sign * b, sign * a) || (equal && from_places[i + 1] < places[i + 1])) {
            a = b;
            places[i + 1] = from_places[i + 1];
        }
        values[i] = settled_f64(a);
    }
}

static void places_i64(enum word_op op, fold_i64 *restrict into, const fold_i64 *restrict from,
                       size_t count)
{
    for (size_t i = 0; i < 2 * count; i += 2) {
        int64_t a = into[i], b = from[i];

        if ((op == FOLD_MINLOC ? b < a : a < b) || (a == b && from[i + 1] < into[i + 1])) {
            into[i] = b;
            into[i + 1] = from[i + 1];
        }
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

void fold(uint8_t code, void *restrict into, const void *restrict from, size_t count)
{
    enum word_type type = word_type(code);
    enum word_op op = word_op(code);

    switch (type) {
    case WORD_F32:
        fold_f32s(op, into, from, count);
        break;
    case WORD_F64:
        fold_f64s(op, into, from, count);
        break;
    case FOLD_C64:
        if (op == WORD_ADD)
            fold_f32s(op, into, from, 2 * count);
        else
            products_c64(into, from, count);
        break;
    case FOLD_C128:
        if (op == WORD_ADD)
            fold_f64s(op, into, from, 2 * count);
        else
            products_c128(into, from, count);
        break;
    case FOLD_F64_AT:
        places_f64(op, into, from, count);
        break;
    case FOLD_I64_AT:
        places_i64(op, into, from, count);
        break;
    case FOLD_BOOL:
        fold_integers(op, WORD_U8, into, from, count);
        break;
    default:
        fold_integers(op, type, into, from, count);
    }
}
