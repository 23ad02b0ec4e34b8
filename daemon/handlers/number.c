/* Owns nothing: the helpers f64 and f32 (number.h). Thread: the thread that runs the handler. */
#include "daemon/handlers/number.h"

#include <math.h>
#include <string.h>

static double double_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static float float_of(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;

    memcpy(&value, &low, sizeof(value));
    return value;
}

static uint64_t bits_of_double(double value)
{
    uint64_t bits;

    if (value != value)
        value = (double)NAN;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static uint64_t bits_of_float(float value)
{
    uint32_t bits;

    if (value != value)
        value = NAN;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* The operation minimumNumber of IEEE 754-2019. */
static double lesser(double a, double b)
{
    if (a != a)
        return b;
    if (b != b)
        return a;
    if (a == b)
        return signbit(a) ? a : b;
    return a < b ? a : b;
}

static uint64_t to_signed(double a)
{
    if (a != a)
        return 0;
    if (a >= 0x1p63)
        return INT64_MAX;
    return a < -0x1p63 ? (uint64_t)INT64_MIN : (uint64_t)(int64_t)a;
}

static uint64_t to_unsigned(double a)
{
    if (a != a || a <= 0)
        return 0;
    return a >= 0x1p64 ? UINT64_MAX : (uint64_t)a;
}

/* The operation; NUMBER_OPS where it is wrong. Where the processor wrongly predicts that a wrong
 * one is right, it computes an addition. */
static uint64_t operation(struct run *r, uint64_t op)
{
    uint64_t known = window_index(op, NUMBER_OPS);

    if (known == op)
        return known;
    run_fail(r, RUN_BAD_ARGUMENT, op);
    return NUMBER_OPS;
}

uint64_t number_f64(struct run *r, const uint64_t *reg)
{
    double a = double_of(reg[2]), b = double_of(reg[3]);

    switch (operation(r, reg[1])) {
    case NUMBER_ADD:
        return bits_of_double(a + b);
    case NUMBER_SUB:
        return bits_of_double(a - b);
    case NUMBER_MUL:
        return bits_of_double(a * b);
    case NUMBER_DIV:
        return bits_of_double(a / b);
    case NUMBER_MIN:
        return bits_of_double(lesser(a, b));
    case NUMBER_MAX:
        return bits_of_double(-lesser(-a, -b));
    case NUMBER_SQRT:
        return bits_of_double(__builtin_sqrt(a));
    case NUMBER_LESS:
        return a < b;
    case NUMBER_EQUAL:
        return a == b;
    case NUMBER_FROM_SIGNED:
        return bits_of_double((double)(int64_t)reg[2]);
    case NUMBER_FROM_UNSIGNED:
        return bits_of_double((double)reg[2]);
    case NUMBER_TO_SIGNED:
        return to_signed(a);
    case NUMBER_TO_UNSIGNED:
        return to_unsigned(a);
    case NUMBER_CONVERT:
        return bits_of_double((double)float_of(reg[2]));
    default:
        return 0;
    }
}

uint64_t number_f32(struct run *r, const uint64_t *reg)
{
    float a = float_of(reg[2]), b = float_of(reg[3]);

    switch (operation(r, reg[1])) {
    case NUMBER_ADD:
        return bits_of_float(a + b);
    case NUMBER_SUB:
        return bits_of_float(a - b);
    case NUMBER_MUL:
        return bits_of_float(a * b);
    case NUMBER_DIV:
        return bits_of_float(a / b);
    case NUMBER_MIN:
        return bits_of_float((float)lesser(a, b));
    case NUMBER_MAX:
        return bits_of_float((float)-lesser(-a, -b));
    case NUMBER_SQRT:
        return bits_of_float(__builtin_sqrtf(a));
    case NUMBER_LESS:
        return a < b;
    case NUMBER_EQUAL:
        return a == b;
    case NUMBER_FROM_SIGNED:
        return bits_of_float((float)(int64_t)reg[2]);
    case NUMBER_FROM_UNSIGNED:
        return bits_of_float((float)reg[2]);
    case NUMBER_TO_SIGNED:
        return to_signed(a);
    case NUMBER_TO_UNSIGNED:
        return to_unsigned(a);
    case NUMBER_CONVERT:
        return bits_of_float((float)double_of(reg[2]));
    default:
        return 0;
    }
}
