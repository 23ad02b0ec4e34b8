/* The output of pwcperf: a table for people, or one JSON object in each line; and the progress of a
 * long run. */
#ifndef PWCPERF_REPORT_H
#define PWCPERF_REPORT_H

#include "tools/pwcperf/samples.h"
#include "tools/pwcperf/world.h"

/* Collective: joins the results of all pairs (initiators give theirs, others NULL), and rank 0
 * prints. With several pairs the times are the slowest pair's, and rates are added. */
int report_result(struct world *world, const struct result *mine);

/* The progress of a run, printed on a terminal only, at most four times a second. */
struct progress {
    const char *what;
    uint64_t total, shown_ns;
    int on;
};
void progress_start(struct progress *progress, const struct world *world, const char *what,
                    uint64_t total);
void progress_at(struct progress *progress, uint64_t done);
void progress_end(struct progress *progress);

#endif
