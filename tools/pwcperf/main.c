/* pwcperf: measures and stresses puts and gets between the ranks of a job. */
#include <errno.h>
#include "measure.h"
#include "options.h"
#include "samples.h"
#include "stress.h"
#include "world.h"

#define BYTES_AIMED_AT (UINT64_C(256) << 20) /* moved by a measurement of a large size */

static uint64_t default_iters(enum perf_test test, uint64_t size)
{
    uint64_t most = test == PUT_RATE ? 200000 : test == PUT_BW || test == GET_BW ? 20000 : 10000;
    uint64_t fit = size > 0 ? BYTES_AIMED_AT / size : most;
    return fit > most ? most : fit < 50 ? 50 : fit;
}

static int measure(struct pair *pair, uint64_t size)
{
    const struct options *options = pair->world->options;
    struct plan plan = {.size = size, .iters = options->iters, .warmup = options->warmup};
    if (plan.iters == 0)
        plan.iters = default_iters(options->test, size);
    if (plan.warmup == UINT64_MAX)
        plan.warmup = plan.iters / 10;
    samples_clear(pair->samples);
    switch (options->test) {
    case PUT_LAT:
        return latency_put(pair, &plan);
    case GET_LAT:
        return latency_get(pair, &plan);
    case PUT_BW:
    case PUT_RATE:
        return stream_put(pair, &plan);
    case GET_BW:
        return stream_get(pair, &plan);
    case INJECT:
        return inject(pair, size);
    case STRESS:
        break;
    }
    return -EINVAL;
}

/* Bytes that each half of a region needs. */
static size_t half_of(const struct options *options, uint64_t size)
{
    switch (options->test) {
    case PUT_LAT:
    case GET_LAT:
        return latency_half(options, size);
    case INJECT:
        return inject_half(options, size);
    default:
        return stream_half(options, size);
    }
}

static int measure_all(struct world *world)
{
    const struct options *options = world->options;
    size_t half = 64;
    for (size_t i = 0; i < options->size_count; i++) {
        size_t needed = half_of(options, options->sizes[i]);
        half = needed > half ? needed : half;
    }
    struct samples samples;
    struct pair pair;
    int rc = samples_open(&samples);
    if (rc < 0)
        return world_error(world, rc, "making room for samples");
    rc = pair_open(&pair, world, &samples, half);
    for (size_t i = 0; rc == 0 && i < options->size_count; i++)
        rc = measure(&pair, options->sizes[i]);
    pair_close(&pair);
    samples_close(&samples);
    return rc;
}

int main(int argc, char **argv)
{
    struct options options;
    struct world world;
    int rc = options_parse(&options, argc, argv);
    if (rc != 0)
        return rc > 0 ? 0 : 2;
    rc = world_open(&world, &options);
    if (rc == 0)
        rc = options.test == STRESS ? stress_run(&world) : measure_all(&world);
    world_close(&world);
    return rc < 0 ? 1 : 0;
}
