/*
 * The metrics of a daemon: which there are (docs/metrics.md has the same table), and how what was
 * read (metrics_read.h) is written down.
 *
 * Sums of the node and a row for each peer are for whoever asks; rows of clients, which tell what
 * single users do, are only there where they were read (key metrics-clients).
 *
 * Thread: any; pure.
 */
#ifndef PWC_CONTROL_METRICS_H
#define PWC_CONTROL_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "daemon/engine/engine.h"
#include "daemon/control/watch/openmetrics.h"

struct metrics_node {
    uint64_t started_ns; /* of the time of day */
    uint64_t nodes, clients, contexts;
    uint64_t quarantined, refused;
    uint64_t segments, regions, memory;
    uint64_t put_ops, get_ops, am_ops, put_bytes, get_bytes, am_bytes;
    uint64_t errors, delivered, spilled;
    uint64_t in_flight, spill_bytes, replies_expected, replies_owed;
    uint64_t submit_used, local_used, remote_used, reply_used;
};

struct metrics_engine {
    uint64_t engine, responding, clients;
    uint64_t cpu_ns, rounds, work, sleeps, commands;
};

/* All ledgers with a node. */
struct metrics_peer {
    uint64_t node, up, wanted;
    uint64_t tx_bytes, rx_bytes, tx_credit, tx_sent, rx_consumed;
    uint64_t runs_out, runs_in, records_out, records_in, starved, grown, awaited;
    uint64_t timed[ENGINE_LATENCIES], timed_ns[ENGINE_LATENCIES]; /* by step */
};

/* Whose row it is. Texts outlive the rendering. */
struct metrics_owner {
    const char *job;
    uint32_t engine, client, rank, context, uid;
};

struct metrics_context {
    struct metrics_owner owner;
    uint64_t put_ops, get_ops, am_ops, put_bytes, get_bytes, am_bytes;
    uint64_t direct_put_ops, direct_get_ops, direct_am_ops;
    uint64_t direct_put_bytes, direct_get_bytes, direct_am_bytes;
    uint64_t errors, delivered, spilled, in_flight, spill_bytes;
    uint64_t submit_used, local_used, remote_used, reply_used;
};

struct metrics_client {
    struct metrics_owner owner;
    uint64_t memory;
};

struct metrics {
    const char *version, *provider;
    uint32_t node_number;
    struct metrics_node node;
    struct engine_latency_view latency; /* of all peers */
    struct metrics_engine *engines;
    struct metrics_peer *peers;
    struct metrics_context *contexts;
    struct metrics_client *clients;
    size_t engine_count, peer_count, context_count, client_count;
    bool has_clients; /* rows of clients are for those who ask */
};

void metrics_render(const struct metrics *metrics, struct openmetrics *to);

#endif
