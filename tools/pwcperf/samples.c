/* Keeps and summarizes durations. */
#include "tools/pwcperf/samples.h"
#include <errno.h>
#include <stdlib.h>

#define SAMPLES_ROOM ((size_t)1 << 20)

int samples_open(struct samples *samples)
{
    *samples = (struct samples){.room = SAMPLES_ROOM, .stride = 1};
    samples->ns = malloc(samples->room * sizeof(*samples->ns));
    return samples->ns != NULL ? 0 : -ENOMEM;
}

void samples_close(struct samples *samples)
{
    free(samples->ns);
}

void samples_clear(struct samples *samples)
{
    samples->count = 0;
    samples->seen = 0;
    samples->stride = 1;
}

void samples_add(struct samples *samples, uint64_t ns)
{
    if ((samples->seen++ & (samples->stride - 1)) != 0)
        return;
    if (samples->count == samples->room) {
        for (size_t i = 0; i < samples->room / 2; i++)
            samples->ns[i] = samples->ns[2 * i];
        samples->count = samples->room / 2;
        samples->stride *= 2;
    }
    samples->ns[samples->count++] = ns;
}

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Finds the smallest sample that at least `share` of all do not exceed. */
static double quantile(const struct samples *samples, double share)
{
    size_t rank = (size_t)(share * (double)samples->count + 0.999999);
    return (double)samples->ns[rank > 0 ? rank - 1 : 0];
}

void samples_summary(struct samples *samples, unsigned operations, struct result *out)
{
    if (samples->count == 0)
        return;
    qsort(samples->ns, samples->count, sizeof(*samples->ns), by_value);
    double sum = 0, unit = 1e3 * operations;
    for (size_t i = 0; i < samples->count; i++)
        sum += (double)samples->ns[i];
    out->min_us = (double)samples->ns[0] / unit;
    out->p50_us = quantile(samples, 0.50) / unit;
    out->p99_us = quantile(samples, 0.99) / unit;
    out->mean_us = sum / (double)samples->count / unit;
}
