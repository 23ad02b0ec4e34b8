/* Reading and adding histograms (histogram.h). Thread: the owner's. */
#include "daemon/engine/watch/histogram.h"

uint64_t histogram_upper(uint32_t bucket)
{
    uint32_t shift;

    if (bucket < HISTOGRAM_PARTS)
        return bucket;
    if (bucket >= HISTOGRAM_BUCKETS - 1)
        return UINT64_MAX;
    shift = bucket / HISTOGRAM_PARTS - 1;
    return ((HISTOGRAM_PARTS + bucket % HISTOGRAM_PARTS + UINT64_C(1)) << shift) - 1;
}

void histogram_merge(struct histogram *to, const struct histogram *from)
{
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        to->counts[i] += from->counts[i];
    to->count += from->count;
    to->sum += from->sum;
    to->max = from->max > to->max ? from->max : to->max;
}

uint64_t histogram_count_to(const struct histogram *h, uint64_t value)
{
    uint32_t last = histogram_bucket(value);
    uint64_t count = 0;

    for (uint32_t i = 0; i <= last; i++)
        count += h->counts[i];
    return count;
}

/* Returns a value that this share of all values does not exceed: the upper bound of its bucket. */
uint64_t histogram_quantile(const struct histogram *h, uint32_t per_million)
{
    uint64_t count = h->count, seen = 0;
    /* Rounded up; in two parts, which cannot overflow. */
    uint64_t wanted =
        count / 1000000 * per_million + (count % 1000000 * per_million + 999999) / 1000000;

    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->counts[i];
        if (h->counts[i] > 0 && seen >= wanted)
            return histogram_upper(i) < h->max ? histogram_upper(i) : h->max;
    }
    return 0;
}
