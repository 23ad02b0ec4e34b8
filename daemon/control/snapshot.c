/* Owns the memory and the filling of snapshots (snapshot.h). */
#include "snapshot.h"

#include <stdlib.h>

/* Room for one row more than is kept tells that there are more. */
static void *rows(unsigned parts, enum snapshot_part part, size_t count, size_t size)
{
    return parts & part ? calloc(count + 1, size) : NULL;
}

struct snapshot *snapshot_new(unsigned parts)
{
    struct snapshot *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->parts = parts;
    s->clients = rows(parts, SNAPSHOT_CLIENTS, SNAPSHOT_CLIENTS_MAX, sizeof(*s->clients));
    s->sessions = rows(parts, SNAPSHOT_SESSIONS, SNAPSHOT_SESSIONS_MAX, sizeof(*s->sessions));
    s->peers = rows(parts, SNAPSHOT_PEERS, SNAPSHOT_PEERS_MAX, sizeof(*s->peers));
    s->regions = rows(parts, SNAPSHOT_REGIONS, SNAPSHOT_REGIONS_MAX, sizeof(*s->regions));
    s->ops = rows(parts, SNAPSHOT_OPS, SNAPSHOT_OPS_MAX, sizeof(*s->ops));
    if ((parts & SNAPSHOT_CLIENTS && !s->clients) || (parts & SNAPSHOT_SESSIONS && !s->sessions) ||
        (parts & SNAPSHOT_PEERS && !s->peers) || (parts & SNAPSHOT_REGIONS && !s->regions) ||
        (parts & SNAPSHOT_OPS && !s->ops)) {
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
    free(s);
}

static int kept(struct snapshot *s, int got, int max)
{
    if (got > max)
        s->truncated = true;
    return got < 0 ? 0 : got > max ? max : got;
}

void snapshot_fill(struct snapshot *s, struct engine *engine)
{
    uint32_t from;

    if (s->clients) {
        from = 0;
        s->client_count =
            kept(s, engine_view_clients(engine, &from, s->clients, SNAPSHOT_CLIENTS_MAX + 1),
                 SNAPSHOT_CLIENTS_MAX);
    }
    if (s->sessions) {
        from = 0;
        s->session_count =
            kept(s, engine_view_sessions(engine, &from, s->sessions, SNAPSHOT_SESSIONS_MAX + 1),
                 SNAPSHOT_SESSIONS_MAX);
    }
    if (s->peers) {
        from = 0;
        s->peer_count = kept(s, engine_view_peers(engine, &from, s->peers, SNAPSHOT_PEERS_MAX + 1),
                             SNAPSHOT_PEERS_MAX);
    }
    if (s->regions) {
        from = 0;
        s->region_count =
            kept(s, engine_view_regions(engine, &from, s->regions, SNAPSHOT_REGIONS_MAX + 1),
                 SNAPSHOT_REGIONS_MAX);
    }
    if (s->ops) {
        from = 0;
        s->op_count =
            kept(s, engine_view_ops(engine, &from, s->ops, SNAPSHOT_OPS_MAX + 1), SNAPSHOT_OPS_MAX);
    }
}
