/*
 * Reads what there is to tell: the counters, which the progress threads have written down
 * (counters.h), and what control knows. Nobody is asked or waited for here.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_METRICS_READ_H
#define PWC_CONTROL_METRICS_READ_H

#include "daemon/control/watch/metrics.h"
#include "daemon/control/threads/snapshot.h"

struct control;

/* `responding`: by engine. 0 or -ENOMEM. */
int metrics_read(struct metrics *metrics, const struct control *control, const bool *responding);
/* What an engine has told of its peers, into their rows. 0 or -ENOMEM. */
int metrics_add_latencies(struct metrics *metrics, const struct snapshot_latency *rows, int count);
void metrics_free(struct metrics *metrics);

#endif
