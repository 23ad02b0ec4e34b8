/*
 * What the engine knows: the entries of the arena's tables, and the private state beside them.
 *
 * Arena types hold indices and offsets only and are changed through arena_set* (arena.h). Private
 * types (`*_live`) die with the process and are rebuilt by engine_open and by the next handshake.
 * Thread: the progress thread owns all of it.
 */
#ifndef PWC_ENGINE_STATE_H
#define PWC_ENGINE_STATE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include "daemon/engine/state/arena.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/state/heap.h"
#include "daemon/engine/state/queue.h"
#include "shm_ring/ring.h"
#include "proto/session_abi.h"
#include "proto/wire_abi.h"

#define NONE UINT32_MAX

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
    uint32_t grants;     /* of its regions */
    uint32_t unused;
    char job[64];
};

enum session_life {
    SESSION_FREE = 0,
    SESSION_OPEN = 1,
    SESSION_CLOSING = 2,
};

struct session {
    uint32_t state; /* enum session_life */
    uint32_t client;
    uint32_t context;
    struct session_sizes sizes;
    uint32_t mark;         /* the caller's */
    uint32_t first_flow;   /* list of this context's flows */
    uint32_t first_inflow; /* list of flows that end here */
    uint64_t submit_head;
    uint64_t answer_head;
    uint64_t local_tail;
    uint64_t remote_tail;
    uint64_t reply_tail;
    uint64_t reserved;       /* bytes of local event space held by operations in flight */
    uint64_t reply_reserved; /* bytes of reply event space held by requests not yet answered */
    uint64_t reply_released; /* bytes of it that were given back without an event */
    uint64_t submitted;
    uint64_t ended;
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
    uint32_t unused;
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
    uint8_t secret[16];
};

/* A node that has resolved a region's key. */
struct grant {
    uint32_t region; /* NONE: free */
    uint32_t node;
    uint32_t next;
    uint32_t asked; /* REVOKE is on its way */
};

enum remote_state {
    REMOTE_FREE = 0,
    REMOTE_BINDING = 1,
    REMOTE_READY = 2,
    REMOTE_STALE = 3,   /* the owner's registrations are new: being resolved again */
    REMOTE_REVOKED = 4, /* withdrawn by the owner, or its node is lost */
};

struct remote {
    uint32_t state;
    uint32_t session;
    uint32_t flow;
    uint32_t node;
    uint64_t peer;
    uint64_t cookie; /* of the bind call */
    struct engine_key key;
    uint64_t length;
    uint64_t address; /* the fabric's */
    uint64_t fabric_key;
    uint32_t rights;
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
    FLOW_CLOSING = 4, /* our context is gone: drained, then CLOSE is sent */
    FLOW_CLOSED = 5,  /* CLOSE is on its way; freed when it is acknowledged */
};

/* Requests are all that is not a reply: puts, gets and notifications too. */
enum flow_traffic {
    FLOW_REQUESTS = 0,
    FLOW_REPLIES = 1,
};

/* A pair of contexts and what travels between them, at the origin: the unit of order and of hold;
 * its client's flows towards a node share its turns. A flow of replies serves one inflow of
 * requests. */
struct flow {
    uint32_t state;
    uint32_t session; /* NONE when our context is gone */
    uint32_t node;
    uint32_t inflow; /* the target's number; of replies, the requester's number of its flow */
    uint64_t peer;
    struct queue ops; /* operations in order of submission */
    uint64_t told;    /* index up to which local events have been posted */
    uint64_t started; /* index up to which payloads and reads have been posted */
    uint64_t staged;  /* index up to which records stand in the ledger */
    uint64_t rewound; /* where the last REFUSE sent it back to: all before was consumed */
    uint32_t epoch;   /* counts rewinds: an older one's completions count only before `rewound` */
    uint32_t held;    /* by STOP or REFUSE, until GO */
    uint32_t next;    /* of the session's list */
    int32_t error;
    uint32_t traffic; /* enum flow_traffic */
    uint32_t serves;  /* a flow of replies: the inflow whose requests it answers, or NONE */
    uint32_t replies_expected; /* requests that hold reply event space */
    uint32_t uid;              /* whose it is, also when our context is gone */
};

enum inflow_state {
    INFLOW_FREE = 0,
    INFLOW_OPEN = 1,
    INFLOW_STOPPED = 2,
    INFLOW_REFUSED = 3, /* only the refused sequence is taken */
    INFLOW_CLOSED = 4,  /* our context is gone */
    INFLOW_PARTING = 5, /* the origin is gone, but our client may still reply to what came by it */
};

/* A pair of contexts, at the target. */
struct inflow {
    uint32_t state;
    uint32_t session;
    uint32_t node;
    uint32_t origin_flow;
    uint64_t origin; /* rank and context */
    uint32_t refused;
    uint32_t next;       /* of the session's list */
    uint32_t owed;       /* requests delivered that may be replied to and are not yet */
    uint32_t reply_flow; /* NONE: no request that may be replied to has come */
};

/*
 * Control records wait in two queues, each in order. An acknowledgement must not pass a verdict on
 * what it covers; so verdicts go first, and have room of their own in the ledger: those that wait
 * for credit would otherwise hold back the acknowledgements that give credit to the other side,
 * which may hold back ours for the same reason.
 */
enum notes_queue {
    NOTES_VERDICTS = 0, /* FAIL, REFUSE */
    NOTES_OTHERS = 1,
    NOTES_QUEUES
};

struct notes {
    struct queue queue; /* struct note, kept until acknowledged */
    uint64_t staged;    /* index up to which they stand in the ledger */
};

struct peer {
    uint64_t link_id;     /* ours: new when we dropped our state for this peer */
    uint64_t their_id;    /* theirs; 0: none */
    uint64_t tx_tail;     /* position behind the last record staged */
    uint64_t tx_acked;    /* consumed there, as told by ACK */
    uint64_t rx_consumed; /* position behind the last record consumed */
    struct queue sent;    /* struct sent: records staged and not acknowledged */
    struct notes notes[NOTES_QUEUES];
    uint32_t their_incarnation;
    uint32_t rx_preferred; /* ring size at the next link */
    uint32_t discarding;   /* what was under way is being dropped; a restart goes on with it */
    uint32_t bound_owed;   /* BOUND notes that it has not acknowledged */
};

enum op_phase {
    OP_QUEUED = 0,
    OP_READY = 1,  /* its payload is placed (chain), or its data has been read (get) */
    OP_PLACED = 2, /* known to the target, or needs no target */
};

/* Which of its session's counters an operation goes into. */
enum op_counter {
    OP_COUNT_OTHER = 0, /* shown nowhere */
    OP_COUNT_PUT,
    OP_COUNT_GET,
    OP_COUNT_MESSAGE, /* replies included */
    OP_COUNTERS
};

/* A kind that no client submits: small puts in a row (op_batch.c). */
#define OP_BATCH 0u

#define OP_SMALL 48u

/* An operation in flight. Bytes that do not fit `small` stand in the entries behind it. */
struct op {
    uint8_t kind; /* enum submit_kind, or OP_BATCH */
    uint8_t phase;
    uint16_t flags; /* enum submit_flags */
    int32_t status;
    uint32_t remote;
    uint16_t span;    /* entries it takes */
    uint16_t pending; /* fabric operations outstanding: private in meaning, zeroed when opened */
    uint64_t offset;
    uint32_t length;       /* of one that is longer, which fails, the most that fits */
    uint32_t posted_after; /* submission, ns; 0: not yet, UINT32_MAX: later; private in meaning */
    uint64_t lid;
    uint64_t rid;
    uint16_t lid_len;
    uint16_t rid_len;
    uint32_t segment;
    uint64_t local_offset;
    uint32_t reserve;
    uint16_t nonce; /* of the payload on its way; private in meaning */
    uint8_t ended;  /* its local event is posted, or not wanted */
    uint8_t posted; /* stripes of a payload that is not all on its way; private in meaning */
    uint64_t submitted_at;
    uint8_t small[OP_SMALL]; /* lid bytes, rid bytes, payload: each padded to 8 */
};
static_assert(sizeof(struct op) == 128, "op");
static_assert(CHUNK_BYTES == ENGINE_CHUNK_BYTES, "chunk");
#define OP_SHIFT 7u

/* A record that stands in the ledger. */
struct sent {
    uint64_t end;   /* position behind it */
    uint64_t slot;  /* of the operation, or of the note */
    uint32_t flow;  /* NONE: a note */
    uint32_t epoch; /* of the flow; of a note, enum notes_queue; NOTES_QUEUES: a nonce alone */
    uint32_t nonce; /* NONE, or to be freed */
    uint32_t unused;
};
static_assert(sizeof(struct sent) == 32, "sent");
#define SENT_SHIFT 5u

/* A control record in its queue. */
struct note {
    uint8_t record[248];
    uint64_t cause; /* consumed position when it was made */
};
static_assert(sizeof(struct note) == 256, "note");
#define NOTE_SHIFT  8u
#define SPILL_SHIFT 7u

/* The tables whose entries come and go. */
enum table {
    TABLE_CLIENTS,
    TABLE_SESSIONS,
    TABLE_SEGMENTS,
    TABLE_REGIONS,
    TABLE_GRANTS,
    TABLE_REMOTES,
    TABLE_FLOWS,
    TABLE_INFLOWS,
    TABLES
};

/* Numbers of a table's free entries: a stack (table.h). */
struct free_list {
    uint32_t *count;
    uint32_t *stack;
};

/* ---- private --------------------------------------------------------------------------------- */

/* Entries of a table that leave, or may: each once, in a ring as large as the table (table.h). */
struct leaving {
    uint32_t *entries;
    bool *listed;
    uint32_t size, head, count;
};

struct session_live {
    struct session_shared *shared;
    struct ring_consumer submit;
    struct ring_consumer answer;
    struct ring_producer local;
    struct ring_producer remote;
    struct ring_producer reply;
    bool attached;
    bool dirty;   /* has something to publish */
    bool stalled; /* no room to take its next submission */
    bool answer_stalled;
    uint32_t chunks;     /* of its flows' operations */
    uint64_t drained[3]; /* by enum trace_ring_name: how far its client was traced */
    uint64_t submit_high, local_high, remote_high, reply_high;
    uint64_t ops[OP_COUNTERS], bytes[OP_COUNTERS]; /* submitted, by enum op_counter */
    uint64_t errors, spilled;
};

struct segment_live {
    uint8_t *base;
    struct fabric_memory memory;
    int32_t status; /* of the registration */
    uint32_t busy;  /* fabric operations that name it */
    bool registered;
    bool adding;
    bool dropping;
    bool refused; /* the fabric could not let go of it: asked again later */
};

struct flow_live {
    uint32_t turn;        /* of its client towards its peer; NONE: never had one */
    uint32_t outstanding; /* fabric operations */
    uint32_t remotes;     /* that name it */
    bool ready;           /* on its turn's list */
    bool let_go;          /* one of them was unbound while operations were in flight */
};

/* First and last of a list; who comes next stands in a table. */
struct ready_list {
    uint32_t first, last;
};

/* What a client may stage towards a peer before another one does (turn.c). */
struct turn {
    uint32_t client;
    uint32_t node;
    uint32_t traffic;        /* enum flow_traffic */
    uint32_t flows;          /* that belong to it; 0: free */
    uint32_t next;           /* of its peer's turns, or of the free ones */
    struct ready_list ready; /* of these; not empty: it is on its peer's list */
    int64_t left;            /* bytes; less than none is taken off the next turn */
};

#define RUN_WINDOW   64u
#define NONCE_WINDOW 256u
/* Nonces that requests leave to replies. */
#define NONCES_FOR_REPLIES 32u
#define STRIPES_MAX        4u  /* of one payload */
#define STRIPE_ALIGN       64u /* where they meet: not in the middle of a cache line */

/* Outbound ledger of a link. */
struct ledger_out {
    uint8_t *staging;
    uint32_t size;
    uint16_t run;       /* number of the next run */
    uint16_t run_done;  /* oldest run whose write has not completed */
    uint16_t run_acked; /* oldest run that has not been acknowledged, all of it */
    uint64_t base;      /* position at which this ring began */
    uint64_t sent;      /* position up to which runs have been posted */
    uint64_t completed; /* position up to which their writes have completed */
    uint64_t done_bits; /* completed runs from run_done on */
    uint64_t run_end[RUN_WINDOW];
    uint64_t run_posted[RUN_WINDOW]; /* when, ns */
    uint64_t remote_address;
    uint64_t remote_key;
    bool owned;     /* traced: what is staged and not posted has an owner */
    uint32_t owner; /* uid; NONE: more than one */
    uint32_t run_owner[RUN_WINDOW];
    struct wire_offer next;        /* a larger ring, to be switched to; bytes 0: none */
    uint8_t *next_staging;         /* taken before SWITCH is staged */
    bool switching;                /* SWITCH is staged */
    bool wanting;                  /* WANT is staged since credit came last */
    bool urgent;                   /* an ACK is staged: it may use the whole window of runs */
    uint16_t nonces[NONCE_WINDOW]; /* free ones, a stack; at its other end those to be voided */
    uint32_t nonces_free, voids;
};

/* Inbound ledger of a link. */
struct ledger_in {
    uint8_t *ring;
    uint32_t size;
    uint16_t run; /* number of the next run to consume */
    struct fabric_memory memory;
    bool registered;
    bool adding;
    bool dirty; /* something has arrived */
    bool ack_due;
    bool blocked; /* waits for a payload */
    uint64_t base;
    uint64_t run_end; /* end of the run being consumed; 0: none */
    uint64_t arrived; /* runs announced, from `run` on */
    uint64_t acked;   /* position of the last ACK staged */
    uint64_t ack_at;
    uint64_t their_ack; /* of the record being consumed */
    uint32_t runs_unacked;
    uint8_t payloads[NONCE_WINDOW]; /* stripes announced, by nonce */
    uint8_t *next_ring;             /* growth: being registered, or offered */
    uint32_t next_size;
    struct fabric_memory next_memory;
    bool next_ready;
    bool next_offered;
    uint64_t grow_at; /* not before: the last was declined, ns */
};

enum link_state {
    LINK_NONE = 0,
    LINK_PREPARING = 1, /* the inbound ring is being registered */
    LINK_OFFERED = 2,
    LINK_UP = 3,
    LINK_DRAINING = 4, /* down: fabric operations and ring are on their way out */
};

/* A ring on its way out of the fabric's registration. */
struct parting_ring {
    uint8_t *ring; /* NULL: free */
    uint32_t size;
    uint32_t memory;
    bool refused; /* the fabric could not let go of it: asked again later */
};
#define DROP_RETRY_NS UINT64_C(100000000) /* after the first refusal all are asked again */
/* A link has one ring, and a second while it changes. */
#define PARTING_RINGS 2u

struct peer_live {
    uint32_t link;
    uint32_t outstanding; /* fabric operations towards it */
    bool wanted;          /* a handshake has been asked for */
    bool offer_asked;
    bool active;                /* on the active list */
    bool broken;                /* told the caller already */
    bool known;                 /* peer_know has made it what it is */
    bool sibling;               /* another engine of this machine: our clients share memory */
    struct ready_list ready[2]; /* turns, by enum flow_traffic; replies go first */
    uint32_t turns;             /* list of all of them */
    uint32_t drops;             /* ring withdrawals on their way */
    struct parting_ring parting[PARTING_RINGS];
    uint32_t latency;  /* which; 0: that of all who have none */
    uint32_t gone;     /* flow that dies with the record being consumed, or NONE */
    uint32_t pause_ns; /* between tries of what the fabric refuses; 0: it refused nothing */
    uint64_t again_at; /* the next */
    bool watched;      /* keepalive.h, and so are these: */
    bool flow_waits;
    uint32_t silence;       /* intervals in which nothing has come from it */
    uint32_t silence_at_up; /* of those, before this link */
    uint64_t bytes;         /* of payloads and reads on their way, ours and, as told, theirs */
    uint64_t bytes_theirs;
    struct ledger_out out;
    struct ledger_in in;
    uint64_t runs_out, runs_in, records_out, records_in, starved, grown;
};

/* How long operations towards a peer have taken. A peer gets one with its first link; the first is
 * shared by those that come when all are given, or are told of before. */
struct latency {
    struct histogram steps[ENGINE_LATENCIES];
};
#define LATENCIES_MAX 1024u

/* Peers that are waited for (keepalive.h). */
struct keepalive {
    uint32_t *watched;
    uint32_t count;
    uint32_t next;     /* where the last look has ended */
    uint64_t at;       /* of the next look, ns */
    uint64_t interval; /* ns */
    uint64_t deadline; /* intervals */
    uint64_t bytes;    /* that the slowest of fabrics carries in one */
};

struct engine {
    struct arena arena;
    struct engine_config config;
    struct fabric *fabric;
    const struct engine_host *host;
    uint64_t now;

    /* tables of the arena */
    struct client *clients;
    struct session *sessions;
    struct segment *segments;
    struct region *regions;
    struct grant *grants;
    struct remote *remotes;
    struct flow *flows;
    struct inflow *inflows;
    struct peer *peers;
    struct free_list unused[TABLES];
    struct chunk_pool pool;
    uint32_t message_max; /* bytes of an active message's block */

    /* private tables, same indices */
    struct leaving leaving[TABLES];
    struct session_live *session_live;
    struct segment_live *segment_live;
    struct flow_live *flow_live;
    struct turn *turns; /* as many as flows */
    uint32_t *flow_next, *turn_next;
    uint32_t free_turns; /* list */
    uint32_t turns_used; /* those from here on were never on it */
    struct peer_live *peer_live;
    struct latency *latencies;
    uint32_t latency_count; /* given */
    uint32_t *remote_busy;  /* fabric operations that name it */
    struct heap heap;
    struct fabric_memory heap_memory; /* the whole heap, as source of runs */
    bool heap_registered;
    struct keepalive keepalive;

    uint32_t *open_sessions;
    uint32_t open_count;
    uint32_t take_first; /* of open_sessions: whose turn it is to have its submissions taken */
    uint32_t *active;    /* peers that need progress */
    uint32_t active_count;
    uint32_t *dirty; /* sessions with something to publish */
    uint32_t dirty_count;
    uint64_t ride_ns;   /* how long an acknowledgement waits for one */
    bool told;          /* the last step published something */
    uint32_t spilling;  /* sessions with spilled events */
    bool sweep;         /* what leaves may go a step further (sweep.h) */
    uint64_t drop_at;   /* when memory that the fabric held on to is dropped again, ns; or 0 */
    bool rings_refused; /* some of that is rings */
    bool armed;         /* bells stand since engine_arm, but for those that were rung */
    bool fabric_failed;
    bool orphans;         /* sessions and segments that were not attached are to be closed */
    uint32_t chunks_keep; /* chunks that operations and spill leave to records of control */

    struct engine_notice *notices;
    uint64_t notice_head, notice_tail;
    uint64_t notices_max;

    struct trace_ring *trace; /* NULL: nobody traces */
    uint64_t ordered_max;     /* writes up to here keep their order, records included; 0: none do */
    uint32_t stripe_shift;    /* large payloads travel in 1 << this stripes */
    uint8_t *record;          /* room for one submission */
    uint8_t *next_record; /* and for the one behind it, while it is seen whether they go together */
    uint32_t record_max;

    struct engine_totals_view departed; /* of contexts that are gone */
};

/* Cookies of fabric operations: what the completion is for. */
enum cookie_kind {
    COOKIE_OP = 1,  /* flow << 40 | slot */
    COOKIE_RUN = 2, /* node << 16 | run */
    COOKIE_HEAP = 3,
    COOKIE_RING = 4,    /* node */
    COOKIE_NEXT = 5,    /* node */
    COOKIE_PARTING = 6, /* node, place */
    COOKIE_SEGMENT = 7, /* index */
};

static inline uint64_t cookie_of(uint32_t kind, uint64_t value)
{
    return (uint64_t)kind << 60 | value;
}

/* Arena transactions by their short names. */
static inline void set64(struct engine *e, uint64_t *field, uint64_t value)
{
    arena_set64(&e->arena, field, value);
}

static inline void set32(struct engine *e, uint32_t *field, uint32_t value)
{
    arena_set32(&e->arena, field, value);
}

static inline void set8(struct engine *e, uint8_t *field, uint8_t value)
{
    arena_set8(&e->arena, field, value);
}

static inline void commit(struct engine *e)
{
    arena_commit(&e->arena);
}

/* The fabric could not let go of some memory. */
static inline void drop_later(struct engine *e)
{
    if (e->drop_at == 0)
        e->drop_at = e->now + DROP_RETRY_NS;
}

#endif
