/* The command line of pwcperf. */
#ifndef PWCPERF_OPTIONS_H
#define PWCPERF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PWCPERF_SIZES_MAX  64u
#define PWCPERF_DEPTHS_MAX 64u

enum perf_test {
    PUT_LAT,
    PUT_BW,
    PUT_RATE,
    SIGNAL_LAT, /* puts with signal (pwc/signal.h) */
    GET_LAT,
    GET_BW,
    AM_LAT,
    AM_BW,
    INJECT,
    OVERLAP,
    SHARE,
    FETCH_LAT, /* FETCH_LAT, FETCH_RATE and GUPS: atomics (pwc/atomic.h) */
    FETCH_RATE,
    GUPS,
    STRESS,
};

/* The operation that a test submits. */
enum perf_kind {
    KIND_PUT,
    KIND_SHORT, /* active messages (pwc/am.h) */
    KIND_MEDIUM,
    KIND_LONG,
    KIND_FETCH, /* a fetch-and-add */
};

struct options {
    enum perf_test test;
    const char *test_name;
    uint64_t sizes[PWCPERF_SIZES_MAX];
    size_t size_count;
    bool sizes_given;    /* by --size */
    enum perf_kind kind; /* of am_lat, am_bw, inject and overlap */
    const char *kind_name;
    const char *protocol_name;           /* "auto": the daemon's choice */
    unsigned protocol;                   /* its flag of put (pwc/am.h) */
    uint64_t depths[PWCPERF_DEPTHS_MAX]; /* inject: operations of a batch */
    size_t depth_count;
    uint64_t iters;  /* 0: by size */
    uint64_t warmup; /* UINT64_MAX: by size */
    uint64_t window; /* operations in flight; 0: by test and size */
    uint64_t slots;  /* the most slots that a stream uses; 0: the test decides */
    uint64_t ops;    /* stress: of all ranks together */
    uint64_t seed;
    uint64_t seconds;   /* share: how long it counts */
    uint32_t timeout_s; /* a run that has no event for so long has failed */
    bool json;
    bool check;
    bool pin;
    bool no_event; /* put_bw, put_rate: PWC_NO_RCE */
    bool both;     /* am_bw: both ways at once */
    bool contend;  /* fetch_lat, fetch_rate: the target adds to the same word */
};

/* Returns whether the test submits operations of the given `kind`. */
static inline bool options_has_kind(const struct options *options)
{
    return options->test == AM_LAT || options->test == AM_BW || options->test == INJECT ||
           options->test == OVERLAP;
}

/* Returns how many operations of that size are in flight. */
uint64_t options_window(const struct options *options, uint64_t size);

/* 0: run; 1: help or the version was printed; -EINVAL: the command line is wrong, and stderr has
 * the reason. */
int options_parse(struct options *out, int argc, char **argv);

#endif
