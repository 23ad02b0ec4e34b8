/*
 * The counters file (counters_abi.h): made at start, written while the daemon runs.
 *
 * Threads: opened and closed by main; counters_write is the progress thread's.
 */
#ifndef PWC_CONTROL_COUNTERS_H
#define PWC_CONTROL_COUNTERS_H

#include <stddef.h>
#include <stdint.h>
#include "counters_abi.h"
#include "engine.h"

#define COUNTERS_PEER_ROWS_MAX 1024u

struct counters {
    struct counters_header *shared;
    size_t size;
    char *path;
};

struct counters_config {
    const char *path;
    uint32_t node, nodes, sessions_max;
    const char *provider;
    uint64_t now;
};

/* What the progress thread counts itself. */
struct counters_totals {
    uint64_t heartbeat, cpu_ns, work, sleeps, commands, quarantined;
};

/* Replaces a stale file of that name. */
int counters_open(struct counters *c, const struct counters_config *config);
void counters_write(struct counters *c, struct engine *engine, uint64_t now,
                    const struct counters_totals *totals);
/* Unmaps and unlinks. */
void counters_close(struct counters *c);

#endif
