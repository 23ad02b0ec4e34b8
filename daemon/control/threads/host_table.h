/*
 * The progress thread's table of clients' mappings beside the engine: how to wake the client of a
 * session, which clients' memory and which areas of teams have faulted, and how many sessions are
 * apart, in another scheduler group than this daemon (clients/sched_group.h). The engine uses it
 * through `struct engine_host`.
 *
 * Thread: the progress thread owns all of it. Mappings and descriptors belong to the control
 * thread, which keeps them until they have left this table, after the engine's CLOSED notice.
 */
#ifndef PWC_CONTROL_HOST_TABLE_H
#define PWC_CONTROL_HOST_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include "daemon/control/clients/sched_group.h"
#include "daemon/engine/engine.h"

struct session_shared;

struct host_session {
    struct session_shared *shared; /* NULL: free */
    uint32_t client;
    int wake;                     /* our end of the socket that wakes the client */
    int range;                    /* number of sigbus.h; -1: none, or its fault is reported */
    enum sched_relation relation; /* of its client to this daemon */
};

struct host_segment {
    const void *base; /* NULL: free */
    uint32_t client;
    int range;
};

struct host_table {
    uint32_t sessions_max, segments_max, clients_max;
    struct host_session *sessions;
    struct host_segment *segments;
    bool *faulted; /* by client: its memory has faulted, and the engine has not asked yet */
    uint32_t faulted_count;
    uint64_t faults_seen;
    int area_ranges[ENGINE_TEAMS]; /* by place of the team: its area's range in sigbus.h, or -1; a
                                      closed team's is stale, and not looked at */
    bool areas_due;                /* areas may have faulted, and the engine has not asked yet */
    uint32_t sessions_beside, sessions_apart;
};

int host_table_open(struct host_table *a, const struct engine_config *config);
void host_table_close(struct host_table *a);

/* Shows the client whether it is apart (session_shared.apart). */
void host_table_add_session(struct host_table *a, uint32_t session, const struct host_session *s);
void host_table_add_segment(struct host_table *a, uint32_t segment, const struct host_segment *s);
/* Adds the area of a team that has just been opened. */
void host_table_add_area(struct host_table *a, uint32_t team, int range);
/* Drops the entry, except where another mapping has the handle by now. */
void host_table_drop_session(struct host_table *a, uint32_t session, const void *base);
void host_table_drop_segment(struct host_table *a, uint32_t segment, const void *base);
/* Forgets the faults of an earlier client, also those to come in mappings that the control thread
 * has not taken back yet, because a new client has this handle. */
void host_table_drop_client(struct host_table *a, uint32_t client);

/* Whether sessions are apart, and none is known to be beside the daemon, in its group. */
bool host_table_is_apart(const struct host_table *a);

/* Fills in the functions that the engine calls. */
void host_table_host(struct host_table *a, struct engine_host *out);

#endif
