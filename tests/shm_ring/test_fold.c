/* Folds: each operation on each type compared with a computation element by element, at any address
 * and for any count; the same bits in either order of operands; NaN, zeros, overflow. */
#include "shm_ring/fold.h"
#include "tests/count.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1000, WIDEST = 16, GUARD = 32 };

/* ---- codes ----------------------------------------------------------------------------------- */

static bool is_one_of(enum word_op op, enum word_op from, enum word_op to)
{
    return op >= from && op <= to;
}

/* Whether the operation exists for the type, by the table of fold.h. */
static bool there_is(enum word_op op, enum word_type type)
{
    bool integer = type <= WORD_U64, real = type == WORD_F32 || type == WORD_F64;
    bool complex = type == FOLD_C64 || type == FOLD_C128;

    if (op == WORD_ADD || op == WORD_PROD)
        return integer || real || complex;
    if (op == WORD_MIN || op == WORD_MAX)
        return integer || real;
    if (is_one_of(op, WORD_AND, WORD_XOR))
        return integer;
    if (is_one_of(op, FOLD_LAND, FOLD_LXOR))
        return integer || type == FOLD_BOOL;
    return is_one_of(op, FOLD_MINLOC, FOLD_MAXLOC) && (type == FOLD_F64_AT || type == FOLD_I64_AT);
}

static void test_codes(void)
{
    static const uint32_t bytes[FOLD_TYPES] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 1, 16, 16};

    for (unsigned code = 0; code < 256; code++) {
        CU_ASSERT_EQUAL(fold_code_valid((uint8_t)code),
                        there_is(word_op((uint8_t)code), word_type((uint8_t)code)));
        if (fold_code_valid((uint8_t)code))
            CU_ASSERT_EQUAL(1u << fold_shift((uint8_t)code), bytes[code >> 4]);
    }
}

/* ---- the computation ------------------------------------------------------------------------- */

static int64_t with_sign(uint64_t bits, uint32_t width)
{
    return (int64_t)(bits << (64 - 8 * width)) >> (64 - 8 * width);
}

static void plain_integer(enum word_op op, enum word_type type, uint32_t width, uint8_t *a,
                          const uint8_t *b)
{
    uint64_t x = 0, y = 0, z = 0;
    bool less;

    memcpy(&x, a, width);
    memcpy(&y, b, width);
    less = type % 2 == 0 && type != FOLD_BOOL ? with_sign(x, width) < with_sign(y, width) : x < y;
    switch (op) {
    case WORD_ADD:
        z = x + y;
        break;
    case WORD_PROD:
        z = x * y;
        break;
    case WORD_MIN:
        z = less ? x : y;
        break;
    case WORD_MAX:
        z = less ? y : x;
        break;
    case WORD_AND:
        z = x & y;
        break;
    case WORD_OR:
        z = x | y;
        break;
    case WORD_XOR:
        z = x ^ y;
        break;
    case FOLD_LAND:
        z = x && y;
        break;
    case FOLD_LOR:
        z = x || y;
        break;
    default:
        z = !x != !y;
    }
    memcpy(a, &z, width);
}

/* Whether `a` orders before `b`, where a NaN is above all numbers. */
static bool below(double a, double b)
{
    if (isnan(a) || isnan(b))
        return !isnan(a);
    return a < b || (a == 0 && b == 0 && signbit(a) && !signbit(b));
}

static bool above(double a, double b)
{
    if (isnan(a) || isnan(b))
        return !isnan(a);
    return a > b || (a == 0 && b == 0 && !signbit(a) && signbit(b));
}

/* Computes in double, which is exact enough for each sum and product of floats before rounding. */
static double plain_real(enum word_op op, double a, double b)
{
    volatile double value;

    switch (op) {
    case WORD_ADD:
        value = a + b;
        break;
    case WORD_PROD:
        value = a * b;
        break;
    case WORD_MIN:
        value = below(a, b) ? a : b;
        break;
    default:
        value = above(a, b) ? a : b;
    }
    return value;
}

static void put_f32(uint8_t *to, double value)
{
    static const uint32_t nan_bits = 0x7fc00000;
    float rounded = (float)value;

    memcpy(to, isnan(value) ? (const void *)&nan_bits : &rounded, sizeof(rounded));
}

static void put_f64(uint8_t *to, double value)
{
    static const uint64_t nan_bits = UINT64_C(0x7ff8000000000000);

    memcpy(to, isnan(value) ? (const void *)&nan_bits : &value, sizeof(value));
}

static double get_f32(const uint8_t *from)
{
    float value;

    memcpy(&value, from, sizeof(value));
    return value;
}

static double get_f64(const uint8_t *from)
{
    double value;

    memcpy(&value, from, sizeof(value));
    return value;
}

/* A sum or difference of two products of floats, each product rounded first. */
static double rounded_f32(double product, double other, double sign)
{
    volatile float p = (float)product, q = (float)other;

    return p + sign * q;
}

static void plain_complex(enum word_op op, bool wide, uint8_t *to, const uint8_t *from)
{
    uint32_t part = wide ? 8 : 4;
    double a = wide ? get_f64(to) : get_f32(to), b = wide ? get_f64(to + 8) : get_f32(to + 4);
    double c = wide ? get_f64(from) : get_f32(from);
    double d = wide ? get_f64(from + 8) : get_f32(from + 4);
    volatile double ac = a * c, bd = b * d, ad = a * d, bc = b * c;
    double re = op == WORD_ADD ? a + c : wide ? ac - bd : rounded_f32(ac, bd, -1);
    double im = op == WORD_ADD ? b + d : wide ? ad + bc : rounded_f32(ad, bc, 1);

    if (wide)
        put_f64(to, re);
    else
        put_f32(to, re);
    if (wide)
        put_f64(to + part, im);
    else
        put_f32(to + part, im);
}

static void plain_place(enum word_op op, enum word_type type, uint8_t *to, const uint8_t *from)
{
    int64_t x, y, at_x, at_y;
    double a = get_f64(to), b = get_f64(from);
    bool take, keep;

    memcpy(&x, to, 8);
    memcpy(&y, from, 8);
    memcpy(&at_x, to + 8, 8);
    memcpy(&at_y, from + 8, 8);
    if (type == FOLD_I64_AT) {
        take = op == FOLD_MINLOC ? y < x : y > x;
        keep = op == FOLD_MINLOC ? x < y : x > y;
    } else {
        bool both = isnan(a) && isnan(b);

        take = !both && (op == FOLD_MINLOC ? below(b, a) : above(b, a));
        keep = !both && (op == FOLD_MINLOC ? below(a, b) : above(a, b));
    }
    if (take || (!keep && at_y < at_x))
        memcpy(to, from, 16);
    if (type == FOLD_F64_AT)
        put_f64(to, get_f64(to));
}

static void plain(uint8_t code, uint8_t *to, const uint8_t *from)
{
    enum word_type type = word_type(code);
    enum word_op op = word_op(code);

    if (type == WORD_F32)
        put_f32(to, plain_real(op, get_f32(to), get_f32(from)));
    else if (type == WORD_F64)
        put_f64(to, plain_real(op, get_f64(to), get_f64(from)));
    else if (type == FOLD_C64 || type == FOLD_C128)
        plain_complex(op, type == FOLD_C128, to, from);
    else if (type == FOLD_F64_AT || type == FOLD_I64_AT)
        plain_place(op, type, to, from);
    else
        plain_integer(op, type, 1u << (fold_shift(code) & 3), to, from); /* 8 bytes at most */
}

/* ---- values ---------------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 16 ^ *state << 24;
}

static const double odd_values[] = {0.0,  -0.0,      1.0,  -1.0,  INFINITY,  -INFINITY, NAN,
                                    -NAN, 0x1p-149,  1e38, -1e38, 0x1p-1074, 1e308,     -1e308,
                                    0.1,  16777217., 3.0,  -3.0,  1.5};

/* Chooses a part of an element: random bits; for floats often special values, also NaNs with a
 * payload. */
static void part(uint8_t *to, uint32_t width, bool real, uint64_t *state)
{
    uint64_t bits = next_random(state);
    double value = odd_values[next_random(state) % COUNT(odd_values)];

    if (next_random(state) % 4 == 0)
        bits %= 3; /* 0, 1 or 2, so that some are equal */
    memcpy(to, &bits, width);
    if (!real || next_random(state) % 4 == 0)
        return;
    if (width == 4) {
        float narrow = (float)value;

        memcpy(to, &narrow, width);
    } else {
        memcpy(to, &value, width);
    }
}

static void fill(uint8_t code, uint8_t *to, size_t count, uint64_t *state)
{
    enum word_type type = word_type(code);
    uint32_t bytes = 1u << fold_shift(code);
    uint32_t width = type == FOLD_C64 ? 4 : bytes > 8 ? 8 : bytes;

    for (size_t at = 0; at < count * bytes; at += width)
        part(to + at, width, type >= WORD_F32 && !(type == FOLD_F64_AT && at % 16 == 8), state);
}

/* ---- tests ----------------------------------------------------------------------------------- */

struct arrays {
    uint8_t into[MOST * WIDEST + 2 * GUARD], from[MOST * WIDEST + 2 * GUARD];
    uint8_t other[MOST * WIDEST + 2 * GUARD], expected[MOST * WIDEST + 2 * GUARD];
};

static void check(struct arrays *a, uint8_t code, size_t count, size_t skew, uint64_t *state)
{
    size_t bytes = count << fold_shift(code), at = GUARD + skew;

    memset(a, 0xa5, sizeof(*a));
    fill(code, a->into + at, count, state);
    fill(code, a->from + GUARD, count, state);
    memcpy(a->other, a->from, sizeof(a->other));
    memcpy(a->expected, a->into, sizeof(a->expected));
    for (size_t i = 0; i < bytes; i += 1u << fold_shift(code))
        plain(code, a->expected + at + i, a->from + GUARD + i);
    fold(code, a->other + GUARD, a->into + at, count);
    fold(code, a->into + at, a->from + GUARD, count);
    CU_ASSERT_EQUAL(memcmp(a->into, a->expected, sizeof(a->into)), 0);
    CU_ASSERT_EQUAL(memcmp(a->other + GUARD, a->into + at, bytes), 0);
    for (size_t i = 0; i < GUARD; i++)
        CU_ASSERT(a->other[i] == 0xa5 && a->other[GUARD + bytes + i] == 0xa5);
}

static void test_plain(void)
{
    static const size_t counts[] = {0, 1, 2, 3, 7, 64, MOST};
    struct arrays *a = malloc(sizeof(*a));
    uint64_t state = 1;

    for (unsigned code = 0; code < 256; code++)
        for (size_t i = 0; fold_code_valid((uint8_t)code) && i < COUNT(counts); i++)
            for (size_t skew = 0; skew < 9; skew++)
                check(a, (uint8_t)code, counts[i], skew, &state);
    free(a);
}

static void test_overflow(void)
{
    int8_t a = 127, b = 2;
    int16_t c = -32768, d = -1;
    int64_t e = INT64_MIN, f = -1;
    uint16_t g = 0xffff, h = 0xffff;

    fold(word_code(WORD_ADD, WORD_I8), &a, &b, 1);
    CU_ASSERT_EQUAL(a, -127);
    fold(word_code(WORD_PROD, WORD_I16), &c, &d, 1);
    CU_ASSERT_EQUAL(c, -32768);
    fold(word_code(WORD_PROD, WORD_I64), &e, &f, 1);
    CU_ASSERT_EQUAL(e, INT64_MIN);
    fold(word_code(WORD_PROD, WORD_U16), &g, &h, 1);
    CU_ASSERT_EQUAL(g, 1);
}

static uint64_t double_bits(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static void test_odd_floats(void)
{
    static const uint64_t settled = UINT64_C(0x7ff8000000000000);
    static const struct {
        enum word_op op;
        uint64_t a, b, result;
    } cases[] = {
        {WORD_MIN, 0, UINT64_C(1) << 63, UINT64_C(1) << 63},
        {WORD_MAX, UINT64_C(1) << 63, 0, 0},
        {WORD_MIN, UINT64_C(0xfff8000000000123), 5, 5},
        {WORD_MAX, 5, UINT64_C(0x7ff0000000000001), 5},
        {WORD_MIN, UINT64_C(0xfff8000000000123), UINT64_C(0x7ff0000000000001), settled},
        {WORD_ADD, UINT64_C(0x7ff0000000000000), UINT64_C(0xfff0000000000000), settled},
        {WORD_PROD, 0, UINT64_C(0x7ff0000000000000), settled},
        {WORD_ADD, UINT64_C(0xfff8000000000123), 5, settled},
        {WORD_ADD, UINT64_C(1) << 63, 0, 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t a = cases[i].a, b = cases[i].b;

        fold(word_code(cases[i].op, WORD_F64), &a, &cases[i].b, 1);
        fold(word_code(cases[i].op, WORD_F64), &b, &cases[i].a, 1);
        CU_ASSERT_EQUAL(a, cases[i].result);
        CU_ASSERT_EQUAL(b, cases[i].result);
    }
}

struct place {
    double value;
    int64_t at;
};

static void test_places(void)
{
    static const struct {
        enum word_op op;
        struct place a, b, result;
    } cases[] = {
        {FOLD_MINLOC, {1, 5}, {2, 3}, {1, 5}},        {FOLD_MAXLOC, {1, 5}, {2, 7}, {2, 7}},
        {FOLD_MINLOC, {1, 5}, {1, 3}, {1, 3}},        {FOLD_MAXLOC, {1, 5}, {1, 3}, {1, 3}},
        {FOLD_MINLOC, {NAN, 1}, {9, 3}, {9, 3}},      {FOLD_MAXLOC, {NAN, 1}, {-9, 3}, {-9, 3}},
        {FOLD_MAXLOC, {NAN, 4}, {-NAN, 3}, {NAN, 3}}, {FOLD_MINLOC, {0., 1}, {-0., 2}, {-0., 2}},
        {FOLD_MAXLOC, {0., 2}, {-0., 1}, {0., 2}},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct place a = cases[i].a;

        fold(word_code(cases[i].op, FOLD_F64_AT), &a, &cases[i].b, 1);
        CU_ASSERT_EQUAL(double_bits(a.value), double_bits(cases[i].result.value));
        CU_ASSERT_EQUAL(a.at, cases[i].result.at);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"codes", test_codes},
        {"against a plain computation", test_plain},
        {"integers wrap around", test_overflow},
        {"NaN and the two zeros", test_odd_floats},
        {"values and where they were", test_places},
        CU_TEST_INFO_NULL,
    };

    return suite_run("fold", tests);
}
