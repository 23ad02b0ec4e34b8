/*
 * A histogram of durations: log-linear, 8 buckets for each power of two, so that a value read from
 * it is less than an eighth too large. The size is fixed, and two histograms add up to one.
 *
 * Owned by the struct that embeds the histogram; zeroed memory is an empty one. Pure. Thread: the
 * owner's.
 */
#ifndef PWC_ENGINE_HISTOGRAM_H
#define PWC_ENGINE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_PARTS   8u  /* of a power of two */
#define HISTOGRAM_POWERS  36u /* in ns: up to 68 s; what is longer counts in the last bucket */
#define HISTOGRAM_BUCKETS (HISTOGRAM_PARTS * (HISTOGRAM_POWERS - 2u))

struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t count; /* of all buckets */
    uint64_t sum;
    uint64_t max;
};

static inline uint32_t histogram_bucket(uint64_t value)
{
    uint32_t power;

    if (value < HISTOGRAM_PARTS)
        return (uint32_t)value;
    power = 63u - (uint32_t)__builtin_clzll(value);
    if (power >= HISTOGRAM_POWERS)
        return HISTOGRAM_BUCKETS - 1;
    return (power - 2) * HISTOGRAM_PARTS + (uint32_t)(value >> (power - 3) & (HISTOGRAM_PARTS - 1));
}

/* Counts `value` `times` times. */
static inline void histogram_record(struct histogram *h, uint64_t value, uint64_t times)
{
    h->counts[histogram_bucket(value)] += times;
    h->count += times;
    h->sum += value * times;
    h->max = value > h->max ? value : h->max;
}

/* The largest value of a bucket; UINT64_MAX for the last one. */
uint64_t histogram_upper(uint32_t bucket);
void histogram_merge(struct histogram *to, const struct histogram *from);
/* The number of values up to `value`, all values of its bucket included. */
uint64_t histogram_count_to(const struct histogram *h, uint64_t value);
/* The value that `per_million` of a million values do not exceed: the end of a bucket, and never
 * more than the largest value. 0 when the histogram is empty. */
uint64_t histogram_quantile(const struct histogram *h, uint32_t per_million);

#endif
