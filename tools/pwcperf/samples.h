/* Durations of single operations, and their summary. */
#ifndef PWCPERF_SAMPLES_H
#define PWCPERF_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

/* When the room is full, every second sample is dropped, and from then on only every second new one
 * is taken; the next time every fourth, and so on. */
struct samples {
    uint64_t *ns;
    size_t count, room;
    uint64_t seen, stride;
};

/* The result of one size of one test; ranks exchange it, and rank 0 prints it. */
struct result {
    uint64_t size, iters;
    double min_us, p50_us, p99_us, mean_us;
    double rate_mps;     /* million operations a second */
    double bw_mbps;      /* 10^6 bytes a second */
    uint64_t depth;      /* inject only: operations of a batch */
    double loss_percent; /* overlap only: the part of the target's computing that was lost */
    uint64_t eagain;     /* inject only: refused submissions, made again */
};

int samples_open(struct samples *samples);
void samples_close(struct samples *samples);
void samples_clear(struct samples *samples);
void samples_add(struct samples *samples, uint64_t ns);
/* Fills in the times of one operation: a sample is the time of `operations` (2: a round trip). */
void samples_summary(struct samples *samples, unsigned operations, struct result *out);

#endif
