/* The measurements. Each is collective, and prints its result on rank 0. */
#ifndef PWCPERF_MEASURE_H
#define PWCPERF_MEASURE_H

#include "tools/pwcperf/pair.h"

/* Operations of one measurement of a size, warm-up included. */
struct plan {
    uint64_t size;
    uint64_t warmup, iters;
};

/* Rounds a count up to whole marks (one of so many operations has a local event). */
static inline uint64_t measure_rounded(uint64_t count, uint64_t marks)
{
    return (count + marks - 1) / marks * marks;
}

/* The bytes that a test with this size needs in each half of a rank's region (pair.h). */
size_t latency_half(const struct options *options, uint64_t size);
size_t stream_half(const struct options *options, uint64_t size);
uint64_t stream_slots(const struct options *options, uint64_t size);
size_t am_latency_half(uint64_t size);
size_t inject_half(const struct options *options, uint64_t size);
size_t overlap_half(uint64_t size);
size_t atomic_half(const struct options *options);

int latency_put(struct pair *pair, const struct plan *plan);
int latency_signal(struct pair *pair, const struct plan *plan);
int latency_get(struct pair *pair, const struct plan *plan);
/* Does operation, or round trip, number `i`; at the initiator *ns is its time. */
typedef int latency_one(struct pair *pair, const struct plan *plan, void *context, uint64_t i,
                        uint64_t *ns);
/* Measures all of a plan by `one`, and reports; each sample is divided by `operations`. */
int latency_run(struct pair *pair, const struct plan *plan, const char *name, unsigned operations,
                latency_one *one, void *context);
/* Bandwidth and rate. */
int stream_put(struct pair *pair, const struct plan *plan);
int stream_get(struct pair *pair, const struct plan *plan);
/* Active messages, of --kind. */
int am_latency(struct pair *pair, const struct plan *plan);
int am_stream(struct pair *pair, const struct plan *plan);
/* The injection overhead of a size, for every depth. */
int inject(struct pair *pair, uint64_t size);
/* Atomics: the time of one fetch-and-add, the rate of many, and exclusive ors at random places. */
int atomic_latency(struct pair *pair, const struct plan *plan);
int atomic_fetch_rate(struct pair *pair, const struct plan *plan);
int atomic_gups(struct pair *pair, const struct plan *plan);
/* Does one fetch-and-add on the first word of the target, and waits for its local event `id`. */
int atomic_fetch_add_one(struct pair *pair, uint64_t id, uint64_t *before);
/* Puts, or fetch-and-adds, while the target computes. */
int overlap(struct pair *pair, const struct plan *plan);
/* Puts of all pairs for --seconds. */
int share(struct pair *pair, uint64_t size);

#endif
