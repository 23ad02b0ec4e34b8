/*
 * The counters file (counters_abi.h): made at start, written while the daemon runs.
 *
 * Several progress threads write: each rows of its own, and to what is counted for all it adds what
 * its own share has grown by.
 *
 * Threads: opened and closed by main; counters_write is each progress thread's, with its share.
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
    uint64_t now;
};

/* What a progress thread counts itself. */
struct counters_totals {
    uint64_t heartbeat, cpu_ns, work, sleeps, commands, quarantined, refused;
};

/* What one progress thread has told so far. */
struct counters_share {
    uint32_t engine;
    struct counters_totals told;
    struct engine_totals_view engine_told;
    uint64_t sessions, clients;
};

/* Replaces a stale file of that name. */
int counters_open(struct counters *c, const struct counters_config *config);
void counters_write(struct counters *c, struct counters_share *share, struct engine *engine,
                    uint64_t now, const struct counters_totals *totals);
/* Unmaps and unlinks. */
void counters_close(struct counters *c);

#endif
