/* The kind of each operation of the stress, and the form of its completion ids. */
#include <errno.h>
#include <string.h>
#include "tools/pwcperf/pattern.h"
#include "tools/pwcperf/stress/stress.h"

/* An id by value: number 24 bits, offset 23, kind 3, and 14 bits drawn from these and the seed. */
#define NUMBER_BITS 24
#define OFFSET_BITS 23
#define KIND_BITS   3
#define SUM_BITS    14

/* An id by bytes begins with this; bytes of a pattern follow. */
struct long_id {
    uint64_t seed;
    uint64_t number;
    uint64_t offset;
    uint32_t kind;
    uint32_t origin;
    uint64_t size; /* of the whole id */
};
_Static_assert(sizeof(struct long_id) == STRESS_ID_BYTES_MIN, "long_id");

/* Takes the next `bits` bits of a random word. */
static uint64_t take(uint64_t *word, unsigned bits)
{
    uint64_t value = *word & ((UINT64_C(1) << bits) - 1);
    *word >>= bits;
    return value;
}

/* Draws a size, mostly small, up to the largest. */
static uint64_t draw_size(uint64_t random)
{
    static const struct {
        unsigned share; /* of 1024 */
        uint64_t max;
    } classes[] = {
        {80, 0}, {560, 64}, {315, 4096}, {60, 64 << 10}, {8, 1024 << 10}, {1, STRESS_SIZE_MAX},
    };
    uint64_t at = take(&random, 10);
    size_t class = 0;
    while (at >= classes[class].share)
        at -= classes[class ++].share;
    /* The range includes the largest size, which must be drawn, too. */
    return classes[class].max == 0 ? 0 : random % (classes[class].max + 1);
}

static uint32_t draw_id_size(uint64_t random)
{
    if (take(&random, 2) != 0)
        return 0;
    return STRESS_ID_BYTES_MIN + (uint32_t)(random % (PWC_CID_MAX - STRESS_ID_BYTES_MIN + 1));
}

static unsigned draw_flags(uint64_t random, bool get)
{
    unsigned flags = 0;
    if (take(&random, 6) == 0)
        flags |= PWC_FENCE;
    if (take(&random, 3) == 0)
        flags |= PWC_UNORDERED;
    switch (take(&random, 3)) {
    case 0:
        return flags | PWC_NO_RCE;
    case 1: /* from here on only a remote event shows that the bytes have arrived */
        return get ? flags : flags | PWC_NO_LCE;
    case 2:
        return get ? flags : flags | PWC_LCE_SOURCE;
    default:
        return flags;
    }
}

void stress_plan(const struct stress_shape *shape, uint32_t origin, uint64_t number,
                 struct stress_op *out)
{
    uint64_t root = pattern_mix(pattern_mix(shape->seed + origin) + number);
    uint64_t first = pattern_mix(root), ids = pattern_mix(root + 2);
    out->target = (uint32_t)((root >> 32) % shape->ranks);
    out->get = take(&first, 2) == 0;
    out->from_stack = take(&first, 1) == 0;
    out->flags = draw_flags(first, out->get);
    out->size = draw_size(pattern_mix(root + 1));
    out->lid_size = draw_id_size(ids);
    out->rid_size = draw_id_size(pattern_mix(ids));
}

uint64_t stress_put_seed(const struct stress_shape *shape, uint32_t origin, uint64_t number)
{
    return pattern_mix(pattern_mix(~shape->seed + origin) ^ number);
}

uint64_t stress_library_seed(const struct stress_shape *shape, uint32_t owner)
{
    return pattern_mix(shape->seed * 3 + owner);
}

static uint64_t sum_of(const struct stress_shape *shape, uint32_t origin, uint64_t word)
{
    return pattern_mix(pattern_mix(shape->seed + origin) + word) >> (64 - SUM_BITS);
}

pwc_cid stress_id_encode(const struct stress_shape *shape, const struct stress_id *id,
                         uint32_t size, void *room)
{
    if (size == 0) {
        uint64_t word = id->number | id->offset << NUMBER_BITS |
                        (uint64_t)id->kind << (NUMBER_BITS + OFFSET_BITS);
        return pwc_cid_u64(word | sum_of(shape, id->origin, word) << (64 - SUM_BITS));
    }
    struct long_id whole = {
        .seed = shape->seed,
        .number = id->number,
        .offset = id->offset,
        .kind = id->kind,
        .origin = id->origin,
        .size = size,
    };
    memcpy(room, &whole, sizeof(whole));
    pattern_fill((char *)room + sizeof(whole), size - sizeof(whole),
                 stress_put_seed(shape, id->origin, id->number), id->offset);
    return pwc_cid_bytes(room, size);
}

static int decode_value(const struct stress_shape *shape, uint64_t value, uint32_t origin,
                        struct stress_id *out)
{
    uint64_t sum = value >> (64 - SUM_BITS), rest = value & (~UINT64_C(0) >> SUM_BITS);
    if (sum_of(shape, origin, rest) != sum)
        return -EBADMSG;
    out->number = take(&rest, NUMBER_BITS);
    out->offset = take(&rest, OFFSET_BITS);
    out->kind = (uint32_t)take(&rest, KIND_BITS);
    out->origin = origin;
    return 0;
}

static int decode_bytes(const struct stress_shape *shape, const struct pwc_event *event,
                        uint32_t origin, struct stress_id *out)
{
    struct long_id whole;
    if (event->id_size < sizeof(whole))
        return -EBADMSG;
    memcpy(&whole, event->data, sizeof(whole));
    size_t rest = event->id_size - sizeof(whole);
    if (whole.seed != shape->seed || whole.origin != origin || whole.size != event->id_size ||
        pattern_check((const char *)event->data + sizeof(whole), rest,
                      stress_put_seed(shape, origin, whole.number), whole.offset) != rest)
        return -EBADMSG;
    *out = (struct stress_id){whole.kind, whole.origin, whole.number, whole.offset};
    return 0;
}

int stress_id_decode(const struct stress_shape *shape, const struct pwc_event *event,
                     struct stress_id *out)
{
    /* The caller has set out->origin to the rank that must have made the id. */
    uint32_t origin = out->origin;
    return event->id_size == 0 ? decode_value(shape, event->id, origin, out)
                               : decode_bytes(shape, event, origin, out);
}
