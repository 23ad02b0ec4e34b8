/*
 * The wire: the records that one daemon writes into another's ledger, and the immediate data of
 * each fabric write.
 *
 * A ledger is a stream of records at positions that only grow. A record is contiguous in the ring;
 * a pad fills up to the ring's end. Any contiguous run of records travels as one fabric write,
 * announced by its immediate data; the first record of a run holds the run's length.
 *
 *     position p        p+24              p+80                 ring end
 *     +-----------------+-----------------+---------+----------+
 *     | FAIL  run=136   | PUT  run=0      | ACK     | PAD      |   one run: 136 bytes, one write
 *     +-----------------+-----------------+---------+----------+
 *
 * Immediate data, 32 bits (EFA and verbs have no more):
 *
 *     31  30 29                16 15                 0
 *     +-----+--------------------+--------------------+
 *     | kind| sender             | run or nonce       |
 *     +-----+--------------------+--------------------+
 *
 * The sender field is the number of the sender's node and engine (control/nodes/nodes.h).
 *
 * Little-endian; both ends of a link run the same byte order (the handshake's version says which).
 */
#ifndef PWC_PROTO_WIRE_ABI_H
#define PWC_PROTO_WIRE_ABI_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_VERSION 13u
#define WIRE_NONE    UINT32_MAX

enum wire_immediate_kind {
    WIRE_RUN = 0,     /* the number is the run's, modulo 2^16 */
    WIRE_PAYLOAD = 1, /* the number is the nonce that the operation's record also carries */
};

static inline uint32_t wire_immediate(uint32_t kind, uint32_t node, uint16_t number)
{
    return kind << 30 | (node & 0x3fffu) << 16 | number;
}

static inline uint32_t wire_immediate_node(uint32_t immediate)
{
    return immediate >> 16 & 0x3fffu;
}

enum wire_kind {
    WIRE_PAD = 0,
    WIRE_ACK = 1,      /* consumed, cumulative; sent after every verdict that it covers */
    WIRE_WANT = 2,     /* the sender has no credit: acknowledge, and offer a larger ring */
    WIRE_PUT = 3,      /* packed: id and payload follow */
    WIRE_PLACED = 4,   /* two-put: the payload travels on its own */
    WIRE_GOT = 5,      /* the origin has read */
    WIRE_NOTE = 6,     /* an operation's id, without a payload */
    WIRE_FAIL = 7,     /* target to origin: this operation failed */
    WIRE_REFUSE = 8,   /* target to origin: no room; hold the flow, and send again from this
                          operation on after GO */
    WIRE_STOP = 9,     /* target to origin: hold the flow */
    WIRE_GO = 10,      /* target to origin: release the flow */
    WIRE_GONE = 11,    /* target to origin: the target's context has ended */
    WIRE_CLOSE = 12,   /* origin to target: the flow has ended */
    WIRE_BIND = 13,    /* origin to target: resolve an endpoint, perhaps with a key */
    WIRE_BOUND = 14,   /* target to origin: the answer to BIND */
    WIRE_REVOKE = 15,  /* owner to origin: a region is withdrawn */
    WIRE_REVOKED = 16, /* origin to owner: the answer to REVOKE: nothing here reaches the region any
                          more */
    WIRE_OFFER = 17,   /* receiver to sender: a larger ring is ready */
    WIRE_SWITCH = 18,  /* sender to receiver: last record in the old ring */
    WIRE_BATCH = 19,   /* small packed puts of one flow into one region, one after the other */
    WIRE_VOID = 20,    /* a payload's nonce is free: its record will come later, without the
                          nonce */
    WIRE_DECLINE = 21, /* sender to receiver: there is no memory for the larger ring */
    WIRE_ATOMIC = 22,  /* changes words in place: id and operands follow */
    WIRE_RESULT = 23,  /* target to origin: the values that an atomic fetched */
    WIRE_SIGNAL = 24,  /* a PUT with a signal */
    WIRE_SIGNAL_PLACED = 25, /* a PLACED with a signal, or a signal without a payload */
    WIRE_VECTOR = 26,        /* short pieces of a vector, or its end */
    WIRE_ATOMICS = 27,  /* small atomics of one flow and one code into one region, like a BATCH */
    WIRE_COLL = 28,     /* a letter of a team: data of one round of a collective */
    WIRE_FLOOR = 29,    /* a letter of a team: which instances the sender has finished */
    WIRE_BREAK = 30,    /* a letter of a team: the team is broken */
    WIRE_PACKET = 31,   /* a put to an offload's region, or a part of it: handlers run on it */
    WIRE_OBSERVED = 32, /* like GOT, for a region whose offload observes: a handler runs */
    WIRE_STRIDED = 33,  /* like VECTOR, for elements of one length at equal distances */
    WIRE_KINDS
};

enum wire_flags {
    WIRE_NO_EVENT = 1 << 0, /* no remote event */
    WIRE_NONCE = 1 << 1,    /* the payload has announcements of its own, which are matched by
                               nonce */
    WIRE_MESSAGE = 1 << 2,  /* an active message: the id is its block */
    WIRE_REPLY = 1 << 3,    /* with MESSAGE, a reply: the block's token is the requester's flow, and
                               `flow` is the replier's own number, which a FAIL names */
    WIRE_NO_REPLY = 1 << 4, /* with MESSAGE, a request without a reply */
    WIRE_NOTIFY = 1 << 5,   /* the event is a notification: its id is by value */
    WIRE_CUT = 1 << 6,      /* in the last PACKET of a put that has failed at its origin: no
                               bytes */
    WIRE_PART = 1 << 6,   /* in a PUT, PLACED, VECTOR or STRIDED without event: more records of its
                             vector follow */
    WIRE_SOON = 1 << 7,   /* in a VECTOR or STRIDED with PART: its ACK is due as early as that of
                             the last part */
    WIRE_STORED = 1 << 7, /* in the only PACKET of a put whose bytes travel separately */
};

/* The head of every record. */
struct wire_record {
    uint16_t words; /* size in 8-byte words, head included */
    uint8_t kind;
    uint8_t flags;
    uint32_t run; /* bytes of the run, in its first record; else 0 */
};
static_assert(sizeof(struct wire_record) == 8, "wire_record");

/* PLACED, GOT, NOTE; and the start of PUT. An id longer than 8 bytes follows, padded to 8. With
 * WIRE_MESSAGE the block of an active message follows instead (a Short or Medium is a NOTE). In
 * SIGNAL and SIGNAL_PLACED the id is a struct signal (session_abi.h). */
struct wire_op {
    struct wire_record head;
    uint32_t flow;     /* the target's number for this pair of contexts; see WIRE_REPLY */
    uint32_t sequence; /* the operation's number in this flow, at its origin */
    union {
        uint64_t rid;
        uint64_t count; /* BATCH: number of puts; ATOMICS: number of atomics */
    };
    uint16_t rid_len; /* 0: by value */
    union {
        uint16_t nonce;
        uint16_t atomic; /* ATOMIC and ATOMICS: the code, and WIRE_FETCH */
    };
    uint32_t length; /* bytes moved */
};
static_assert(sizeof(struct wire_op) == 32, "wire_op");

/* OBSERVED, and the start of PUT; the id follows. */
struct wire_put {
    struct wire_op op;
    uint32_t slot; /* the region's */
    uint32_t generation;
    uint64_t offset; /* in the region */
};
static_assert(sizeof(struct wire_put) == 48, "wire_put");

/*
 * ATOMIC: like a PUT with operands as its payload, laid out as in a submission (session_abi.h);
 * length is the bytes of the words. In an atomic that fetches, wire_fetch_pad bytes of padding
 * follow the operands.
 *
 *     op | slot, generation | offset | id, padded to 8 | operands, padded to 8 | padding
 */
#define WIRE_FETCH (1u << 8) /* in wire_op.atomic: the target answers by a RESULT */

/*
 * RESULT: struct wire_flow, then packed values: of `done` elements of an ATOMIC, or of `done`
 * atomics of ATOMICS, 8 bytes each. These are all elements or atomics, or, with status -EBUSY, the
 * first ones.
 *
 *     head | flow | sequence | status | done | values, padded to 8
 *
 * A RESULT is no longer than three quarters of the record that it answers, so that a ledger drains
 * even while its verdicts wait (docs/active-messages.md).
 */
#define WIRE_RESULT_VALUES 64u /* of 8 bytes, at most */

/* Bytes of padding in an ATOMIC that fetches `values` bytes, padded to 8. */
static inline uint32_t wire_fetch_pad(uint32_t values)
{
    return values > 48 ? 32 : 0;
}

/*
 * BATCH: count is the number of puts, length the sum of their payloads' bytes. The puts follow:
 *
 *     rid | offset << 16, length | payload, padded to 8 | rid | ...
 *
 * All puts are placed, or all fail; then each has its event. ATOMICS has operands in place of
 * payloads, one element and one operand for each atomic; in a verdict with -EBUSY `done` says how
 * many atomics were done, from the first on.
 *
 * In a BATCH to a region whose BOUND has named a packet size each put is a packet of its own, and
 * ends on its own. Where some fail, one FAIL says how each has ended; `done` is the number of puts:
 *
 *     head | flow | sequence | status | done | a byte for each: its errno, or 0; padded to 8
 */
#define WIRE_BATCH_PUTS 64u /* puts in a BATCH to such a region, at most */
struct wire_batch {
    struct wire_op op;
    uint32_t slot; /* the region's */
    uint32_t generation;
};
static_assert(sizeof(struct wire_batch) == 40, "wire_batch");

struct wire_batch_put {
    uint64_t rid;
    uint64_t place; /* offset in the region and length */
};
static_assert(sizeof(struct wire_batch_put) == 16, "wire_batch_put");
#define BATCH_LENGTH_BITS 16
#define BATCH_OFFSET_BITS 48

/*
 * VECTOR: short pieces of a vector of puts, as in a submission (session_abi.h), after the id:
 *
 *     op | slot, generation | id, padded to 8 | offset << 16, length | bytes, padded to 8 | ...
 *
 * All pieces of a record are placed, or all fail. The last record of a vector has the event. In the
 * last record, length is the bytes of the whole vector, at least those of the record's own pieces.
 */
struct wire_vector {
    struct wire_op op;
    uint32_t slot; /* the region's */
    uint32_t generation;
};
static_assert(sizeof(struct wire_vector) == 40, "wire_vector");

/*
 * STRIDED: a record of a vector of puts, as VECTOR. Its pieces are `count` elements of `element`
 * bytes each, of which element i is placed at offset + i * stride:
 *
 *     op | slot, generation | offset | stride | element, count | id, padded to 8 | elements, padded
 */
struct wire_strided {
    struct wire_op op;
    uint32_t slot; /* the region's */
    uint32_t generation;
    uint64_t offset;
    int64_t stride;
    uint32_t element; /* bytes, not 0 */
    uint32_t count;   /* 1 to VECTOR_PIECES_MAX */
};
static_assert(sizeof(struct wire_strided) == 64, "wire_strided");

/*
 * PACKET: a put to a region whose BOUND has named a packet size is cut into records of that size,
 * of which the last may be shorter. All of them carry the same sequence number, and come in order:
 *
 *     op | slot, generation | offset | total | at | id, padded to 8 | bytes, padded to 8
 *
 * A packet's length is the number of its own bytes, which begin `at` bytes into the put's `total`;
 * offset is the put's. The first and the last packet have the id. A packet that does not fit the
 * packets before it ends the link, with two exceptions: a packet that the target has done already
 * is skipped, and packets after a refused one are dropped, because they come again.
 *
 * With WIRE_STORED the PACKET is the only record of a put to a region whose BOUND says so: the
 * bytes are in the region already. Its length is 0 and `at` is `total`, which is not 0. With
 * WIRE_NONCE the bytes have announcements of their own, and a struct wire_pieces follows the id, as
 * in PLACED; a record that the target has refused comes again without a nonce.
 */
struct wire_packet {
    struct wire_put put;
    uint32_t total;
    uint32_t at;
};
static_assert(sizeof(struct wire_packet) == 56, "wire_packet");
#define WIRE_PACKET_UNIT 64u /* packet sizes are multiples of this */

/* After the id of a PLACED with WIRE_NONCE: the number of writes that carry its payload, each
 * announced with that nonce. */
struct wire_pieces {
    uint32_t count; /* 1 to WIRE_PIECES_MAX */
    uint32_t unused;
};
static_assert(sizeof(struct wire_pieces) == 8, "wire_pieces");
#define WIRE_PIECES_MAX UINT16_MAX

/* VOID, with the flag WIRE_NONCE: `pieces` pieces of the nonce's payload have been sent. */
struct wire_void {
    struct wire_record head;
    uint16_t nonce;
    uint16_t unused;
    uint32_t pieces;
};
static_assert(sizeof(struct wire_void) == 16, "wire_void");

struct wire_ack {
    struct wire_record head;
    uint64_t consumed;
};
static_assert(sizeof(struct wire_ack) == 16, "wire_ack");

/* FAIL, RESULT, REFUSE, STOP, GO, GONE, CLOSE. A CLOSE with flow WIRE_NONE ends a flow of replies,
 * for which the requester has no number: once the CLOSE is acknowledged, nothing under way names
 * that flow. The status of GONE and CLOSE says why the sender's context leaves: WIRE_ENDED: its
 * client has closed it; -EHOSTDOWN: its client is lost; 0, in a CLOSE: the context still exists and
 * has unbound. */
#define WIRE_ENDED 1
struct wire_flow {
    struct wire_record head;
    uint32_t flow; /* number at the receiver of this record */
    uint32_t sequence;
    int32_t status;
    uint32_t done; /* in a RESULT, or an atomic's FAIL: see RESULT; in a FAIL with bytes after it:
                      their number; in a REFUSE: bytes of a put in packets that were dealt with;
                      else 0 */
};
static_assert(sizeof(struct wire_flow) == 24, "wire_flow");
#define WIRE_RESULT_BYTES_MAX ((uint32_t)sizeof(struct wire_flow) + 8u * WIRE_RESULT_VALUES)

/* REVOKE, REVOKED */
struct wire_region {
    struct wire_record head;
    uint32_t slot;
    uint32_t generation;
};
static_assert(sizeof(struct wire_region) == 16, "wire_region");

struct wire_bind {
    struct wire_record head;
    uint32_t remote;      /* the origin's handle, for the answer */
    uint32_t uid;         /* the job's user */
    uint32_t flow;        /* the target's number of the flow if this pair of contexts has one
                             already, else WIRE_NONE */
    uint32_t origin_flow; /* the origin's number of the flow */
    uint64_t origin;      /* endpoint: rank and context */
    uint64_t target;      /* endpoint */
    uint32_t has_key;
    uint32_t slot;
    uint32_t generation;
    uint32_t unused;
    uint8_t secret[16];
    char job[64];
};
static_assert(sizeof(struct wire_bind) == 136, "wire_bind");

struct wire_bound {
    struct wire_record head;
    uint32_t remote;
    int32_t status;
    uint32_t flow;
    uint16_t rights; /* the region's, and WIRE_BOUND_STORES, WIRE_BOUND_OBSERVES */
    uint16_t packet; /* for a region of an offload: the size of PACKETs, in WIRE_PACKET_UNITs; else
                        0 */
    uint64_t length;
    uint64_t address;
    uint64_t key;
};
static_assert(sizeof(struct wire_bound) == 48, "wire_bound");
/* In wire_bound.rights, with a packet size: the origin sends puts that are not packed with
 * WIRE_STORED. */
#define WIRE_BOUND_STORES (1u << 15)
/* In wire_bound.rights, with a packet size: each get has the record OBSERVED, also without an
 * event. */
#define WIRE_BOUND_OBSERVES (1u << 14)

struct wire_offer {
    struct wire_record head;
    uint64_t address;
    uint64_t key;
    uint32_t bytes;
    uint32_t unused;
};
static_assert(sizeof(struct wire_offer) == 32, "wire_offer");

/*
 * COLL, FLOOR, BREAK: letters, by which the engines of a team's members (its participants) work on
 * collectives. No letter waits for another one: each is processed when it arrives.
 *
 * COLL: data of one round of one instance, from `from` to the receiver, in one record where the
 * ring has room for it. Else the letter is sent in several records, in order; `at` says where the
 * data of each begins, and all but the last have a multiple of WIRE_COLL_UNIT bytes. A letter may
 * arrive before the receiver's own ranks have called, so it contains all that a participant must
 * know about the call.
 *
 *     0      8      16         24          32      40     44     48     52
 *     +------+------+----------+-----------+-------+------+------+------+--------+
 *     | head | team | sequence | signature | floor | from | root | rank | length |
 *     +------+------+----------+-----------+-------+------+------+------+--------+
 *     | bytes | kind | row | round | at   | schedule | data, padded to 8
 *     +-------+------+-----+-------+------+----------+----------------- - -
 *     56      60     61    62      64     68         72
 */
struct wire_coll {
    struct wire_record head;
    uint64_t team;      /* the team's number */
    uint64_t sequence;  /* of the instance */
    uint64_t signature; /* of the call (team_abi.h) */
    uint64_t floor;     /* the sender's floor, as in FLOOR */
    uint32_t from;      /* participant */
    uint32_t root;      /* participant; 0: the kind has none */
    uint32_t rank;      /* the lowest team rank of the sender's members */
    uint32_t length;    /* bytes for each member */
    uint32_t bytes;     /* bytes of the letter's data, in all its records */
    uint8_t kind;       /* enum team_kind */
    uint8_t row;        /* number of the data row, or WIRE_COLL_LINES */
    uint16_t round;
    uint32_t at;       /* where this record's data begins in the letter's data */
    uint32_t schedule; /* the sender's choice: a row of daemon/engine/coll/table.c */
};
static_assert(sizeof(struct wire_coll) == 72, "wire_coll");
static_assert(offsetof(struct wire_coll, from) == 40, "wire_coll.from");
static_assert(offsetof(struct wire_coll, bytes) == 56, "wire_coll.bytes");
#define WIRE_COLL_UNIT  64u
#define WIRE_COLL_LINES 255u

/* FLOOR: the sender has finished all instances below `floor`, and none of their letters are under
 * way. The receiver sends nothing for an instance that is a window or more above `floor`. */
struct wire_floor {
    struct wire_record head;
    uint64_t team;
    uint64_t floor;
    uint64_t wanted; /* answer as soon as your own floor is at least this; 0: no answer wanted */
    uint32_t from;   /* participant */
    uint32_t unused;
};
static_assert(sizeof(struct wire_floor) == 40, "wire_floor");

/* BREAK: all calls of this team that have not ended end with `status`, as in struct team_broken.
 * BREAK is also the answer to a COLL or a FLOOR for a team that the receiver does not know. */
struct wire_break {
    struct wire_record head;
    uint64_t team;
    uint64_t sequence;
    uint64_t signature[2];
    uint32_t rank[2];
    int32_t status;
    uint32_t from; /* participant; WIRE_NONE: the sender does not know the team */
};
static_assert(sizeof(struct wire_break) == 56, "wire_break");

#endif
