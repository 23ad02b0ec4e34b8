/* A trace as Chrome trace events (JSON), which Perfetto and chrome://tracing open. */
#ifndef PWCCTL_TRACE_EVENTS_H
#define PWCCTL_TRACE_EVENTS_H

#include <jansson.h>
#include <stdio.h>
#include "tools/pwcctl/trace/model.h"

/* Writes the trace. `clients`: for each source the daemon's document "clients", which names user,
 * job and rank of a client, or NULL. `real_ns`: CLOCK_REALTIME - CLOCK_MONOTONIC. 0, or -EIO. */
int trace_events_write(const struct trace_model *m, const struct trace_source *sources,
                       json_t *const *clients, int64_t real_ns, uint64_t lost, FILE *to);

#endif
