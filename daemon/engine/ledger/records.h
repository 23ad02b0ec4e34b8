/*
 * Records from a peer: a row for each kind. A peer has proved its identity, and its records are
 * checked anyway: a record that makes no sense breaks the link, never the daemon. Thread: the
 * progress thread.
 */
#ifndef PWC_ENGINE_RECORDS_H
#define PWC_ENGINE_RECORDS_H

#include <string.h>
#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/state/state.h"

struct arrival_kind;

/* The differences between the kinds of records. A hook that is NULL has nothing to do. */
struct record_kind {
    uint16_t size;         /* size of the fixed part, head included */
    bool longer;           /* more may follow the fixed part */
    uint8_t flags;         /* flags that it may have */
    enum ledger_wait wait; /* the sender's state until the ACK */
    enum ledger_wait part; /* instead of `wait`, with WIRE_PART; NONE, or with WIRE_SOON: `wait` */
    /* The record's effects, left uncommitted, so that the caller commits them together with its
     * consumption; effects that the hook commits on its own may happen twice. Returns 0; -EAGAIN:
     * it cannot be taken now (the transaction is rolled back, the record stays); -EPROTO. */
    int (*take)(struct engine *e, uint32_t peer, const struct ledger_record *record);
    /* Instead of `take`, for the record of an operation. */
    const struct arrival_kind *arrival;
    /* Called after the commit, for effects that take transactions of their own. Returns 0 or
     * -EPROTO. */
    int (*after)(struct engine *e, uint32_t peer);
};

/* By enum wire_kind. */
extern const struct record_kind record_kinds[WIRE_KINDS];

/* Checks a record's form and takes it, as `take`. */
int record_take(struct engine *e, uint32_t peer, const struct ledger_record *record);

/* ---- operations: record_op.c ----------------------------------------------------------------- */

/* The record of an operation, taken apart. */
struct arrival {
    const struct arrival_kind *kind;
    union {
        struct wire_op op; /* the beginning of each of the others */
        struct wire_put put;
        struct wire_batch batch;
        struct wire_vector vector;
        struct wire_strided strided;
        struct wire_packet packet;
    } w;                    /* the fixed part, a copy */
    struct message message; /* with WIRE_MESSAGE: the block's head, a copy */
    struct signal signal;   /* for SIGNAL and SIGNAL_PLACED, a copy */
    const uint8_t *id;      /* in the ring: the id or the block, then the payload or the puts */
    const uint8_t *block;   /* for a batch its puts, for a vector its pieces: a copy */
    uint32_t block_bytes;   /* bytes of `block`, of a vector */
    uint64_t block_end;     /* offset after the furthest piece, or word of a batch of atomics */
    uint64_t places;        /* of a batch of atomics: all offsets, combined by OR */
    uint8_t *base;          /* memory that the record writes to, once it is admitted */
    uint8_t *word;          /* the word that a signal changes, once it is admitted */
    uint32_t pieces;        /* with WIRE_NONCE: how many pieces its payload has */
    uint32_t done;          /* how many elements of an atomic, or atomics of a batch, are done */
    bool deferred;          /* a request that a handler leaves to the client's own handler */
    bool in_batch;          /* a put of a BATCH to an offload's region, which counts as a packet */
    int32_t outcome;        /* if `in_batch`: how handlers have ended the put */
};

/*
 * The differences between operations at their target. Each arrival is parsed, admitted, has room
 * reserved for its event, acts, and is reported. So an operation that is refused for want of room
 * has not acted.
 */
struct arrival_kind {
    uint8_t op;   /* the kind that its event names, enum submit_kind */
    bool several; /* w.op.count operations in one, each with an event */
    bool silent;  /* the target posts no event */
    bool changes; /* changes words, one of which its context may wait for; has `ready` */
    /* Parses the rest of the record, which has `left` bytes with the id. Returns how many bytes
     * follow the id, or -EPROTO. NULL: none follow. */
    int64_t (*parse)(struct engine *e, struct arrival *a, uint64_t left);
    /* Checks the operation before anything is done. Returns 0 or the status that its origin
     * gets. */
    int (*admit)(struct engine *e, uint32_t session, struct arrival *a);
    /* Prepares what `act` needs besides room for events. Returns 0 or -ENOBUFS. */
    int (*ready)(struct engine *e, const struct arrival *a);
    /* Carries the operation out. Memory may fault, which the caller checks. Returns 0; -EBUSY: only
     * the first `done` elements are done. */
    int (*act)(struct engine *e, struct arrival *a);
    /* How many operations of the origin have changed memory once this record is done, for the count
     * of arrivals (pwc/counter.h); NULL: none has. */
    uint32_t (*changed)(const struct arrival *a);
    /* Posts the verdict about what `act` has done, with its status. */
    void (*answer)(struct engine *e, const struct arrival *a, int32_t status);
};

extern const struct arrival_kind arrival_put;
extern const struct arrival_kind arrival_placed;
extern const struct arrival_kind arrival_got;
extern const struct arrival_kind arrival_note;
extern const struct arrival_kind arrival_packet;  /* record_packet.c */
extern const struct arrival_kind arrival_batch;   /* record_batch.c */
extern const struct arrival_kind arrival_vector;  /* record_vector.c */
extern const struct arrival_kind arrival_strided; /* record_strided.c */
extern const struct arrival_kind arrival_atomic;  /* record_atomic.c */
extern const struct arrival_kind arrival_atomics;
extern const struct arrival_kind arrival_signal; /* record_signal.c */
extern const struct arrival_kind arrival_signal_placed;

/* Whether the operation ends with this record, and its origin gets a status: not with a packet that
 * others follow, and not with a packet that reports a failure at the origin. */
static inline bool arrival_ends(const struct arrival *a)
{
    const struct wire_packet *w = &a->w.packet;

    return a->w.op.head.kind != WIRE_PACKET ||
           (w->put.op.length == w->total - w->at && !(w->put.op.head.flags & WIRE_CUT));
}

/* Hook of a put, or of a part of a vector, which counts only with its last record. */
static inline uint32_t put_changed(const struct arrival *a)
{
    return !(a->w.op.head.flags & WIRE_PART);
}

/* Hook for a payload that travels on its own: parses the number of its pieces. */
static inline int64_t pieces_parse(struct engine *e, struct arrival *a, uint64_t left)
{
    uint64_t id_bytes = abi_pad8(a->w.op.rid_len);
    struct wire_pieces pieces;

    a->pieces = 0;
    if (!(a->w.op.head.flags & WIRE_NONCE))
        return 0;
    if (left < id_bytes + sizeof(pieces))
        return -EPROTO;
    memcpy(&pieces, a->id + id_bytes, sizeof(pieces));
    a->pieces = pieces.count;
    return sizeof(pieces);
}

/* The sender's state until the ACK of this record. */
static inline enum ledger_wait record_wait(const struct record_kind *kind,
                                           const struct ledger_record *record)
{
    bool part = kind->part != LEDGER_WAIT_NONE && record->head.flags & WIRE_PART;

    return part && !(record->head.flags & WIRE_SOON) ? kind->part : kind->wait;
}

/* Takes the record of an operation, or a VOID; results as those of record_kind.take. */
int record_take_op(struct engine *e, uint32_t peer, const struct record_kind *kind,
                   const struct ledger_record *record);
int record_take_void(struct engine *e, uint32_t peer, const struct ledger_record *record);

#endif
