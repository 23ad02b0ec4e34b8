/*
 * Flows and inflows (a pair of contexts, at its origin and at its target), the remotes of a flow,
 * and its operations.
 *
 * Arena types hold indices and offsets only and are changed through arena_set* (arena.h). Some of
 * their fields are *private in meaning*: the next process does not use the values that it finds
 * there. Private types die with the process. Thread: the progress thread owns all of it.
 */
#ifndef PWC_ENGINE_FLOWS_H
#define PWC_ENGINE_FLOWS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include "daemon/engine/engine.h"
#include "daemon/engine/state/queue.h"
#include "daemon/engine/state/ready_list.h"
#include "proto/wire_abi.h"

/* ---- in the arena ---------------------------------------------------------------------------- */

/* The owner that has submitted a flow's operations (ops/owner.h): kind << 32 | handle. */
enum owner_kinds {
    OWNER_GONE = 0, /* with handle 0: the owner is gone */
    OWNER_SESSION = 1,
    OWNER_OFFLOADS = 2, /* the offloads of a context, which is the handle: they own what handlers
                         * send */
    OWNER_KINDS = 4,    /* the last kind is for tests */
};

static inline uint64_t owner_of(enum owner_kinds kind, uint32_t handle)
{
    return (uint64_t)kind << 32 | handle;
}

static inline uint32_t owner_handle(uint64_t owner)
{
    return (uint32_t)owner;
}

/* The owner's session; NONE: the owner is no session. */
static inline uint32_t owner_as_session(uint64_t owner)
{
    return owner >> 32 == OWNER_SESSION ? owner_handle(owner) : UINT32_MAX;
}

/* The context in whose name the owner sends, or NONE. */
static inline uint32_t owner_context(uint64_t owner)
{
    return owner >> 32 == OWNER_SESSION || owner >> 32 == OWNER_OFFLOADS ? owner_handle(owner)
                                                                         : UINT32_MAX;
}

enum remote_state {
    REMOTE_FREE = 0,
    REMOTE_BINDING = 1,
    REMOTE_READY = 2,
    REMOTE_STALE = 3,   /* the target's registrations are new: the key is being resolved again */
    REMOTE_REVOKED = 4, /* withdrawn by its target, or its peer is lost */
};

enum region_ways {
    PUTS_STORED = 1 << 0,   /* puts that are not packed are placed in the region, and have one
                             * record */
    GETS_OBSERVED = 1 << 1, /* each get has a record for handlers */
};

struct remote {
    uint32_t state;
    uint32_t flow;
    uint64_t owner; /* the owner of its flow, or OWNER_GONE */
    uint32_t peer;
    uint64_t endpoint;
    uint64_t cookie; /* of the bind call; the caller's own word */
    struct engine_key key;
    uint64_t length;
    uint64_t address; /* of the region, for the fabric */
    uint64_t fabric_key;
    uint32_t rights;
    uint32_t packet; /* puts travel as PACKETs of this size, for handlers; 0: they do not */
    uint32_t ways;   /* if `packet`: enum region_ways */
    uint32_t has_key;
    uint32_t revoke_due; /* REVOKED is to be answered when the last fabric operation has ended */
    uint32_t unbound;    /* its owner has unbound it; freed when the flow's head has passed
                          * free_after */
    uint64_t free_after;
    uint32_t replies; /* Long replies in flight that name it: it stays until they have left */
    uint32_t asked;   /* BINDs that are not answered: the entry is not reused while there are any */
};

enum flow_state {
    FLOW_FREE = 0,
    FLOW_BINDING = 1, /* the target has not sent the number of its inflow yet */
    FLOW_OPEN = 2,
    FLOW_DEAD = 3,    /* the target is gone: everything fails with `error` */
    FLOW_CLOSING = 4, /* its owner is gone: drained, then CLOSE is sent */
    FLOW_CLOSED = 5,  /* CLOSE is on its way; freed when it is acknowledged */
};

/* Every operation that is no reply is a request: puts, gets and notifications, too. */
enum flow_traffic {
    FLOW_REQUESTS = 0,
    FLOW_REPLIES = 1,
};

/* A pair of contexts and what travels between them, at the origin: the unit of order and of hold.
 * All flows of a client towards a peer share that client's turns. A flow of replies serves one
 * inflow of requests. */
struct flow {
    uint32_t state;
    uint32_t next;  /* of its owner's list */
    uint64_t owner; /* OWNER_GONE from FLOW_CLOSING on */
    uint32_t peer;
    uint32_t inflow; /* the target's inflow; for a flow of replies, the requester's flow */
    uint64_t endpoint;
    struct queue ops;  /* operations in order of submission */
    uint64_t reported; /* index up to which local events have been posted */
    uint64_t started;  /* index up to which payloads and reads have been posted */
    uint64_t posted;   /* bytes posted of the operation at `started`; private in meaning */
    uint64_t staged;   /* index up to which records stand in the ledger */
    uint32_t cut;      /* bytes of the put at `staged` whose PACKETs are staged, or that the target
                        * may have begun to handle */
    uint64_t rewound;  /* index that the last REFUSE sent it back to: all before was consumed */
    uint32_t epoch;    /* counts rewinds; completions of an older epoch count only before
                        * `rewound` */
    uint32_t held;     /* by STOP or REFUSE, until GO */
    int32_t error;
    uint32_t traffic; /* enum flow_traffic */
    uint32_t serves;  /* a flow of replies: the inflow whose requests it answers, or NONE */
    uint32_t replies_expected; /* requests that hold reply event space */
    uint32_t uid;              /* the user that the flow belongs to, also when its owner is gone */
    int32_t failing; /* status of the vector that the last operation belongs to, if the vector has
                      * failed and is not complete */
    int32_t ending;  /* for a closing flow: the status of its CLOSE */
    int32_t due;     /* the report about its peer that is still due; 0: none. FLOW_DEAD: how the
                      * peer has ended (WIRE_ENDED or an error); FLOW_OPEN: DUE_BACK */
};

enum inflow_state {
    INFLOW_FREE = 0,
    INFLOW_OPEN = 1,
    INFLOW_STOPPED = 2,
    INFLOW_REFUSED = 3, /* only the refused sequence is taken */
    INFLOW_CLOSED = 4,  /* our context is gone */
    INFLOW_PARTING = 5, /* the origin is gone, but our client may still reply to what has arrived by
                         * the inflow, or its end is still to be reported */
};

/* The parts of a context that reply to requests, each by a flow of its own. */
enum replier {
    REPLIER_CLIENT = 0,
    REPLIER_OFFLOADS = 1,
    REPLIERS = 2,
};

enum handled_flag {
    HANDLED_PENDING = 1 << 0, /* a handler wants no event at the end */
    HANDLED_FAILED = 1 << 1,  /* a handler has returned FAIL */
    HANDLED_CUT = 1 << 2,     /* the message can't end as its origin meant it */
    HANDLED_PROCEED = 1 << 3, /* the default action ends it */
    HANDLED_DEFER = 1 << 4,   /* as HANDLED_PROCEED, and the client is to do the work */
    HANDLED_REPLIED = 1 << 5,
    HANDLED_RERUN = 1 << 6,       /* the next handler has run on it before */
    HANDLED_FAULT = 1 << 7,       /* a handler has ended by a fault; its offload notes the place */
    HANDLED_RETURNING = 1 << 8,   /* the record was refused, and its GO is on the way */
    HANDLED_WAITING = 1 << 9,     /* the record waits for its client's turn */
    HANDLED_DROPS = 1 << 10,      /* packets that are still to come are dropped */
    HANDLED_STORED = 1 << 11,     /* a put or a Long, all of whose bytes stand in the region */
    HANDLED_UNANSWERED = 1 << 12, /* the record waits until a reply of its inflow has left */
};

/* The message that handlers work on, from the end of its first handler to its own end: an active
 * message, or a put that comes in packets. */
struct handled {
    uint32_t open; /* 1: there is one */
    uint32_t sequence;
    uint32_t offload; /* handle of the offload whose handlers work on it */
    uint32_t stage;   /* enum handler_stage of the next handler; HANDLER_STAGES: none is left */
    uint32_t flags;   /* enum handled_flag */
    int32_t status;   /* for its origin */
    uint32_t dropped; /* bytes */
    uint32_t kind;    /* enum handler_kind */
    uint32_t total;   /* bytes of the message */
    uint32_t done;    /* how many of these bytes have been dealt with, in packets */
    uint64_t id;      /* as in struct handler_packet */
    uint64_t place;   /* offset in the region, of a put or a Long */
    union {
        struct {
            uint32_t slot, generation; /* of a put's region */
        };
        uint64_t argument; /* of a Long: its first one, or 0 */
    };
};

/* The batch of puts to an offload's region whose handlers run, put by put
 * (offload/puts/put_batch.h). */
struct batched {
    uint32_t sequence;
    uint32_t done;   /* puts that have ended; 0: there is no such batch */
    uint32_t failed; /* how many of the puts that have ended have failed */
    uint32_t unused;
    uint64_t outcomes[WIRE_BATCH_PUTS / 8]; /* where some have failed, a byte for each put: its
                                             * errno */
};

#define DUE_BACK INT32_MAX /* in `due` of a flow or an inflow: the peer is back; no status */

/* A pair of contexts, at the target. */
struct inflow {
    uint32_t state;
    uint32_t session;
    uint32_t peer;
    uint32_t origin_flow;
    uint64_t origin; /* rank and context */
    uint32_t refused;
    uint32_t next;                 /* of the session's list */
    uint32_t owed;                 /* requests delivered that may be replied to and are not yet */
    uint32_t reply_flow[REPLIERS]; /* NONE: no request has arrived that this replier may reply to */
    uint32_t in_doubt; /* 1: an earlier process may have done the record `doubt` (doubt.h) */
    uint32_t doubt;    /* sequence */
    struct handled handled;
    struct batched batched;
    /* The report about the origin that is still due; 0: none. INFLOW_PARTING: how the origin has
     * ended, as for FLOW_DEAD; else DUE_BACK. */
    int32_t due;
};

enum op_phase {
    OP_QUEUED = 0,
    OP_READY = 1,  /* its payload is placed (chain), or its data has been read (get) */
    OP_PLACED = 2, /* the target knows the operation, or it needs no target */
};

/* A kind that no client submits: small puts in a row (op_batch.c). */
#define OP_BATCH 0u

#define OP_SMALL 48u

/* An operation in flight. Bytes that do not fit `small` stand in the entries after it. */
struct op {
    uint8_t kind; /* enum submit_kind, or OP_BATCH */
    uint8_t phase;
    uint16_t flags; /* enum submit_flags */
    int32_t status;
    uint32_t remote;
    uint16_t span;    /* entries that it takes */
    uint16_t pending; /* fabric operations outstanding: private in meaning, zeroed when opened */
    union {
        uint64_t offset;
        uint64_t total; /* of SUBMIT_VECTOR and SUBMIT_STRIDED */
    };
    uint32_t length;       /* an operation of more bytes fails, and has the most that fits here */
    uint32_t posted_after; /* ns from submission; 0: not posted, UINT32_MAX: that long or longer;
                            * private in meaning */
    uint64_t lid;
    union {
        uint64_t rid;
        struct {
            uint32_t count; /* of operations */
            uint16_t bytes; /* bytes on the wire, which stand after the entry */
            uint8_t kind;   /* of each operation, enum submit_kind */
            uint8_t record; /* kind of the record that carries them, enum wire_kind */
        } batch;            /* of OP_BATCH */
    };
    uint16_t lid_len;
    uint16_t rid_len;
    uint32_t segment;
    union {
        uint64_t local_offset;
        uint64_t placed; /* of a Long without bytes, as submitted */
        uint64_t value;  /* of an atomic that is done at its target: see op_atomic.c */
        uint64_t apart;  /* of a batch of puts: 1: each has ended on its own (op_batch.c) */
    };
    uint32_t reserve;
    uint16_t nonce; /* of the payload on its way; private in meaning */
    uint8_t ended;  /* its local event is posted, or not wanted, and it stays in its flow */
    uint8_t code;   /* of an atomic or a vector, as submitted */
    uint64_t submitted_at;
    uint8_t small[OP_SMALL]; /* lid bytes, rid bytes, payload: each padded to 8 */
};
static_assert(sizeof(struct op) == 128, "op");
static_assert(CHUNK_BYTES == ENGINE_CHUNK_BYTES, "chunk");
#define OP_SHIFT 7u

/* ---- private --------------------------------------------------------------------------------- */

struct flow_live {
    uint32_t turn;         /* the turn of its client towards its peer (links.h); NONE: never had
                            * one */
    uint32_t outstanding;  /* fabric operations */
    uint32_t remotes;      /* how many remotes name it */
    uint32_t first_remote; /* list of its remotes (remote.h); NONE: there is none */
    uint64_t paced_to;     /* up to this index at most `pace` operations are on their way at a
                            * time */
    uint32_t parts;        /* packets on their way, without the last one of each put */
    uint32_t pace;         /* if paced: how many operations may be on their way */
    uint32_t pace_kept;    /* packets consumed since `pace` changed */
    uint32_t forget_next;  /* the remote with which bind_forget_flow continues; NONE: the first */
    uint64_t begins; /* index at which an operation begins; the search for the next verdict's starts
                        there */
    bool ready;      /* on one of its turn's lists */
    bool blocked;    /* on the list of its turn for flows that wait for the peer's window */
    bool unblocked;  /* was blocked, and has posted nothing since */
    bool let_go;     /* one of its remotes was unbound while operations were in flight */
    bool used;       /* this process has used this flow's entry; else all fields here are 0 */
};

#endif
