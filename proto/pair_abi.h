/*
 * A pair: the shared memory through which one context of a node tells another, of one user and one
 * job, what it has put into its memory or read from there, without the daemon. One direction:
 * an origin, and a target. docs/same-node.md says why it is right.
 *
 * The daemon creates it (a sealed memfd) and passes it to both. It is a single-producer
 * single-consumer ring of cache lines (shm_ring/pair.h says how it works):
 *
 *     offset 0                                                4096
 *     +--------+----------+------+------+---------+--------+------+------+------+-----
 *     | header | consumed | gone | bell | counted |        | line | line | line | ...
 *     +--------+----------+------+------+---------+--------+------+------+------+-----
 *     0        64         128    192    256
 *
 * A record is one line; the bytes of a long completion id go on in the lines behind it:
 *
 *     0          4      5       6        8       16     24
 *     +----------+------+-------+--------+-------+------+------------------------+
 *     | sequence | kind | flags | id_len | bytes | id   | id bytes, 40           |  the first
 *     +----------+------+-------+--------+-------+------+------------------------+
 *     | sequence | PAIR_MORE    | -      | id bytes, 56                          |  those behind
 *     +----------+--------------+--------+---------------------------------------+
 *
 * `sequence` is the line's position, counted from 1, in 32 bits: it tells a new line from what an
 * earlier lap left there, so that arrival is seen in the line itself. The first eight bytes of the
 * first line are written last. An id of length 0 is the eight bytes by value in `id`.
 *
 * To each side the other is hostile: a line is copied once, checked, then used.
 */
#ifndef PWC_PROTO_PAIR_ABI_H
#define PWC_PROTO_PAIR_ABI_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include "session_abi.h"

#define PAIR_MAGIC       UINT64_C(0x3130305250435750) /* "PWCPR001" */
#define PAIR_DATA_OFFSET 4096u
#define PAIR_LINES       2048u /* a power of two; 108 records with ids of 1 KiB */

#define PAIR_ID_FIRST 40u /* bytes of an id in the first line, and in each behind it */
#define PAIR_ID_MORE  56u

enum pair_kind {
    PAIR_PUT = 1,
    PAIR_GET = 2,
    PAIR_MORE = 3, /* goes on with the id of the line before */
};

enum pair_flags {
    PAIR_AFTER = 1 << 0, /* what the origin did before went through the daemon: show that first */
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

enum pair_gone {
    PAIR_ORIGIN_GONE = 1 << 0,
    PAIR_TARGET_GONE = 1 << 1,
};

struct pair_shared {
    uint64_t magic;
    uint32_t lines;
    uint32_t unused;
    _Alignas(64) _Atomic uint64_t consumed; /* lines; written by the target */
    _Alignas(64) _Atomic uint32_t gone;     /* enum pair_gone; written by the daemon */
    struct doorbell_word bell; /* the target sleeps; the origin has the daemon wake it. Armed when
                                  the pair is new: the target may not know of it yet */
    /* What the origin has done by this pair: its own word, shown by pwcctl. */
    _Alignas(64) _Atomic uint64_t put_ops;
    _Atomic uint64_t put_bytes;
    _Atomic uint64_t get_ops;
    _Atomic uint64_t get_bytes;
};
static_assert(offsetof(struct pair_shared, consumed) == 64, "pair.consumed");
static_assert(offsetof(struct pair_shared, gone) == 128, "pair.gone");
static_assert(offsetof(struct pair_shared, bell) == 192, "pair.bell");
static_assert(offsetof(struct pair_shared, put_ops) == 256, "pair.put_ops");

#define PAIR_BYTES (PAIR_DATA_OFFSET + PAIR_LINES * (uint32_t)sizeof(struct pair_line))

/* What the daemon writes to a target's wake socket, with the descriptor of a new pair. */
struct pair_note {
    uint64_t peer; /* the origin: rank in the low, context in the high 32 bits */
    uint64_t pair; /* its number */
};

#endif
