/* Owns the memory and the filling of snapshots (snapshot.h). */
#include "daemon/control/threads/snapshot.h"

#include <stdlib.h>

/* One row more than is kept: if it is filled, rows were left out. */
static void *rows(unsigned parts, enum snapshot_part part, size_t count, size_t size)
{
    return parts & part ? calloc(count + 1, size) : NULL;
}

struct snapshot *snapshot_new(unsigned parts, uint32_t share)
{
    struct snapshot *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->parts = parts;
    s->share = share;
    s->clients = rows(parts, SNAPSHOT_CLIENTS, SNAPSHOT_CLIENTS_MAX / share, sizeof(*s->clients));
    s->sessions =
        rows(parts, SNAPSHOT_SESSIONS, SNAPSHOT_SESSIONS_MAX / share, sizeof(*s->sessions));
    s->peers = rows(parts, SNAPSHOT_PEERS, SNAPSHOT_PEERS_MAX / share, sizeof(*s->peers));
    s->regions = rows(parts, SNAPSHOT_REGIONS, SNAPSHOT_REGIONS_MAX / share, sizeof(*s->regions));
    s->ops = rows(parts, SNAPSHOT_OPS, SNAPSHOT_OPS_MAX / share, sizeof(*s->ops));
    s->latencies =
        rows(parts, SNAPSHOT_LATENCIES, SNAPSHOT_LATENCIES_MAX / share, sizeof(*s->latencies));
    s->latency_sum = rows(parts, SNAPSHOT_LATENCY_SUM, 1, sizeof(*s->latency_sum));
    s->latency_rows =
        rows(parts, SNAPSHOT_LATENCY_SUM, SNAPSHOT_LATENCY_ROWS_MAX, sizeof(*s->latency_rows));
    if ((parts & SNAPSHOT_CLIENTS && !s->clients) || (parts & SNAPSHOT_SESSIONS && !s->sessions) ||
        (parts & SNAPSHOT_PEERS && !s->peers) || (parts & SNAPSHOT_REGIONS && !s->regions) ||
        (parts & SNAPSHOT_OPS && !s->ops) || (parts & SNAPSHOT_LATENCIES && !s->latencies) ||
        (parts & SNAPSHOT_LATENCY_SUM && (!s->latency_sum || !s->latency_rows))) {
        snapshot_free(s);
        return NULL;
    }
    return s;
}

void snapshot_free(struct snapshot *s)
{
    if (!s)
        return;
    free(s->clients);
    free(s->sessions);
    free(s->peers);
    free(s->regions);
    free(s->ops);
    free(s->latencies);
    free(s->latency_sum);
    free(s->latency_rows);
    free(s);
}

static int kept(struct snapshot *s, int got, int max)
{
    if (got > max)
        s->truncated = true;
    return got < 0 ? 0 : got > max ? max : got;
}

static void sum_latencies(struct snapshot *s, struct engine *e)
{
    struct engine_latency_view *sum = s->latency_sum, *one = sum + 1;

    *sum = (struct engine_latency_view){0};
    s->latency_row_count = 0;
    for (uint32_t from = 0; engine_view_latencies(e, &from, one, 1) == 1;) {
        struct snapshot_latency *row = &s->latency_rows[s->latency_row_count];

        s->latency_row_count += s->latency_row_count < SNAPSHOT_LATENCY_ROWS_MAX;
        row->node = one->node;
        for (uint32_t i = 0; i < ENGINE_LATENCIES; i++) {
            row->count[i] = histogram_count(&one->steps[i]);
            row->sum_ns[i] = one->steps[i].sum;
            histogram_merge(&sum->steps[i], &one->steps[i]);
        }
    }
}

void snapshot_fill(struct snapshot *s, struct engine *e)
{
    int share = (int)s->share, max;
    uint32_t from;

    if (s->clients) {
        from = 0;
        max = SNAPSHOT_CLIENTS_MAX / share;
        s->client_count = kept(s, engine_view_clients(e, &from, s->clients, max + 1), max);
    }
    if (s->sessions) {
        from = 0;
        max = SNAPSHOT_SESSIONS_MAX / share;
        s->session_count = kept(s, engine_view_sessions(e, &from, s->sessions, max + 1), max);
    }
    if (s->peers) {
        from = 0;
        max = SNAPSHOT_PEERS_MAX / share;
        s->peer_count = kept(s, engine_view_peers(e, &from, s->peers, max + 1), max);
    }
    if (s->regions) {
        from = 0;
        max = SNAPSHOT_REGIONS_MAX / share;
        s->region_count = kept(s, engine_view_regions(e, &from, s->regions, max + 1), max);
    }
    if (s->ops) {
        from = 0;
        max = SNAPSHOT_OPS_MAX / share;
        s->op_count = kept(s, engine_view_ops(e, &from, s->ops, max + 1), max);
    }
    if (s->latencies) {
        from = 0;
        max = SNAPSHOT_LATENCIES_MAX / share;
        s->latency_count = kept(s, engine_view_latencies(e, &from, s->latencies, max + 1), max);
    }
    if (s->latency_sum)
        sum_latencies(s, e);
}

void snapshot_keep(struct snapshot *s, snapshot_shows *shows, void *context)
{
    int clients = 0, sessions = 0, regions = 0, ops = 0;

    for (int i = 0; i < s->client_count; i++)
        if (shows(context, s->clients[i].client))
            s->clients[clients++] = s->clients[i];
    for (int i = 0; i < s->session_count; i++)
        if (shows(context, s->sessions[i].client))
            s->sessions[sessions++] = s->sessions[i];
    for (int i = 0; i < s->region_count; i++)
        if (shows(context, s->regions[i].client))
            s->regions[regions++] = s->regions[i];
    for (int i = 0; i < s->op_count; i++)
        if (shows(context, s->ops[i].client))
            s->ops[ops++] = s->ops[i];
    s->client_count = clients;
    s->session_count = sessions;
    s->region_count = regions;
    s->op_count = ops;
}
