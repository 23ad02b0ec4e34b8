/* Chooses random numbers (values.h). Thread: the owner's. */
#include "tests/hostile/values.h"

#include "tests/lib/raw/session.h"

static const uint64_t boundaries[] = {
    0,
    1,
    4,
    7,
    8,
    48,
    64,
    INT8_MAX,
    UINT8_MAX,
    SESSION_ID_MAX,
    SESSION_ID_MAX + 1,
    RAW_RING - 8,
    RAW_RING,
    RAW_RING + 8,
    INT16_MAX,
    UINT16_MAX,
    RAW_SEGMENT - 1,
    RAW_SEGMENT,
    RAW_SEGMENT + 1,
    INT32_MAX,
    UINT64_C(1) << 31,
    UINT32_MAX,
    UINT64_C(1) << 32,
    UINT64_C(1) << 46,
    INT64_MAX,
    UINT64_C(1) << 63,
    UINT64_MAX - RAW_RING,
    UINT64_MAX - 7,
    UINT64_MAX,
};

void values_init(struct values *v, uint64_t seed)
{
    v->state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    for (int i = 0; i < 8; i++)
        (void)values_any(v);
}

uint64_t values_any(struct values *v)
{
    v->state ^= v->state << 13;
    v->state ^= v->state >> 7;
    v->state ^= v->state << 17;
    return v->state;
}

uint64_t values_below(struct values *v, uint64_t bound)
{
    return (values_any(v) >> 11) % bound;
}

uint64_t values_wrong(struct values *v, uint64_t right)
{
    uint64_t step = 1 + values_below(v, 16);

    switch (values_below(v, 8)) {
    case 0:
    case 1:
    case 2:
        return boundaries[values_below(v, sizeof(boundaries) / sizeof(boundaries[0]))];
    case 3:
        return right ^ UINT64_C(1) << values_below(v, 64);
    case 4:
        return right + step;
    case 5:
        return right - step;
    case 6:
        return right + 8 * step;
    default:
        return values_any(v);
    }
}
