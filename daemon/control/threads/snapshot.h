/*
 * A snapshot of the engine and the progress thread, for inspection.
 *
 * Thread: the control thread allocates and frees it, the progress thread fills it in.
 */
#ifndef PWC_CONTROL_SNAPSHOT_H
#define PWC_CONTROL_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>
#include "daemon/engine/engine.h"

/* The parts to fill in. */
enum snapshot_part {
    SNAPSHOT_NONE = 0,
    SNAPSHOT_CLIENTS = 1 << 0,
    SNAPSHOT_SESSIONS = 1 << 1,
    SNAPSHOT_PEERS = 1 << 2,
    SNAPSHOT_REGIONS = 1 << 3,
    SNAPSHOT_OPS = 1 << 4,
    SNAPSHOT_LATENCIES = 1 << 5,
    SNAPSHOT_LATENCY_SUM = 1 << 6, /* of all peers, and each one's sums */
};

/* The most rows of a part: the answer has to fit a frame. Rows beyond are counted as truncated. */
#define SNAPSHOT_CLIENTS_MAX  1024
#define SNAPSHOT_SESSIONS_MAX 1024
#define SNAPSHOT_PEERS_MAX    1024
#define SNAPSHOT_REGIONS_MAX  2048
#define SNAPSHOT_OPS_MAX      2048
/* Rows of latencies are long: copying all takes the progress thread some 0.2 ms. */
#define SNAPSHOT_LATENCIES_MAX    256
#define SNAPSHOT_LATENCY_ROWS_MAX 1024

/* The times of a peer's operations, summed by step. */
struct snapshot_latency {
    uint32_t node;
    uint64_t count[ENGINE_LATENCIES], sum_ns[ENGINE_LATENCIES];
};

struct snapshot {
    unsigned parts;
    uint32_t share;
    bool truncated;
    struct engine_client_view *clients;
    struct engine_session_view *sessions;
    struct engine_peer_view *peers;
    struct engine_region_view *regions;
    struct engine_op_view *ops;
    struct engine_latency_view *latencies;
    struct engine_latency_view *latency_sum; /* and room for one peer's */
    struct snapshot_latency *latency_rows;
    int client_count, session_count, peer_count, region_count, op_count, latency_count,
        latency_row_count;
};

/* Makes one of `share` snapshots of one answer: each gets its part of the rows. */
struct snapshot *snapshot_new(unsigned parts, uint32_t share);
void snapshot_free(struct snapshot *s);
/* Progress thread. */
void snapshot_fill(struct snapshot *s, struct engine *engine);
/* Keeps only the rows of clients for which `shows` is true. Rows of peers belong to no client, and
 * stay. Control thread. */
typedef bool snapshot_shows(void *context, uint32_t client);
void snapshot_keep(struct snapshot *s, snapshot_shows *shows, void *context);

#endif
