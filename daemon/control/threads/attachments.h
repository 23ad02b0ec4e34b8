/*
 * What the progress thread must know of clients' mappings beside the engine: how to wake the client
 * of a session, and whose memory has faulted. It is the engine's `struct engine_host`.
 *
 * Thread: the progress thread owns all of it. Mappings and descriptors are the control thread's,
 * which keeps them until they have left this table, after the engine's CLOSED notice.
 */
#ifndef PWC_CONTROL_ATTACHMENTS_H
#define PWC_CONTROL_ATTACHMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include "daemon/engine/engine.h"

struct session_shared;

struct attached_session {
    struct session_shared *shared; /* NULL: free */
    uint32_t client;
    int wake;  /* our end of the client's socket */
    int range; /* of sigbus.h; -1: none, or reported */
};

struct attached_segment {
    const void *base; /* NULL: free */
    uint32_t client;
    int range;
};

struct attachments {
    uint32_t sessions_max, segments_max, clients_max;
    struct attached_session *sessions;
    struct attached_segment *segments;
    bool *faulted; /* by client: not asked for yet */
    uint32_t faulted_count;
    uint64_t faults_seen;
};

int attachments_open(struct attachments *a, const struct engine_config *config);
void attachments_close(struct attachments *a);

void attachments_add_session(struct attachments *a, uint32_t session,
                             const struct attached_session *s);
void attachments_add_segment(struct attachments *a, uint32_t segment,
                             const struct attached_segment *s);
/* Nothing where another mapping has taken the handle meanwhile. */
void attachments_drop_session(struct attachments *a, uint32_t session, const void *base);
void attachments_drop_segment(struct attachments *a, uint32_t segment, const void *base);
/* A client handle is taken anew. */
void attachments_drop_client(struct attachments *a, uint32_t client);

/* The engine's view of this. */
void attachments_host(struct attachments *a, struct engine_host *out);

#endif
