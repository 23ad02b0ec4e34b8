/*
 * Flows: pairs of contexts at both ends, the remotes that lead along them, and their operations.
 *
 * Arena types hold indices and offsets only and are changed through arena_set* (arena.h). Private
 * types die with the process. Thread: the progress thread owns all of it.
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
    OWNER_GONE = 0, /* with handle 0: there is none any more */
    OWNER_SESSION = 1,
    OWNER_OFFLOADS = 2, /* of a context, which is the handle: what their handlers send */
    OWNER_KINDS = 4,    /* the last one is the tests' own */
};

static inline uint64_t owner_of(enum owner_kinds kind, uint32_t handle)
{
    return (uint64_t)kind << 32 | handle;
}

static inline uint32_t owner_handle(uint64_t owner)
{
    return (uint32_t)owner;
}

/* NONE: it is no session. */
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
    REMOTE_STALE = 3,   /* the owner's registrations are new: being resolved again */
    REMOTE_REVOKED = 4, /* withdrawn by the owner, or its peer is lost */
};

enum region_ways {
    PUTS_STORED = 1 << 0,   /* puts that are not packed are placed, and have one record */
    GETS_OBSERVED = 1 << 1, /* each get has a record for handlers */
};

struct remote {
    uint32_t state;
    uint32_t flow;
    uint64_t owner; /* its flow's, or OWNER_GONE */
    uint32_t peer;
    uint64_t endpoint;
    uint64_t cookie; /* of the bind call; the owner's own word */
    struct engine_key key;
    uint64_t length;
    uint64_t address; /* the fabric's */
    uint64_t fabric_key;
    uint32_t rights;
    uint32_t packet; /* puts travel as PACKETs of this size, for handlers; 0: not so */
    uint32_t ways;   /* with that: enum region_ways */
    uint32_t has_key;
    uint32_t revoke_due; /* REVOKED is to be answered when the last fabric operation has ended */
    uint32_t unbound;    /* the client let go; freed when the flow's head has passed free_after */
    uint64_t free_after;
    uint32_t replies; /* Long replies in flight that name it: it stays until they have left */
    uint32_t asked;   /* BINDs that are not answered: as long as there are, it is no other's */
};

enum flow_state {
    FLOW_FREE = 0,
    FLOW_BINDING = 1, /* the target has not given its number yet */
    FLOW_OPEN = 2,
    FLOW_DEAD = 3,    /* the target is gone: everything fails with `error` */
    FLOW_CLOSING = 4, /* its owner is gone: drained, then CLOSE is sent */
    FLOW_CLOSED = 5,  /* CLOSE is on its way; freed when it is acknowledged */
};

/* Requests are all that is not a reply: puts, gets and notifications too. */
enum flow_traffic {
    FLOW_REQUESTS = 0,
    FLOW_REPLIES = 1,
};

/* A pair of contexts and what travels between them, at the origin: the unit of order and of hold;
 * its client's flows towards a peer share its turns. A flow of replies serves one inflow of
 * requests. */
struct flow {
    uint32_t state;
    uint32_t next;  /* of its owner's list */
    uint64_t owner; /* OWNER_GONE from FLOW_CLOSING on */
    uint32_t peer;
    uint32_t inflow; /* the target's number; of replies, the requester's number of its flow */
    uint64_t endpoint;
    struct queue ops;  /* operations in order of submission */
    uint64_t reported; /* index up to which local events have been posted */
    uint64_t started;  /* index up to which payloads and reads have been posted */
    uint64_t posted;   /* bytes posted of the one that stands there; private in meaning */
    uint64_t staged;   /* index up to which records stand in the ledger */
    uint32_t cut;      /* bytes of the put that stands there whose PACKETs do so too, or which its
                        * target may have begun to handle */
    uint64_t rewound;  /* where the last REFUSE sent it back to: all before was consumed */
    uint32_t epoch;    /* counts rewinds: an older one's completions count only before `rewound` */
    uint32_t held;     /* by STOP or REFUSE, until GO */
    int32_t error;
    uint32_t traffic; /* enum flow_traffic */
    uint32_t serves;  /* a flow of replies: the inflow whose requests it answers, or NONE */
    uint32_t replies_expected; /* requests that hold reply event space */
    uint32_t uid;              /* the user that the flow belongs to, also when its owner is gone */
    int32_t failing; /* the vector that the last operation belongs to continues, and has failed */
    int32_t ending;  /* for a closing flow: the status of its CLOSE */
    int32_t due;     /* FLOW_DEAD: the end of its peer that is still to be reported (WIRE_ENDED or
                      * an error), or 0 */
};

enum inflow_state {
    INFLOW_FREE = 0,
    INFLOW_OPEN = 1,
    INFLOW_STOPPED = 2,
    INFLOW_REFUSED = 3, /* only the refused sequence is taken */
    INFLOW_CLOSED = 4,  /* our context is gone */
    INFLOW_PARTING = 5, /* the origin is gone, but our client may still reply to what came by it, or
                         * is still to learn of the end */
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
    HANDLED_DEFER = 1 << 4,   /* the same, and the client is to do the work */
    HANDLED_REPLIED = 1 << 5,
    HANDLED_RERUN = 1 << 6, /* the next handler has run on it before */
    HANDLED_FAULT = 1 << 7, /* a handler has ended by a fault, which its offload has the place of */
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
    uint32_t offload; /* its handle */
    uint32_t stage;   /* enum handler_stage: of the next handler; HANDLER_STAGES: none is left */
    uint32_t flags;   /* enum handled_flag */
    int32_t status;   /* that its origin gets */
    uint32_t dropped; /* bytes */
    uint32_t kind;    /* enum handler_kind */
    uint32_t total;   /* bytes of the message */
    uint32_t done;    /* how many of these, in packets, have been dealt with */
    uint64_t id;      /* as in struct handler_packet */
    uint64_t place;   /* in the region, of a put or a Long */
    union {
        struct {
            uint32_t slot, generation; /* of a put's region */
        };
        uint64_t argument; /* of a Long: its first one, or 0 */
    };
};

/* The batch of puts to an offload's region whose handlers run, put by put (offload/put_batch.h). */
struct batched {
    uint32_t sequence;
    uint32_t done;   /* puts that have ended; 0: there is no such batch */
    uint32_t failed; /* how many of these have failed */
    uint32_t unused;
    uint64_t outcomes[WIRE_BATCH_PUTS / 8]; /* where some have failed, the errno of each: a byte */
};

/* A pair of contexts, at the target. */
#define ORIGIN_BACK INT32_MAX /* `due` of an inflow; no status */

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
    /* The report about the origin that is still due. INFLOW_PARTING: as a flow's; else ORIGIN_BACK:
     * the origin is back. 0: none. */
    int32_t due;
};

enum op_phase {
    OP_QUEUED = 0,
    OP_READY = 1,  /* its payload is placed (chain), or its data has been read (get) */
    OP_PLACED = 2, /* known to the target, or needs no target */
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
    uint16_t span;    /* entries it takes */
    uint16_t pending; /* fabric operations outstanding: private in meaning, zeroed when opened */
    union {
        uint64_t offset;
        uint64_t total; /* of SUBMIT_VECTOR */
    };
    uint32_t length;       /* of one that is longer, which fails, the most that fits */
    uint32_t posted_after; /* submission, ns; 0: not yet, UINT32_MAX: later; private in meaning */
    uint64_t lid;
    union {
        uint64_t rid;
        struct {
            uint32_t count; /* of operations */
            uint16_t bytes; /* bytes on the wire, which stand after the entry */
            uint8_t kind;   /* of each, enum submit_kind */
            uint8_t record; /* that carries them, enum wire_kind */
        } batch;            /* of OP_BATCH */
    };
    uint16_t lid_len;
    uint16_t rid_len;
    uint32_t segment;
    union {
        uint64_t local_offset;
        uint64_t placed; /* of a Long of no bytes, as submitted */
        uint64_t value;  /* of an atomic that its target has done: see op_atomic.c */
        uint64_t apart;  /* of a batch of puts: 1: each has ended by itself (op_batch.c) */
    };
    uint32_t reserve;
    uint16_t nonce; /* of the payload on its way; private in meaning */
    uint8_t ended;  /* its local event is posted, or not wanted */
    uint8_t code;   /* of the submission */
    uint64_t submitted_at;
    uint8_t small[OP_SMALL]; /* lid bytes, rid bytes, payload: each padded to 8 */
};
static_assert(sizeof(struct op) == 128, "op");
static_assert(CHUNK_BYTES == ENGINE_CHUNK_BYTES, "chunk");
#define OP_SHIFT 7u

/* ---- private --------------------------------------------------------------------------------- */

struct flow_live {
    uint32_t turn;         /* of its client towards its peer (links.h); NONE: never had one */
    uint32_t outstanding;  /* fabric operations */
    uint32_t remotes;      /* that name it */
    uint32_t first_remote; /* list of these (remote.h); NONE: there is none */
    uint64_t paced_to;     /* index up to which few operations are on their way at a time */
    uint32_t parts;        /* packets on their way, except for the last one of each put */
    uint32_t pace;         /* for a paced flow: how many operations may be on their way */
    uint32_t pace_kept;    /* packets consumed since `pace` changed */
    uint64_t begins;       /* index at which an operation began: verdicts come in order */
    bool ready;            /* on one of its turn's lists */
    bool blocked;          /* on the list of its turn for flows that wait for the peer's window */
    bool unblocked;        /* has left that list, and has posted nothing since */
    bool let_go;           /* one of its remotes was unbound while operations were in flight */
    bool used; /* this process has used the number: what stands here is of it, else all is 0 */
};

#endif
