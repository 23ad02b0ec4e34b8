/*
 * Clients: their sessions, segments and regions, and the grants of regions to peers.
 *
 * Arena types hold indices and offsets only and are changed through arena_set* (arena.h). Private
 * types die with the process. Thread: the progress thread owns all of it.
 */
#ifndef PWC_ENGINE_CLIENTS_H
#define PWC_ENGINE_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>
#include "daemon/fabric/fabric.h"
#include "daemon/engine/state/queue.h"
#include "proto/session_abi.h"
#include "shm_ring/ring.h"

/* ---- in the arena ---------------------------------------------------------------------------- */

enum client_state {
    CLIENT_FREE = 0,
    CLIENT_LIVE = 1,
    CLIENT_CLOSING = 2,
};

struct client {
    uint32_t state;
    uint32_t uid;
    uint32_t pid;
    uint32_t rank;
    uint32_t size;
    uint32_t quarantine; /* enum quarantine_reason */
    uint32_t grants;     /* grants of its regions; held.h counts grants, flows, remotes, inflows */
    uint32_t flows;      /* of its contexts */
    uint32_t remotes;    /* remotes that name flows of its contexts */
    uint32_t inflows;    /* towards its contexts */
    uint32_t offloads;   /* of its contexts */
    uint32_t gets;       /* of its offloads' handlers: struct handler_get */
    char job[64];
};

enum session_life {
    SESSION_FREE = 0,
    SESSION_OPEN = 1,
    SESSION_CLOSING = 2,
};

#define SPILL_SHIFT 7u

struct session {
    uint32_t state; /* enum session_life */
    uint32_t client;
    uint32_t context;
    struct session_sizes sizes;
    uint32_t mark;         /* a number of the caller's, which engine_session_find returns */
    uint32_t generation;   /* ENGINE_GENERATIONS */
    uint32_t first_flow;   /* list of this context's flows */
    uint32_t first_inflow; /* list of the inflows that end here */
    uint32_t in_order;     /* 1: the client itself has closed the context */
    uint32_t ends_due;     /* reports that are due about the peers of its flows and inflows */
    uint32_t replies_owed; /* the sum of `owed` of its inflows */
    uint64_t ended_peers;  /* bits of peers whose end was reported, or is due: origin_bit */
    uint64_t submit_head;
    uint64_t answer_head;
    uint64_t local_tail;
    uint64_t remote_tail;
    uint64_t reply_tail;
    uint64_t reserved;       /* bytes of local event space held by operations in flight */
    uint64_t reply_reserved; /* bytes of reply event space held by requests not yet answered */
    uint64_t reply_released; /* bytes of reply_reserved that were given back without an event */
    uint64_t submitted;
    uint64_t ended;
    uint64_t uncounted; /* entries in `ended` that session_counts leaves out */
    uint64_t failed;    /* failed operations among those that session_counts counts */
    uint64_t arrived;   /* operations of peers that have changed memory here: session_counts */
    uint64_t released;
    uint64_t delivered; /* remote events, spilled ones included */
    uint64_t spill_bytes;
    struct queue spill; /* remote events that found the ring full, in order */
};

enum segment_state {
    SEGMENT_FREE = 0,
    SEGMENT_OPEN = 1,
    SEGMENT_CLOSING = 2,
};

struct segment {
    uint32_t state;
    uint32_t client;
    uint64_t length;
    uint32_t regions;
    uint32_t generation; /* ENGINE_GENERATIONS */
};

enum region_state {
    REGION_FREE = 0,
    REGION_OPEN = 1,
    REGION_REVOKING = 2,
};

struct region {
    uint32_t state;
    uint32_t client;
    uint32_t segment;
    uint32_t rights;
    uint64_t offset;
    uint64_t length;
    uint64_t cookie;
    uint32_t generation;
    uint32_t first_grant;
    uint32_t offloads; /* windows of offloads that lie in it: it can't be closed while there are
                        * any */
    uint32_t packet;   /* puts arrive in packets of this size, for handlers; 0: puts are as usual */
    uint32_t offload;  /* if `packet`: the entry whose handlers run; NONE: the offload has gone */
    uint32_t grants;   /* length of the list */
    uint32_t ways;     /* if `packet`: enum region_ways, reported to each peer that has bound it */
    uint8_t secret[16];
};

/* A peer that has resolved a region's key. */
struct grant {
    uint32_t region; /* NONE: free */
    uint32_t peer;
    uint32_t next;
    uint32_t asked; /* REVOKE is on its way */
};

/* ---- private --------------------------------------------------------------------------------- */

/* The counter of its session that an operation is counted in. */
enum op_counter {
    OP_COUNT_OTHER = 0, /* shown nowhere */
    OP_COUNT_PUT,
    OP_COUNT_GET,
    OP_COUNT_MESSAGE, /* replies included */
    OP_COUNT_ATOMIC,
    OP_COUNTERS
};

struct session_live {
    struct session_shared *shared;
    struct ring_consumer submit;
    struct ring_consumer reply_submit;
    struct ring_producer local;
    struct ring_producer remote;
    struct ring_producer reply_event;
    bool attached;
    bool dirty;     /* has something to publish */
    bool loud;      /* a change for which a client may sleep, besides counts and room */
    bool taken;     /* the session's submissions were taken, so their rings have room */
    bool announced; /* its bell is armed anew, and nothing was fenced yet (engine_arm) */
    bool stalled;   /* no room to take its next submission */
    bool answer_stalled;
    bool sends_awaited;  /* a handler waits for room to send, and its message was refused */
    bool gets_wait;      /* handlers of completed gets wait for room */
    uint32_t offloads;   /* offloads of this context */
    uint32_t chunks;     /* chunks that operations of its flows take */
    uint64_t early;      /* operations that have ended, and have not left their flows */
    uint64_t drained[3]; /* by enum trace_ring_name: how far the client's consumption was traced */
    uint64_t submit_high, local_high, remote_high, reply_high;
    uint64_t ops[OP_COUNTERS], bytes[OP_COUNTERS]; /* submitted, by enum op_counter */
    uint64_t errors, spilled;
    uint64_t handler_units; /* units that runs of its handlers have taken */
};

struct segment_live {
    uint8_t *base;
    struct fabric_memory memory;
    int32_t status; /* of the registration */
    uint32_t busy;  /* fabric operations that name it */
    bool registered;
    bool adding;
    bool dropping;
    bool refused; /* the fabric could not give it back: asked again later */
};

#endif
