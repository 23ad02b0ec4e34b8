/*
 * Text of metrics: families and samples, as OpenMetrics 1.0 or as the older Prometheus text format.
 *
 *     # TYPE pwcd_peer_records counter
 *     # HELP pwcd_peer_records Records that ...
 *     pwcd_peer_records_total{peer="1",direction="out"} 17
 *     # EOF
 *
 * The older format names a counter's family with its _total, and has neither units nor "# EOF".
 *
 * Thread: any; a writer is its owner's.
 */
#ifndef PWC_EXPORTER_OPENMETRICS_H
#define PWC_EXPORTER_OPENMETRICS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum openmetrics_type {
    OPENMETRICS_GAUGE = 1,
    OPENMETRICS_COUNTER,
    OPENMETRICS_INFO, /* the value is always 1; the labels carry the information */
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
    FILE *to;
    bool plain; /* the older format */
};

void openmetrics_family(const struct openmetrics *to, const struct openmetrics_family *family);
/* Writes a sample; `labels` NULL: none. Families in seconds take values in nanoseconds. */
void openmetrics_sample(const struct openmetrics *to, const struct openmetrics_family *family,
                        const struct openmetrics_label *labels, uint64_t value);
/* Writes a bucket of a histogram of durations: the number of those up to `ns` (UINT64_MAX: any
 * time). */
void openmetrics_bucket(const struct openmetrics *to, const struct openmetrics_family *family,
                        const struct openmetrics_label *labels, uint64_t ns, uint64_t count);
/* Writes the sum and the number of the durations, after the last bucket (that of any time). */
void openmetrics_sum(const struct openmetrics *to, const struct openmetrics_family *family,
                     const struct openmetrics_label *labels, uint64_t sum_ns, uint64_t count);
void openmetrics_end(const struct openmetrics *to);

#endif
