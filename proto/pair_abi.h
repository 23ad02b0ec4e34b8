/*
 * A pair: memory shared by two contexts of one node, user and job, by which one reaches the other
 * without the daemon. A pair has one direction. Its origin writes requests: active messages, and
 * records of its puts, gets and atomics, which it has done in the target's memory. Its target
 * answers active messages. docs/same-node.md says why this is right.
 *
 * The daemon creates the pair (a sealed memfd) and passes it to both sides. The pair holds two
 * single-producer single-consumer rings of cache lines (shm_ring/pair.h says how they work):
 * requests from the origin to the target, and answers back.
 *
 *     offset 0                                              4096             135168
 *     +--------+------+----------+---------+--------+--------+----------------+---------------+
 *     | header | gone | requests | answers | origin | target | lines of       | lines of      |
 *     |        |      |  pair_ring of each |  pair_side of   | requests, 2048 | answers, 2048 |
 *     |        |      |                    |  each           |                |               |
 *     +--------+------+----------+---------+--------+--------+----------------+---------------+
 *     0        64     128        256       384      512
 *
 * A record is one line; the bytes of a long completion id continue in the lines after it:
 *
 *     0          4      5       6        8       16     24
 *     +----------+------+-------+--------+-------+------+------------------------+
 *     | sequence | kind | flags | id_len | bytes | id   | id bytes, 40           |  the first
 *     +----------+------+-------+--------+-------+------+------------------------+
 *     | sequence | PAIR_MORE    | -      | id bytes, 56                          |  the others
 *     +----------+--------------+--------+---------------------------------------+
 *
 * `sequence` is the line's position, counted from 1, in 32 bits. By this number a new line differs
 * from a line of an earlier lap, so the reader sees in the line itself that it is new. The writer
 * writes the first eight bytes of the first line last. An id of length 0 is the eight bytes by
 * value in `id`.
 *
 * The id of a message is its block (struct message, session_abi.h): a block with one argument takes
 * one line. The sender fills in slot, generation and offset. The token of a request is WIRE_NONE
 * where the request asks for no reply, else 0. Each request that asks for a reply gets one answer:
 * a message, or PAIR_UNANSWERED, which says that no reply will come. The origin has at most so many
 * such requests under way that the ring of answers has room for all answers, even if each is the
 * longest possible.
 *
 * Each side treats the other as hostile: it copies a line once, checks the copy, and uses that.
 */
#ifndef PWC_PROTO_PAIR_ABI_H
#define PWC_PROTO_PAIR_ABI_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/session_abi.h"

#define PAIR_MAGIC       UINT64_C(0x3630305250435750) /* "PWCPR006" */
#define PAIR_DATA_OFFSET 4096u
#define PAIR_LINES       2048u /* of a ring, a power of two: for 108 records with ids of 1 KiB */
#define PAIR_RECORD_MAX  (PAIR_LINES / 4) /* lines */

#define PAIR_ID_FIRST 40u /* bytes of an id in the first line, and in each further line */
#define PAIR_ID_MORE  56u

enum pair_kind {
    PAIR_PUT = 1,        /* in the ring of requests */
    PAIR_GET = 2,        /* in the ring of requests */
    PAIR_ATOMIC = 3,     /* in the ring of requests */
    PAIR_MESSAGE = 4,    /* in both rings: a request, or a reply */
    PAIR_UNANSWERED = 5, /* in the ring of answers: no reply will come */
    PAIR_MORE = 6,       /* continues the id of the line before */
};

enum pair_flags {
    PAIR_AFTER = 1 << 0,  /* earlier operations of the origin went through the daemon: the target
                             shows their events first */
    PAIR_NOTIFY = 1 << 1, /* a put, get or atomic with a notification, its id by value */
};

struct pair_line {
    _Alignas(64) _Atomic uint64_t head;
    uint64_t bytes;
    uint64_t id;
    uint8_t more[PAIR_ID_FIRST];
};
static_assert(sizeof(struct pair_line) == 64, "pair_line");
static_assert(offsetof(struct pair_line, more) == 24, "pair_line.more");
static_assert(sizeof(struct pair_line) - offsetof(struct pair_line, bytes) == PAIR_ID_MORE,
              "what stands behind a head");

static inline uint64_t pair_head(uint64_t position, enum pair_kind kind, uint32_t flags,
                                 uint32_t id_len)
{
    return (uint32_t)(position + 1) | (uint64_t)kind << 32 | (uint64_t)flags << 40 |
           (uint64_t)id_len << 48;
}

/* Whether this is the head of a notification without PAIR_AFTER. */
static inline bool pair_heads_notification(uint64_t head)
{
    return (uint8_t)(head >> 32) - 1u < PAIR_ATOMIC && head >> 40 == PAIR_NOTIFY;
}

enum pair_gone {
    PAIR_ORIGIN_GONE = 1 << 0,
    PAIR_TARGET_GONE = 1 << 1,
};

/* The words by which the two sides of one ring notify each other. */
struct pair_ring {
    _Alignas(64) _Atomic uint64_t consumed; /* lines; written by the reader */
    /* Armed while the writer sleeps until there is room (enum doorbell_mode); the reader asks the
     * daemon to wake it. This word shares a cache line with the reader's count, because the writer
     * reads that line only when the ring is full.
     */
    _Atomic uint32_t room_bell;
    /* Armed while the reader sleeps: the writer asks the daemon to wake it. With DOORBELL_QUIET the
     * writer sets its bit on the reader's board instead. In a new pair the bell of `requests` is
     * armed, because the target may not have the pair yet. */
    struct doorbell_word bell;
};
static_assert(sizeof(struct pair_ring) == 128, "pair_ring");
static_assert(offsetof(struct pair_ring, bell) == 64, "pair_ring.bell");

/* A side's own counts of its operations through this pair, for pwcctl; puts include atomics. */
struct pair_counts {
    _Atomic uint64_t put_ops, put_bytes, get_ops, get_bytes, am_ops, am_bytes;
    /* Written by the origin only: its operations that have changed the target's memory
     * (pwc/counter.h). Each is counted after its data, and before its record. */
    _Atomic uint64_t arrived;
};

/* Written by one side. */
struct pair_side {
    /* Bit i % 64 of word i / 64: there is a handler at index i. A message to an index without a
     * handler does not use the pair: the sender submits a request to the daemon, which reports the
     * error; for a reply the replier's library reports it. */
    _Alignas(64) _Atomic uint64_t handlers[SESSION_HANDLERS / 64];
    /* In the target's part, 1: the target has mapped the pair and reads its records; until then the
     * origin writes none. In the origin's part, 1: the origin has mapped the target's board
     * (board_abi.h), so the target may make the pair quiet. */
    _Atomic uint32_t mapped;
    /* In the target's part, 1: a sleeper waits for `arrived`, so the origin must look at the bell
     * also after an operation without a record. */
    _Atomic uint32_t counts_awaited;
    _Alignas(64) struct pair_counts counts;
};
static_assert(sizeof(struct pair_side) == 128, "pair_side");

struct pair_shared {
    uint64_t magic;
    uint32_t lines;
    uint32_t unused;
    _Alignas(64) _Atomic uint32_t gone; /* enum pair_gone; written by the daemon */
    struct pair_ring requests;
    struct pair_ring answers;
    struct pair_side origin;
    struct pair_side target;
};
static_assert(offsetof(struct pair_shared, gone) == 64, "pair.gone");
static_assert(offsetof(struct pair_shared, requests) == 128, "pair.requests");
static_assert(offsetof(struct pair_shared, answers) == 256, "pair.answers");
static_assert(offsetof(struct pair_shared, origin) == 384, "pair.origin");
static_assert(offsetof(struct pair_shared, target) == 512, "pair.target");
static_assert(sizeof(struct pair_shared) <= PAIR_DATA_OFFSET, "pair header");

#define PAIR_RING_BYTES (PAIR_LINES * (uint32_t)sizeof(struct pair_line))
#define PAIR_BYTES      (PAIR_DATA_OFFSET + 2 * PAIR_RING_BYTES)

/* The message that the daemon writes to a target's wake socket, with the descriptor of a new pair
 * and, unless BOARD_NONE, the descriptor of its board. */
struct pair_note {
    uint64_t peer; /* the origin: rank in the low, context in the high 32 bits */
    uint32_t slot; /* on the board */
    uint32_t unused;
};

#endif
