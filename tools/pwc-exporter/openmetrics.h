/*
 * Text of metrics: families and samples, as OpenMetrics 1.0 or as the older Prometheus text format.
 *
 *     # TYPE pwcd_peer_records counter
 *     # HELP pwcd_peer_records Records that ...
 *     pwcd_peer_records_total{peer="1",direction="out"} 17
 *     # EOF
 *
 * The older one names a counter's family with its _total, knows no units, and has no end.
 *
 * Thread: any; a writer is its owner's.
 */
#ifndef PWC_EXPORTER_OPENMETRICS_H
#define PWC_EXPORTER_OPENMETRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum openmetrics_type {
    OPENMETRICS_GAUGE = 1,
    OPENMETRICS_COUNTER,
    OPENMETRICS_INFO, /* labels of the value 1 */
    OPENMETRICS_HISTOGRAM,
};

struct openmetrics_family {
    const char *name; /* without _total, _info; with its unit */
    enum openmetrics_type type;
    const char *unit; /* "seconds", "bytes", or NULL */
    const char *help;
};

struct openmetrics_label {
    const char *name;  /* NULL: the end of a list */
    const char *value; /* any bytes */
};

struct openmetrics {
    bool plain;  /* the older format */
    bool failed; /* no memory: what is written is not whole */
    char *text;  /* the owner's to free */
    size_t length, room;
};

void openmetrics_family(struct openmetrics *to, const struct openmetrics_family *family);
/* `labels` NULL: none. */
void openmetrics_sample(struct openmetrics *to, const struct openmetrics_family *family,
                        const struct openmetrics_label *labels, uint64_t value);
/* A value in nanoseconds, of a family in seconds. */
void openmetrics_seconds(struct openmetrics *to, const struct openmetrics_family *family,
                         const struct openmetrics_label *labels, uint64_t ns);

/* Of a histogram of durations: `counts` of those up to each bound, not summed up, and behind the
 * last bound one more count, of those beyond. */
struct openmetrics_buckets {
    const uint64_t *bounds_ns;
    const uint64_t *counts;
    size_t bounds;
    uint64_t sum_ns;
};
void openmetrics_histogram(struct openmetrics *to, const struct openmetrics_family *family,
                           const struct openmetrics_label *labels,
                           const struct openmetrics_buckets *buckets);
void openmetrics_end(struct openmetrics *to);

#endif
