/*
 * Calls from the control thread into an engine: each is carried out on the progress thread and
 * comes back to the control thread with its result.
 *
 * Commands and notices come back in the order in which the progress thread ran or made them. So by
 * the time a handle has a new owner, the control thread knows that the earlier owner is gone.
 */
#ifndef PWC_CONTROL_CALL_H
#define PWC_CONTROL_CALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "daemon/control/threads/host_table.h"
#include "daemon/control/threads/command.h"
#include "daemon/engine/engine.h"
#include "daemon/control/threads/progress.h"

enum call_kind {
    CALL_CLIENT_OPEN = 1,
    CALL_CLIENT_CLOSE,
    CALL_SESSION_OPEN,
    CALL_SESSION_CLOSE,
    CALL_SEGMENT_OPEN,
    CALL_SEGMENT_CLOSE,
    CALL_REGION_OPEN,
    CALL_REGION_CLOSE,
    CALL_BIND,
    CALL_UNBIND,
    CALL_NEIGHBOUR, /* asks which region a sibling's bind leads to, in the engine that owns the
                     * region */
    CALL_OFFER,
    CALL_PEER_UP,
    CALL_PEER_DOWN,
    CALL_PEER_LOST,
    CALL_PING,  /* bytes: in, out */
    CALL_PONG,  /* bytes: in */
    CALL_ECHO,  /* does nothing: its return shows that the thread is not stuck */
    CALL_TRACE, /* begin to record into a ring, or end it */
    CALL_TEAM_OPEN,
    CALL_TEAM_LEAVE,
    CALL_TEAM_ABANDON,
    CALL_TEAM_BREAK,
    CALL_PROGRAM_LOAD,
    CALL_PROGRAM_UNLOAD,
    CALL_OFFLOAD_CREATE,
    CALL_OFFLOAD_DESTROY,
    CALL_OFFLOAD_ENABLE,
    CALL_OFFLOAD_DISABLE,
    CALL_DETACH, /* take a closed session or segment out of the host table */
};

struct call_session {
    uint32_t client, context;
    uint32_t generation; /* out */
    void *base;
    struct session_sizes sizes;
    uint32_t mark;
    int wake;                     /* our end of the socket that wakes the client */
    int range;                    /* of sigbus.h, or -1 */
    enum sched_relation relation; /* of the client */
};

struct call_segment {
    uint32_t client, segment;
    uint32_t generation; /* out */
    void *base;
    uint64_t length;
    int range;
};

struct call_region {
    uint32_t client, segment;
    uint64_t offset, length;
    uint32_t rights;
    uint32_t slot, generation;
    uint64_t cookie;
    struct engine_key key; /* out */
};

struct call_bind {
    uint32_t session, peer, remote;
    uint64_t endpoint;
    bool has_key;
    struct engine_key key;
    uint64_t cookie;
};

struct call_neighbour {
    uint32_t origin; /* the sibling */
    uint32_t session, remote, rights;
    uint64_t length;
    struct engine_way way;
    struct engine_neighbour found; /* out */
};

struct call_peer {
    uint32_t number;
    struct engine_offer offer; /* in or out */
    uint64_t bytes;
};

struct call_team_open {
    struct engine_team_info info; /* its arrays belong to the call's owner */
    void *area;
    int range; /* of sigbus.h */
};

struct call_team {
    uint32_t handle;
    uint32_t session; /* the session that leaves */
};

struct call_program {
    uint32_t client;
    uint32_t program;                  /* the program to unload */
    const struct handler_image *image; /* the program to load; belongs to the call's owner */
    uint32_t bytes;
};

struct call_offload {
    uint32_t session;
    uint32_t offload;                /* not used by CALL_OFFLOAD_CREATE */
    struct engine_offload_info info; /* the offload to create; its array of targets belongs to the
                                      * call's owner */
    uint64_t cookie;
};

struct call_detach {
    bool segment;
    uint32_t handle;
    void *base;
};

/* The objects that calls use besides the engine, on the progress thread. Outlives all calls. */
struct call_target {
    struct host_table *host_table;
    struct fabric *fabric;
    uint32_t number;         /* of the engine */
    _Atomic uint64_t *calls; /* how many calls were carried out so far */
};

/* The control thread owns a call, and lends it to the progress thread until `done`. */
struct call {
    struct command command; /* first */
    const struct call_target *target;
    enum call_kind kind;
    int result;    /* the value that the engine returned */
    bool embedded; /* part of another struct, which frees it */
    /* Called on the control thread; a call that is not embedded is freed afterwards. May be NULL.
     */
    void (*done)(struct call *call);
    void (*then)(struct call *call); /* a callback that the owner's `done` calls */
    void *owner;
    uint64_t cookie; /* the owner's */
    union {
        struct engine_client_info client;
        uint32_t handle; /* of a client or session */
        struct call_session session;
        struct call_segment segment;
        struct call_region region;
        struct call_bind bind;
        struct call_neighbour neighbour;
        struct call_peer peer;
        struct call_team_open team_open;
        struct call_team team;
        struct call_program program;
        struct call_offload offload;
        struct call_detach detach;
        struct trace_ring *trace;
    };
};

/* Initializes a call that its owner embeds, where there must always be memory for the call. `done`
 * may free the owner. */
void call_init(struct call *call, const struct call_target *target, enum call_kind kind,
               void *owner, void (*done)(struct call *call));
/* Makes a call; all other fields are zero. NULL without memory. */
struct call *call_new(const struct call_target *target, enum call_kind kind, void *owner,
                      void (*done)(struct call *call));
/* Posts a call to the progress thread. Where `progress` is NULL, the daemon ends, and the call is
 * dropped. */
void call_post(struct progress *progress, struct call *call);

#endif
