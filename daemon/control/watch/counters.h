/*
 * Makes the counters file (counters_abi.h) at start, and writes it while the daemon runs.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_COUNTERS_H
#define PWC_CONTROL_COUNTERS_H

#include <stddef.h>
#include <stdint.h>
#include "proto/counters_abi.h"
#include "daemon/engine/engine.h"

#define COUNTERS_PEER_ROWS_MAX 1024u

struct counters {
    struct counters_header *shared;
    size_t size;
    uint32_t engines;
    char *path;
};

struct counters_config {
    const char *path;
    uint32_t node, nodes, engines, sessions_max;
    const char *provider;
    uint64_t now, day; /* the start, by CLOCK_MONOTONIC and by the time of day */
};

/* The counters of a progress thread itself. */
struct counters_totals {
    uint64_t heartbeat, cpu_ns, work, sleeps, commands, quarantined, refused;
};

/* One engine's share of the sums of all engines: its counts when the file was written last. */
struct counters_share {
    uint32_t engine;
    struct counters_totals written;
    struct engine_totals_view engine_written;
    uint64_t sessions, clients;
};

/* Fills in the traffic of a context's pairs, which the engine does not know. */
typedef void counters_pairs(void *context, uint32_t session, struct counters_session *row);

/* The sources of one engine's rows. */
struct counters_source {
    const struct engine *engine;
    const struct counters_totals *totals;
    uint64_t clients; /* now */
    counters_pairs *pairs;
    void *context;
};

/* Makes the file; a stale file with its name is replaced. */
int counters_open(struct counters *c, const struct counters_config *config);
void counters_write(struct counters *c, struct counters_share *share,
                    const struct counters_source *from, uint64_t now);
/* Unmaps and unlinks the file. */
void counters_close(struct counters *c);

#endif
