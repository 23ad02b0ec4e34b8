/*
 * The session: the shared memory between one context of a client and the daemon.
 *
 * The daemon creates the session (a sealed memfd) and passes it over the control socket. The
 * session holds five single-producer single-consumer rings (shm_ring/ring.h says how a ring works):
 *
 *   offset 0                                                                4096
 *   +--------+-------+--------+-------+--------+--------+--------+-------+-------------------+
 *   | header | state | submit | local | remote | reply_ | reply_ | bells | data of the five  |
 *   |        |       |        |       |        | submit | event  |       | rings, in the     |
 *   |        |       |        ring_control of each              |       | same order        |
 *   +--------+-------+--------+-------+--------+--------+--------+-------+-------------------+
 *   0        64      256      512     768      1024     1280     1536
 *
 *     submit        the client produces, the daemon consumes: struct submit_record
 *     local         the daemon produces: struct event_record, one slot reserved at each submission
 *     remote        the daemon produces: struct event_record, for what peers did to this context
 *     reply_submit  the client produces: struct submit_record, replies to active messages only
 *     reply_event   the daemon produces: struct event_record, replies only, one slot reserved at
 *                   each request
 *
 * Replies have rings of their own so that they never wait for requests: docs/active-messages.md
 * says why that keeps everything draining.
 *
 * Clients count as hostile: the daemon uses nothing from here that has not passed shm_ring's
 * checks, and keeps its own indices in private memory. Sizes of rings are powers of two.
 */
#ifndef PWC_PROTO_SESSION_ABI_H
#define PWC_PROTO_SESSION_ABI_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#define SESSION_MAGIC   UINT64_C(0x3730304453435750) /* "PWCSD007" */
#define SESSION_VERSION 10u
/* The version of a library or daemon 0.1, which did not send its version in Hello or Welcome. */
#define SESSION_VERSION_UNSENT 4u
#define SESSION_DATA_OFFSET    4096u
#define SESSION_RING_MIN       8192u
#define SESSION_RING_MAX       (64u << 20)

#define SESSION_ID_MAX 1024u /* bytes of a completion id */

#define SESSION_HANDLERS      256u /* indices of active message handlers */
#define SESSION_ARGUMENTS_MAX 16u  /* of an active message, 8 bytes each */

#define SESSION_REMOTES 16384u /* bits of session_shared.ended_remotes; a power of two */

/* The values of `session_shared.state`. A futex wakes sleepers when the state changes. */
enum session_state {
    SESSION_LIVE = 1,
    SESSION_CLOSED = 2,      /* the daemon ended the session in order */
    SESSION_QUARANTINED = 3, /* the client broke the protocol; pwcctl shows the reason */
};

/* One ring's indices: counters of bytes that only grow; their low bits index the data area. */
struct ring_control {
    _Alignas(64) _Atomic uint64_t tail; /* written by the producer only */
    _Alignas(64) _Atomic uint64_t head; /* written by the consumer only */
    _Alignas(64) uint64_t unused[16];
};
static_assert(sizeof(struct ring_control) == 256, "ring_control");
static_assert(offsetof(struct ring_control, head) == 64, "ring_control.head");

/* A sleeper's word (shm_ring/doorbell.h). */
struct doorbell_word {
    _Alignas(64) _Atomic uint32_t armed; /* enum doorbell_mode */
};
static_assert(sizeof(struct doorbell_word) == 64, "doorbell_word");

/* Sizes of the five rings, bytes. */
struct session_sizes {
    uint32_t submit, local, remote, reply_submit, reply_event;
};

/* The requests and notifications of a context, as its client counts them, for pwcctl; 0 from older
 * libraries.
 */
struct session_notices {
    _Alignas(64) _Atomic uint64_t started; /* requests for notifications that are under way */
    _Atomic uint64_t
        unexpected;           /* notifications that are kept because no request matches them yet */
    _Atomic uint64_t matched; /* notifications that requests have taken; only grows */
};

/* The call that a context's thread waits in; EXCHANGE includes calls that make a window or free a
 * team. */
enum session_wait {
    SESSION_WAITS_NOT = 0,
    SESSION_WAITS_EVENT = 1, /* for an event, a request, a word or a count */
    SESSION_WAITS_FLUSH = 2,
    SESSION_WAITS_BARRIER = 3,
    SESSION_WAITS_EXCHANGE = 4,
    SESSION_WAITS_ROOM = 5, /* for room to submit: in a call with PWC_WAIT, or in one that also
                               waits for the operation's end, as pwc_put_wait */
    SESSION_WAIT_KINDS
};

/* How a context's thread has waited, as its client reports it for pwcctl, and whether the client
 * fences for itself; 0 from older libraries. A call's time counts from its first yield or sleep on,
 * not its first looks. */
struct session_waits {
    _Alignas(64) _Atomic uint32_t call; /* enum session_wait: the call that waits now */
    _Atomic uint64_t waited_ns;         /* time in all calls that waited; only grows */
    _Atomic uint64_t asleep_ns;         /* the part of waited_ns asleep; only grows */
    _Atomic uint64_t asleep_since;      /* by the monotonic clock; 0: awake */
    /* 1: the client fences for itself when it rings submit_bell (letter S of shm_ring/doorbell.h).
     */
    _Atomic uint32_t fenced;
    /* 1: submit and reply_submit are nearly empty, and the sleeper does not wait for room, so it
     * need not be woken when the daemon has only taken records from there. Written before
     * event_bell is armed. Libraries before 0.7 leave 0. */
    _Atomic uint32_t spacious;
};
static_assert(offsetof(struct session_waits, fenced) == 32, "session_waits.fenced");
static_assert(offsetof(struct session_waits, spacious) == 36, "session_waits.spacious");

/*
 * The counts of a context (pwc/counter.h); each word only grows, and has one writer. `arrived` is
 * written after the data that it counts. `failed` counts a part of `ended`, and is written before
 * it.
 */
struct session_counts {
    _Atomic uint64_t ended;   /* operations of the context, whether they failed or not */
    _Atomic uint64_t failed;  /* operations of `ended` that failed */
    _Atomic uint64_t arrived; /* operations of peers that have changed the context's memory */
};

/* The part of the counts that the library writes. */
struct session_client_counts {
    /* Ended and failed: operations to neighbours, and operations whose local event the library
     * rewrites (SUBMIT_SLOT). Arrived: what has arrived by pairs that are gone (pair_abi.h). */
    _Alignas(64) struct session_counts counts;
    /* 1: a sleeper waits for `arrived`. 0: an arrival without an event rings no bell. */
    _Atomic uint32_t awaited;
};

struct session_shared {
    uint64_t magic;
    uint32_t version;
    uint32_t context; /* number of this context at its client */
    struct session_sizes sizes;
    uint32_t rank;
    uint32_t message_max; /* bytes of an active message's longest block: struct message and what
                             follows it */
    /* 1: the daemon fences for a client that rings submit_bell, unless waits.fenced is 1
     * (shm_ring/doorbell.h). */
    uint32_t fences;
    /* 1: the daemon takes SUBMIT_STRIDED. Daemons before 0.7 leave 0. */
    uint32_t strided;
    _Alignas(64) _Atomic uint32_t state; /* enum session_state, written by the daemon */
    /* Counts the daemon's news of neighbours: pairs made or gone (pair_abi.h). When the count
     * changes, a note may be in the wake socket, and a pair's `gone` may have changed. */
    _Atomic uint32_t neighbours;
    _Atomic uint32_t spilled; /* 1: remote events wait in the daemon, after the events in the
                                 ring */
    /* How this context's last call over the world has ended, for the next process of the daemon
     * (daemon/control/teams/team_answers.h). The library does not use it. */
    _Atomic uint64_t world_answer;
    /* The processor on which the daemon's progress thread runs: its number plus 1; 0: unknown
     * (daemons before 0.7). Written by the daemon. */
    _Atomic uint32_t processor;
    /* 1: the daemon's progress thread sleeps when it has nothing to do, and is in another scheduler
     * group than the client, so a yield hardly reaches it. 0: otherwise, or unknown (daemons before
     * 0.7). Written by the daemon. */
    _Atomic uint32_t apart;
    _Alignas(64) _Atomic uint64_t ended; /* operations of this context that have ended */
    _Atomic uint64_t released;       /* bytes of local event space given back without an event */
    _Atomic uint64_t reply_released; /* bytes of reply event space given back without an event */
    /* The daemon's part of the counts: without flushes, and without the part in
     * session_client_counts. */
    struct session_counts counts;
    /* 1 more than the operations of this context that have left their flows: such an operation has
     * ended, and its target has dealt with it. 0: unknown (daemons before 0.7). With
     * SUBMIT_LCE_SOURCE an operation may count in `ended` before. Written by the daemon. */
    _Atomic uint64_t left;
    /* Bit i % 64 of word i / 64: the client has a handler at index i. Written by the client. */
    _Alignas(64) _Atomic uint64_t handlers[SESSION_HANDLERS / 64];
    struct ring_control submit;
    struct ring_control local;
    struct ring_control remote;
    struct ring_control reply_submit;
    struct ring_control reply_event;
    struct doorbell_word submit_bell; /* the daemon sleeps, the client rings (its eventfd) */
    /* The client sleeps, the daemon rings (futex or socket): when it has shown events, and when it
     * has made room without an event, by taking submissions or replies (unless waits.spacious) or
     * by giving event space back. */
    struct doorbell_word event_bell;
    /* Bit i % 64 of word i / 64: operations over the remotes whose handle modulo SESSION_REMOTES is
     * i must go through the daemon, because one of these remotes has lost its region or its peer.
     * The daemon then reports why an operation fails. */
    _Alignas(64) _Atomic uint64_t ended_remotes[SESSION_REMOTES / 64];
    struct session_notices notices;      /* written by the client */
    struct session_waits waits;          /* written by the client */
    struct session_client_counts client; /* written by the client */
};
static_assert(offsetof(struct session_shared, state) == 64, "session.state");
static_assert(offsetof(struct session_shared, world_answer) == 80, "session.world_answer");
static_assert(offsetof(struct session_shared, processor) == 88, "session.processor");
static_assert(offsetof(struct session_shared, apart) == 92, "session.apart");
static_assert(offsetof(struct session_shared, ended) == 128, "session.ended");
static_assert(offsetof(struct session_shared, submit) == 256, "session.submit");
static_assert(offsetof(struct session_shared, local) == 512, "session.local");
static_assert(offsetof(struct session_shared, remote) == 768, "session.remote");
static_assert(offsetof(struct session_shared, handlers) == 192, "session.handlers");
static_assert(offsetof(struct session_shared, reply_submit) == 1024, "session.reply_submit");
static_assert(offsetof(struct session_shared, reply_event) == 1280, "session.reply_event");
static_assert(offsetof(struct session_shared, submit_bell) == 1536, "session.submit_bell");
static_assert(offsetof(struct session_shared, event_bell) == 1600, "session.event_bell");
static_assert(offsetof(struct session_shared, ended_remotes) == 1664, "session.ended_remotes");
static_assert(offsetof(struct session_shared, notices) == 3712, "session.notices");
static_assert(offsetof(struct session_shared, waits) == 3776, "session.waits");
static_assert(offsetof(struct session_shared, counts) == 152, "session.counts");
static_assert(offsetof(struct session_shared, left) == 176, "session.left");
static_assert(offsetof(struct session_shared, client) == 3840, "session.client");
static_assert(sizeof(struct session_shared) <= SESSION_DATA_OFFSET, "session header");

static inline uint64_t session_bytes(const struct session_sizes *sizes)
{
    return (uint64_t)SESSION_DATA_OFFSET + sizes->submit + sizes->local + sizes->remote +
           sizes->reply_submit + sizes->reply_event;
}

/*
 * Every record in a ring starts with its size in bytes (a multiple of 8, at least 8) and a kind.
 * Kind 0 is padding up to the end of the data area.
 *
 * A submission:
 *
 *     0        4     5     6       8         12        16       24      32     40     48
 *     +--------+-----+-----+-------+---------+---------+--------+-------+------+------+
 *     | size   | kind| code| flags | remote  | reserve | offset | length| lid  | rid  |
 *     +--------+-----+-----+-------+---------+---------+--------+-------+------+------+
 *     | lid_len| rid_len| segment  | local_offset | lid bytes | rid bytes | inline payload |
 *     +--------+--------+----------+--------------+-----------+-----------+----------------+
 *     48       50       52         56             64   each padded to 8 bytes
 *
 * A completion id of length 0 is the eight bytes by value in `lid` or `rid`; otherwise its bytes
 * follow. With SUBMIT_INLINE the payload follows too, else it is in `segment` at `local_offset`.
 * Only an inline payload of 1, 2, 4 or 8 bytes is placed by one store.
 *
 * An active message is such a record whose rid bytes are a block (struct message below, its
 * arguments, a Medium's payload): rid_len is the block's length, up to session_shared.message_max,
 * and rid 0. The reply_submit ring holds active messages only, each a reply: rid is the token of
 * the request, and `remote` is ignored, except for a Long, whose remote must lead to the requester.
 * A reply with SUBMIT_NO_RCE runs no handler: it says that the request gets no reply.
 *
 * SUBMIT_ATOMIC changes words of the remote region in place. `code` is operation and type
 * (proto/word_abi.h); the elements are adjacent from `offset` on, naturally aligned. Their operands
 * follow inline, packed, and `length` is the bytes of the operands:
 *
 *     SET ADD PROD MIN MAX AND OR XOR    | operand | operand | ...
 *     READ                               | 0       | 0       | ...   as long as the words, unused
 *     COMPARE_SWAP                       | expected, desired | expected, desired | ...
 *     MASKED_SWAP                        | mask, desired     | mask, desired     | ...
 *
 * With SUBMIT_FETCH, which a READ always has, the earlier values come back: the value of one
 * element in the local event's `bytes`; the values of 2 to SUBMIT_FETCH_MAX elements packed in
 * `segment` at `local_offset`. Where the status is -EBUSY, `bytes` is the number of elements that
 * are done; the others are unchanged.
 *
 * SUBMIT_VECTOR ends a vector: a series of records over one remote, all with SUBMIT_MORE but the
 * last one. The series holds long pieces, each a put or get record, and blocks of short pieces of a
 * put, each a SUBMIT_VECTOR with SUBMIT_INLINE. `code` is SUBMIT_PUT or SUBMIT_GET. `total` is, in
 * the last record, the bytes of the whole vector, in earlier records those of the block. The block:
 *
 *     0       2         8
 *     +-------+---------+---------------------+-------+---------+-----
 *     | bytes | offset  | bytes, padded to 8  | bytes | offset  | ...
 *     +-------+---------+---------------------+-------+---------+-----
 *
 * SUBMIT_STRIDED is one more record of such a series, for elements of one length at equal distances
 * on both sides. The daemon reads them from `segment`, the first one at `local_offset`, so they
 * must not change until the record has ended. `total` is as above, `code` is SUBMIT_PUT; the inline
 * bytes are a struct submit_strided. Only a daemon that has set `strided` takes this kind.
 *
 * A series may also end with a SUBMIT_SIGNAL or a SUBMIT_LONG of no bytes, whose payload the puts
 * before it have carried; `placed` of the Long is the payload's length. The records of a series
 * need not be submitted at once, but no other record over a remote of the same peer may come
 * between them.
 *
 * Each record has an end of its own. When a record fails at its origin, the last record fails too,
 * so that there is no remote event. A record fails at its target only because the region or the
 * context has ended, so the last record fails there, too.
 *
 * SUBMIT_SIGNAL is the record of a put whose rid bytes are a block (struct signal below); rid is 0.
 * A signal has no remote event: its target sees the word.
 *
 * SUBMIT_WAKE is no operation and has no end: it wakes a sleeping context of this node. That is the
 * context of `remote`; or, where `remote` is SUBMIT_NO_REMOTE, the context that `rid` names (rank
 * in the low, context in the high 32 bits), if that has bound this one. All other fields are 0.
 *
 * SUBMIT_COLLECTIVE and SUBMIT_TEAM_WAKE are no operations either, and have no end. `remote` is the
 * handle of a team that this context is a member of, and lengths of ids, flags and reserve are 0. A
 * TEAM_WAKE wakes the sleeping members of the team's area (team_abi.h); its other fields are 0. A
 * COLLECTIVE says that this engine's part of one call of the team is in the area. Its fields are:
 *
 *     code           enum team_kind, or TEAM_MISMATCH
 *     offset         the instance's sequence
 *     length         bytes a member, as in the table of team_abi.h
 *     lid            the call's signature
 *     rid            the number of its data row, or TEAM_LINES
 *     segment        the participant of the root, or 0
 *     local_offset   0
 *
 * Each instance has one such record at an engine: from the member that comes last; except that for
 * a bcast or a scatter the root sends it at its own engine. An honest library sends no second one,
 * and none for an instance outside the team's window. Records for a team that this context has left
 * are dropped.
 */
enum submit_kind {
    SUBMIT_PAD = 0,
    SUBMIT_PUT = 1,
    SUBMIT_GET = 2,
    SUBMIT_FLUSH = 3,       /* never a record: ends when everything before it towards that peer has
                               ended */
    SUBMIT_SHORT = 4,       /* active message: its block alone */
    SUBMIT_MEDIUM = 5,      /* active message: its payload is in the block */
    SUBMIT_LONG = 6,        /* active message: a put of its payload, then its block */
    SUBMIT_WAKE = 7,        /* no operation: see above */
    SUBMIT_ATOMIC = 8,      /* operation and type are in `code` */
    SUBMIT_SIGNAL = 9,      /* a put that changes a word of its region when its payload is placed */
    SUBMIT_VECTOR = 10,     /* short pieces of a vector, or its end: see above */
    SUBMIT_COLLECTIVE = 11, /* no operation: a part of a collective is ready, see above */
    SUBMIT_TEAM_WAKE = 12,  /* no operation: wakes members of a team */
    SUBMIT_STRIDED = 13,    /* equal elements at equal distances, of a vector: see above */
    SUBMIT_KINDS
};

/* Whether operations of this kind are active messages. */
static inline bool submit_is_message(uint8_t kind)
{
    return kind >= SUBMIT_SHORT && kind <= SUBMIT_LONG;
}

/* The kind as tools print it, or NULL for a number that is no kind. */
static inline const char *submit_kind_name(uint8_t kind)
{
    static const char *const names[SUBMIT_KINDS] = {
        [SUBMIT_PAD] = "notification",
        [SUBMIT_PUT] = "put",
        [SUBMIT_GET] = "get",
        [SUBMIT_FLUSH] = "flush",
        [SUBMIT_SHORT] = "short",
        [SUBMIT_MEDIUM] = "medium",
        [SUBMIT_LONG] = "long",
        [SUBMIT_WAKE] = "wake",
        [SUBMIT_ATOMIC] = "atomic",
        [SUBMIT_SIGNAL] = "signal",
        [SUBMIT_VECTOR] = "vector",
        [SUBMIT_COLLECTIVE] = "collective",
        [SUBMIT_TEAM_WAKE] = "team-wake",
        [SUBMIT_STRIDED] = "strided",
    };

    return kind < SUBMIT_KINDS ? names[kind] : NULL;
}

enum submit_flags {
    SUBMIT_NO_LCE = 1 << 0,
    SUBMIT_NO_RCE = 1 << 1,
    SUBMIT_LCE_SOURCE = 1 << 2,
    SUBMIT_FENCE = 1 << 3,
    SUBMIT_UNORDERED = 1 << 4,
    SUBMIT_PROTOCOL = 3 << 5, /* how a separate payload travels: enum submit_protocol; 0: as the
                                 daemon chooses */
    SUBMIT_NO_REPLY = 1 << 7, /* a request without a reply: holds no reply event space */
    SUBMIT_NOTIFY = 1 << 8,   /* the remote event is a notification, its rid by value */
    SUBMIT_SLOT = 1 << 9,     /* lid is a number of the library's own: the local event says so */
    SUBMIT_FETCH = 1 << 10,   /* an atomic brings back the earlier values */
    SUBMIT_MORE = 1 << 11,    /* the next record belongs to the same series */
    SUBMIT_INLINE = 1 << 15,
};
#define SUBMIT_FLAGS_ALL      0x8fffu
#define SUBMIT_NO_REMOTE      UINT32_MAX
#define SUBMIT_PROTOCOL_SHIFT 5
#define SUBMIT_FETCH_MAX      16u /* elements of one atomic whose values come back */

enum submit_protocol {
    SUBMIT_ORDERED = 1 << 5,    /* payload and record back to back, on a fabric that orders them */
    SUBMIT_REASSEMBLE = 2 << 5, /* back to back, matched at the target */
    SUBMIT_CHAIN = 3 << 5,      /* the record leaves after the payload's completion */
};

struct submit_record {
    uint32_t size;
    uint8_t kind;
    uint8_t code; /* for an atomic: proto/word_abi.h; for a vector: the kind of its pieces; else
                     0 */
    uint16_t flags;
    uint32_t remote; /* the handle from the bind */
    uint32_t
        reserve; /* bytes of local event space that this operation holds: event_bytes(lid_len) */
    union {
        uint64_t offset;   /* in the remote region */
        uint64_t total;    /* for a SUBMIT_VECTOR or a SUBMIT_STRIDED: bytes that its remote event
                              shows */
        uint64_t instance; /* for a SUBMIT_COLLECTIVE: its sequence in the team */
    };
    uint64_t length; /* bytes to move; 0 is a pure notification */
    union {
        uint64_t lid;
        uint64_t signature; /* of a SUBMIT_COLLECTIVE */
    };
    union {
        uint64_t rid;
        uint64_t data_row; /* of a SUBMIT_COLLECTIVE */
        uint64_t token;    /* of the request that a reply answers */
        uint64_t endpoint; /* rank and context that SUBMIT_WAKE wakes */
    };
    uint16_t lid_len;
    uint16_t rid_len;
    union {
        uint32_t segment;
        uint32_t root; /* of a SUBMIT_COLLECTIVE: participant */
    };
    union {
        uint64_t local_offset;
        /* For a Long of no bytes that ends a series: the bytes from `offset` on that the series has
         * placed, which are the payload that the Long's handler gets. */
        uint64_t placed;
    };
};
static_assert(sizeof(struct submit_record) == 64, "submit_record");
static_assert(offsetof(struct submit_record, code) == 5, "submit_record.code");
static_assert(offsetof(struct submit_record, lid_len) == 48, "submit_record.lid_len");

/* A short piece, in a submission's block and on the wire: its offset in the region and its length;
 * its bytes follow. */
struct vector_piece {
    uint64_t place;
};
static_assert(sizeof(struct vector_piece) == 8, "vector_piece");
#define VECTOR_LENGTH_BITS 16
#define VECTOR_OFFSET_BITS 48

/* The most pieces of one vector, and so the most elements of one strided record. */
#define VECTOR_PIECES_MAX 1024u

/* The elements of a SUBMIT_STRIDED: element i is i * remote_stride bytes from `offset` on, and i *
 * local_stride bytes from the record's `local_offset`. Together they are one packed payload at
 * most. */
struct submit_strided {
    uint64_t offset; /* of the first element, in the remote region */
    int64_t local_stride, remote_stride;
    uint32_t element; /* bytes of each, not 0 */
    uint32_t count;   /* 1 to VECTOR_PIECES_MAX */
};
static_assert(sizeof(struct submit_strided) == 32, "submit_strided");

/* The most that a record of this kind carries inline: a block holds at least one packed payload; a
 * description may be longer than one. */
static inline uint32_t submit_inline_max(uint8_t kind, uint32_t packed_max)
{
    if (kind == SUBMIT_STRIDED)
        return sizeof(struct submit_strided);
    return kind == SUBMIT_VECTOR ? (uint32_t)sizeof(struct vector_piece) + ((packed_max + 7u) & ~7u)
                                 : packed_max;
}

/*
 * The block of an active message: in a submission's rid bytes, on the wire, in an event's id bytes.
 *
 *     0       2      3           4      8        16           20      24            28  32
 *     +-------+------+-----------+------+--------+------------+-------+-------------+---+------
 *     | index | kind | arguments | slot | offset | generation | token | payload_len | d | 8 bytes
 *     +-------+------+-----------+------+--------+------------+-------+-------------+---+------
 *     of each argument, then the payload_len bytes of a Medium, padded to 8
 *
 * The sender's library fills in index, kind, arguments and payload_len; the daemons fill in the
 * rest. slot, generation and offset say where in the target's regions a Long's payload was placed.
 * d (deferred) says that a handler in the daemon leaves the work to the client. token, in the event
 * of a request, is the number that a reply must name (WIRE_NONE: no reply is possible).
 */
struct message {
    uint16_t index; /* of the handler */
    uint8_t kind;   /* enum submit_kind */
    uint8_t arguments;
    uint32_t slot;
    uint64_t offset;
    uint32_t generation;
    uint32_t token;
    uint32_t payload_len; /* of a Medium; else 0 */
    uint32_t deferred;    /* 1, in the event of a request: a handler in the daemon leaves the work
                             to the client */
};
static_assert(sizeof(struct message) == 32, "message");

/*
 * The block of a put with signal: in a submission's rid bytes, and on the wire.
 *
 *     0        8       16     20           24     25     32
 *     +--------+-------+------+------------+------+------+
 *     | offset | value | slot | generation | code | -    |
 *     +--------+-------+------+------------+------+------+
 *
 * The library fills in offset, value and code; the origin's daemon fills in the region's slot and
 * generation.
 */
struct signal {
    uint64_t offset; /* of the word, in the region of the put */
    uint64_t value;
    uint32_t slot;
    uint32_t generation;
    uint8_t code; /* SET or ADD of a U64: proto/word_abi.h */
    uint8_t unused[7];
};
static_assert(sizeof(struct signal) == 32, "signal");
static_assert(offsetof(struct signal, code) == 24, "signal.code");

/* Bytes of the longest block when a Medium's payload has up to `medium_max` bytes. */
static inline uint32_t message_bytes_max(uint32_t medium_max)
{
    return (uint32_t)sizeof(struct message) + 8u * SESSION_ARGUMENTS_MAX + medium_max;
}

/*
 * An event, in the local, the remote or the reply_event ring:
 *
 *     0      4      5    6        8        12       16     24      32         40    48
 *     +------+------+----+--------+--------+--------+------+-------+----------+-----+----------+
 *     | size | kind | op | id_len | status | origin | peer | bytes | sequence | id  | id bytes |
 *     +------+------+----+--------+--------+--------+------+-------+----------+-----+----------+
 */
enum event_kind {
    EVENT_PAD = 0,
    EVENT_LOCAL = 1,
    EVENT_REMOTE = 2,
    EVENT_REQUEST = 3, /* an active message: in the remote ring, its block as the id */
    EVENT_REPLY = 4,   /* a reply: in the reply_event ring, its block as the id */
    EVENT_NOTIFY = 5,  /* a notification (SUBMIT_NOTIFY): in the remote ring, its id by value */
    EVENT_OFFLOAD = 6, /* from an offload: in the remote ring, struct offload_word as its id */
    EVENT_PEER = 7,    /* a peer's context has ended, or is back: in the remote ring, id 0 */
};

/* `op` of an EVENT_PEER. */
enum peer_event {
    PEER_ENDED = 0, /* status 0: its client has closed it, -EHOSTDOWN: it was lost */
    PEER_BACK = 1,  /* a context with the number of one that has ended has bound this one, or was
                     * bound by it (but this event may also appear when none has ended). Status 0 */
};

/* The operations that an offload's handlers run on. */
enum offload_takes {
    OFFLOAD_MESSAGES = 0, /* active messages at one index of the context */
    OFFLOAD_PUTS = 1,     /* puts to a region */
};

/* `op` of an EVENT_OFFLOAD. */
enum offload_event {
    OFFLOAD_OWN = 1,    /* a handler has posted it: id and value are the handler's */
    OFFLOAD_ENDED = 2,  /* handlers have dealt with a message; id: its first argument, or 0; value:
                         * bytes of its payload that were not dropped */
    OFFLOAD_FAILED = 3, /* a message has ended with a failure, and its origin gets the same status:
                         * a handler has returned FAIL, or a crash of the daemon has cut the
                         * message; id and value as for OFFLOAD_ENDED */
    OFFLOAD_FAULT = 4,  /* a handler has ended by a fault; value: the faulting address */
};

/*
 * The id of an EVENT_OFFLOAD, whose `peer` is the origin of the message:
 *
 *     0        8    16      24      28      30      32
 *     +--------+----+-------+-------+-------+-------+
 *     | cookie | id | value | place | stage | fault |
 *     +--------+----+-------+-------+-------+-------+
 */
struct offload_word {
    uint64_t cookie; /* of the offload */
    uint64_t id;
    uint64_t value;
    uint32_t place; /* for a fault: the instruction */
    uint16_t stage; /* the handler, enum handler_stage */
    uint16_t fault; /* enum run_fault, or 0 */
};
static_assert(sizeof(struct offload_word) == 32, "offload_word");

#define EVENT_SLOT 0x80u /* a bit in `op` of a local event: the operation had SUBMIT_SLOT */

struct event_record {
    uint32_t size;
    uint8_t kind;
    uint8_t op; /* enum submit_kind; in a local event perhaps with EVENT_SLOT added */
    uint16_t id_len;
    int32_t status;    /* 0 or a negative errno */
    uint32_t origin;   /* node of the origin */
    uint64_t peer;     /* the other side: rank in the low, context in the high 32 bits */
    uint64_t bytes;    /* moved; for an atomic's local event see SUBMIT_ATOMIC */
    uint64_t sequence; /* of the operation at its origin */
    uint64_t id;       /* by value when id_len is 0 */
};
static_assert(sizeof(struct event_record) == 48, "event_record");

/* `op` of the local event of an operation that was submitted with these flags. */
static inline uint8_t event_op(uint8_t kind, uint16_t flags)
{
    return flags & SUBMIT_SLOT ? kind | EVENT_SLOT : kind;
}

static inline uint32_t abi_pad8(uint32_t n)
{
    return (n + 7u) & ~7u;
}

/* Bytes that an event with an id of `id_len` bytes takes in its ring. */
static inline uint32_t event_bytes(uint32_t id_len)
{
    return (uint32_t)sizeof(struct event_record) + abi_pad8(id_len);
}

#define EVENT_BYTES_MAX ((uint32_t)sizeof(struct event_record) + SESSION_ID_MAX)

/*
 * Local event space: the sum of event_bytes over operations in flight and events not yet consumed
 * never exceeds session_local_limit, so an event always finds its slot, wrap padding included. The
 * library keeps to this limit; the daemon quarantines a client that exceeds it by more than the
 * padding (EVENT_BYTES_MAX).
 */
static inline uint32_t session_local_limit(uint32_t local_size)
{
    return local_size - 2u * EVENT_BYTES_MAX;
}

/*
 * Reply event space: each request without SUBMIT_NO_REPLY holds event_bytes(message_max) of the
 * reply_event ring from submission until its reply's event has been consumed, or until the daemon
 * gives the bytes back without an event (`reply_released`: the request failed, or its reply runs no
 * handler). The limit is as above, with the longest reply in place of EVENT_BYTES_MAX.
 */
static inline uint32_t session_reply_limit(uint32_t reply_size, uint32_t message_max)
{
    return reply_size - 2u * event_bytes(message_max);
}

#endif
