/* pwcperf: measures puts, gets and active messages between the ranks of a job, and runs the
 * stress. */
#include <errno.h>
#include <pwc/am.h>
#include "tools/pwcperf/heading.h"
#include "tools/pwcperf/measures/measure.h"
#include "tools/pwcperf/options.h"
#include "tools/pwcperf/samples.h"
#include "tools/pwcperf/stress/stress.h"
#include "tools/pwcperf/world.h"

#define BYTES_AIMED_AT (UINT64_C(1) << 30) /* bytes that a measurement of a large size moves */
#define OVERLAP_ITERS  UINT64_C(1900)      /* some 2 s */

static uint64_t default_iters(const struct options *options, uint64_t size)
{
    enum perf_test test = options->test;
    bool rate = test == FETCH_RATE || (test == AM_BW && options->kind == KIND_SHORT);
    bool fast = test == PUT_RATE || test == GUPS; /* some tenths of a second */
    bool bandwidth = test == PUT_BW || test == GET_BW || test == AM_BW;
    if (test == OVERLAP)
        return OVERLAP_ITERS;
    uint64_t most = fast ? 2000000 : rate ? 200000 : bandwidth ? 20000 : 10000;
    uint64_t fit = size > 0 ? BYTES_AIMED_AT / size : most;
    return fit > most ? most : fit < 50 ? 50 : fit;
}

static int measure(struct pair *pair, uint64_t size)
{
    const struct options *options = pair->world->options;
    struct plan plan = {.size = size, .iters = options->iters, .warmup = options->warmup};
    if (plan.iters == 0)
        plan.iters = default_iters(options, size);
    if (plan.warmup == UINT64_MAX)
        plan.warmup = plan.iters / 10;
    samples_clear(pair->samples);
    switch (options->test) {
    case PUT_LAT:
        return latency_put(pair, &plan);
    case SIGNAL_LAT:
        return latency_signal(pair, &plan);
    case GET_LAT:
        return latency_get(pair, &plan);
    case PUT_BW:
    case PUT_RATE:
        return stream_put(pair, &plan);
    case GET_BW:
        return stream_get(pair, &plan);
    case AM_LAT:
        return am_latency(pair, &plan);
    case AM_BW:
        return am_stream(pair, &plan);
    case INJECT:
        return inject(pair, size);
    case OVERLAP:
        return overlap(pair, &plan);
    case SHARE:
        return share(pair, size);
    case FETCH_LAT:
        return atomic_latency(pair, &plan);
    case FETCH_RATE:
        return atomic_fetch_rate(pair, &plan);
    case GUPS:
        return atomic_gups(pair, &plan);
    case STRESS:
        break;
    }
    return -EINVAL;
}

/* The bytes that a test with this size needs in each half of a rank's region: the half for arrivals
 * and the half for departures (pair.h). */
static size_t half_of(const struct options *options, uint64_t size)
{
    switch (options->test) {
    case PUT_LAT:
    case SIGNAL_LAT:
    case GET_LAT:
        return latency_half(options, size);
    case AM_LAT:
        return am_latency_half(size);
    case INJECT:
        return inject_half(options, size);
    case OVERLAP:
        return overlap_half(size);
    case FETCH_LAT:
    case FETCH_RATE:
    case GUPS:
        return atomic_half(options);
    default:
        return stream_half(options, size);
    }
}

/* Default sizes that a Medium cannot hold are skipped; other sizes were refused before. */
static bool passed_over(const struct world *world, uint64_t size)
{
    const struct options *options = world->options;
    return options->kind == KIND_MEDIUM && !options->sizes_given &&
           size > pwc_am_max_medium(world->client);
}

static int measure_all(struct world *world)
{
    const struct options *options = world->options;
    size_t half = 64;
    for (size_t i = 0; i < options->size_count; i++) {
        size_t needed = half_of(options, options->sizes[i]);
        half = needed > half ? needed : half;
    }
    if (options->kind == KIND_MEDIUM && options->sizes_given)
        for (size_t i = 0; i < options->size_count; i++)
            if (options->sizes[i] > pwc_am_max_medium(world->client))
                return world_refuse(world,
                                    "--size %llu: a Medium carries up to %zu bytes here (pwcd "
                                    "--packed-max), a Long more",
                                    (unsigned long long)options->sizes[i],
                                    pwc_am_max_medium(world->client));
    struct samples samples;
    struct pair pair;
    int rc = samples_open(&samples);
    if (rc < 0)
        return world_error(world, rc, "making room for samples");
    rc = pair_open(&pair, world, &samples, half);
    for (size_t i = 0; rc == 0 && i < options->size_count; i++)
        rc = passed_over(world, options->sizes[i]) ? 0 : measure(&pair, options->sizes[i]);
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
    if (rc == 0 && world.rank == 0 && options.test != STRESS && !options.json)
        heading_print(stdout, &world);
    if (rc == 0)
        rc = options.test == STRESS ? stress_run(&world) : measure_all(&world);
    world_close(&world);
    return rc < 0 ? 1 : 0;
}
