/*
 * Operation kinds: one row and one file each. Only the row knows what is special about a kind; the
 * other files call its hooks. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_OP_H
#define PWC_ENGINE_OP_H

#include <string.h>
#include "daemon/engine/session/quarantine.h"
#include "daemon/engine/state/state.h"

/* The values that a target has fetched, as its RESULT states them. */
struct op_result {
    const uint8_t *values; /* a copy */
    uint32_t bytes;        /* bytes of the values, padded to 8 */
    uint32_t done;
    int32_t status;
};

/* How each operation of a batch has ended, as its target reports. */
struct op_outcomes {
    const uint8_t *errnos; /* 0: it has ended well; a copy */
    uint32_t count;
};

/* One of the client's operations that an operation stands for. */
struct op_part {
    uint64_t lid, bytes;
    int32_t status;
};

#define OP_PART 2

/* A hook that is NULL has nothing to do. */
struct op_kind {
    bool message;     /* an active message: its block is checked, and may be a reply */
    bool copied;      /* its source is always copied at submission */
    bool described;   /* its inline bytes describe where its source is, and are not the source */
    bool at_head;     /* has no record, and ends when all earlier ones of its flow have left */
    bool over_remote; /* its submission names a remote, also when it is a reply */
    bool reads;       /* its payload comes from the peer, so data that arrives shows that the peer
                       * lives */
    bool notifies;    /* its remote event may be a notification */
    bool in_vector;   /* may be one record of a vector: SUBMIT_MORE */
    uint8_t batch;    /* kind of the record that carries a batch of these; 0: there is none */
    uint16_t batch_flags; /* enum submit_flags that an operation in a batch may have, besides those
                             that every kind may have there (session_batch.c) */
    enum op_counter counter; /* the session's counter in which it is counted */

    /* Within a transaction: does the work of a submission that is no operation. Returns 0; -EAGAIN:
     * it cannot be done now; or an enum quarantine_reason. Such a row has no hook but this one and
     * the next. */
    int (*at_once)(struct engine *e, uint32_t session, const struct submit_record *r);
    /* Called after the commit of at_once, for effects that take transactions of their own. */
    void (*behind)(struct engine *e);
    /* At submission by `client` (NONE: by an owner without one): 0, an errno that becomes the
     * operation's status, or, for what no honest library submits, -EPROTO (a field) or -EFAULT
     * (memory). NULL: no client submits this. */
    int (*validate)(struct engine *e, uint32_t client, const struct submit_record *r,
                    const struct remote *remote);
    /* Whether the operation may be one of a batch, each then at a multiple of its length. NULL:
     * yes, at any offset. */
    bool (*batchable)(const struct submit_record *r);
    /* Within a transaction: the operation has been taken; `flow` keeps what it needs until its
     * end. */
    void (*taken)(struct engine *e, uint32_t flow, const struct submit_record *r);
    /* Bytes that the operation moves, for the session's counter; NULL: the record's length. */
    uint64_t (*bytes)(const struct submit_record *r);
    /* Posts the next piece of its payload, or of its read: 0 when that was the last, or when there
     * is nothing to post; 1: more are left; -EAGAIN: the fabric is full; -ENOBUFS: so is the peer's
     * window; -EBUSY: the peer has no nonce left for it; -EINPROGRESS: wait; other errors end the
     * operation. */
    int (*start)(struct engine *e, uint32_t flow, uint64_t slot, struct op *op);
    /* Stages the record. Returns 1: done; OP_PART: there are more records, so the hook is called
     * again; 0: the operation needs none; -ENOSPC: no credit; -EINPROGRESS: not yet. */
    int (*record)(struct engine *e, uint32_t flow, uint64_t slot, struct op *op);
    /* All that `start` posted has ended (success only; failures break the link). */
    void (*on_fabric)(struct engine *e, uint32_t flow, struct op *op);
    /* `posted` bytes of the payload were posted, and the record does not follow now: gives back the
     * nonce that payload and record share. */
    void (*abandon)(struct engine *e, uint32_t flow, struct op *op, uint64_t posted);
    /* Within a transaction: the operation leaves its flow, and gives back everything it held
     * besides the room of its local event. */
    void (*leave)(struct engine *e, uint32_t flow, const struct op *op);
    /* Within a transaction: takes the values that the target has fetched. Returns 0 or -EPROTO.
     * NULL: the kind fetches nothing. */
    int (*result)(struct engine *e, uint32_t flow, struct op *op, const struct op_result *result);
    /* Within a transaction: the operation has failed; its first `done` parts are done. */
    void (*failed)(struct engine *e, struct op *op, uint32_t done);
    /* As `failed`, for a batch whose operations have each ended on their own. Returns 0 or -EPROTO.
     * NULL: the kind is no batch. */
    int (*failed_apart)(struct engine *e, struct op *op, const struct op_outcomes *outcomes);
    /* The `bytes` of the event; NULL: the operation's length, or 0 with an error. */
    uint64_t (*shown)(const struct op *op);
    /* For an operation that stands for several of the client's: describes the i-th one, which
     * begins at `at` (0 for the first). Returns where the next one begins. */
    uint32_t (*part)(const struct op *op, uint32_t i, uint32_t at, struct op_part *out);
};

extern const struct op_kind op_batch;
extern const struct op_kind op_put;
extern const struct op_kind op_get;
extern const struct op_kind op_flush;
extern const struct op_kind op_short;
extern const struct op_kind op_medium;
extern const struct op_kind op_long;
extern const struct op_kind op_vector;
extern const struct op_kind op_strided;
extern const struct op_kind op_wake;
extern const struct op_kind op_atomic;
extern const struct op_kind op_signal;
extern const struct op_kind op_collective;
extern const struct op_kind op_team_wake;

/* Indexed by enum submit_kind and OP_BATCH. */
extern const struct op_kind *const op_kinds[SUBMIT_KINDS];

/* The row of a kind; NULL for a number that is no kind. */
static inline const struct op_kind *op_kind_of(uint8_t kind)
{
    return kind < SUBMIT_KINDS ? op_kinds[kind] : NULL;
}

static inline const struct op_kind *op_row(const struct op *op)
{
    return op_kinds[op->kind];
}

/* `posted` bytes of the operation's payload may be on their way, and its record does not follow
 * now. */
static inline void op_abandon(struct engine *e, uint32_t flow, struct op *op, uint64_t posted)
{
    if (op_row(op)->abandon)
        op_row(op)->abandon(e, flow, op, posted);
}

/* The number and the kind of operations as the client submitted them: a batch stands for
 * several. */
static inline uint32_t op_count(const struct op *op)
{
    return op->kind == OP_BATCH ? op->batch.count : 1;
}

static inline uint8_t op_shown_kind(const struct op *op)
{
    return op->kind == OP_BATCH ? op->batch.kind : op->kind;
}

/* The bytes that views and traces show. The last strided record shows those of the whole shape. */
static inline uint32_t op_shown_length(const struct op *op)
{
    return op->kind == SUBMIT_STRIDED ? (uint32_t)op->total : op->length;
}

/* Checks bounds, rights and length, in the same way for put and get; -EOPNOTSUPP for an operation
 * other than a put that writes to an offload's region. */
int op_check_remote(const struct engine *e, const struct submit_record *r,
                    const struct remote *remote, uint32_t right);
/* Whether this handle of a remote was given to the session, which has not unbound it. */
bool op_remote_given(const struct engine *e, uint32_t session, uint32_t remote);
/* The client's memory that a record names, or -EFAULT. */
int op_check_local(const struct engine *e, uint32_t client, const struct submit_record *r);
/* Whether the operation may start now, with its `length` bytes of memory and its remote as they
 * were at submission: 0, -EINPROGRESS, or the errno that ends it. */
int op_usable(const struct engine *e, uint32_t flow, const struct op *op, uint32_t length);
/* The operation's payload travels in pieces of 1 << this bytes; the last one may be shorter. */
uint32_t op_piece_shift(const struct engine *e, const struct op *op);
/* The number of pieces in `bytes` of its payload. */
uint32_t op_pieces(const struct engine *e, const struct op *op, uint64_t bytes);
/* Bytes of the piece after the `posted` ones. */
uint64_t op_piece_length(const struct engine *e, const struct op *op, uint64_t posted);
/* Whether the flow may post another piece now: 0 or -ENOBUFS. */
int op_window_open(const struct engine *e, uint32_t flow);
/* A write or a read of `length` bytes of the payload was posted: counts it as under way. Returns 1
 * if more pieces of the payload are to be posted, 0 if this was the last one. */
int op_piece_posted(struct engine *e, uint32_t flow, struct op *op, uint64_t length);
/* Takes a write or a read, which has ended, off the counts of op_piece_posted. */
void op_fabric_end(struct engine *e, uint32_t flow, struct op *op);
/* The part of op_bytes for operations of several entries. */
void op_bytes_behind(struct engine *e, struct flow *f, uint64_t slot, uint32_t from, uint32_t n,
                     void *to);
/* Bytes of the id that the operation's record carries. */
uint32_t op_id_len(const struct op *op);
/* Whether the operation's remote still belongs to this flow's owner and leads to this flow's
 * peer. */
bool op_remote_ours(const struct engine *e, uint32_t flow, const struct op *op);
/* Stages PLACED without a nonce, GOT or NOTE, records without payload. Results as those of
 * op_kind.record. */
int op_stage_plain(struct engine *e, uint32_t flow, uint64_t slot, struct op *op, uint8_t kind);
/* Fills in the record's head and its id, abi_pad8(op_id_len) bytes at `id`; NULL: the record has no
 * id. */
void op_fill_wire(struct engine *e, uint32_t flow, uint64_t slot, struct op *op, struct wire_op *w,
                  void *id);

/* Bytes after the fixed part: copies `n` from `from` on. Most are 8, so they go without a call. */
static inline void op_bytes(struct engine *e, struct flow *f, uint64_t slot, const struct op *op,
                            uint32_t from, uint32_t n, void *to)
{
    if (op->span > 1)
        op_bytes_behind(e, f, slot, from, n, to);
    else if (n == sizeof(uint64_t))
        memcpy(to, op->small + from, sizeof(uint64_t));
    else if (n > 0)
        memcpy(to, op->small + from, n);
}

/* Whether the operation is a put to an offload's region that is placed there on its own. Its one
 * record is a PACKET (WIRE_STORED). */
static inline bool op_is_stored(const struct engine *e, const struct op *op)
{
    return op->kind == SUBMIT_PUT && e->remotes[op->remote].ways & PUTS_STORED && op->length > 0 &&
           !(op->flags & SUBMIT_INLINE);
}

/* Whether handlers may change the operation's bytes where they stand at its target, before it has
 * ended. */
static inline bool op_is_in_place(const struct engine *e, const struct op *op)
{
    return op_is_stored(e, op) ||
           (op->kind == SUBMIT_LONG && op->length > 0 && !(op->flags & SUBMIT_INLINE));
}

/* Whether the operation is one that travels in packets (op_packet.c). */
static inline bool op_in_packets(const struct engine *e, const struct op *op)
{
    return op->kind == SUBMIT_PUT && e->remotes[op->remote].packet > 0 && !op_is_stored(e, op);
}

/* Stages the next packet of a put that travels as packets. Results as those of op_kind.record. */
int packet_record(struct engine *e, uint32_t flow, uint64_t slot, struct op *op);
/* Where the packet begins that ends after `end` bytes of an operation in packets (0: the last
 * packet); for a put that is stored, its length; else 0. packet_behind: where the next packet
 * begins when the target has dealt with `done` bytes; the last packet is sent in any case. */
uint32_t packet_before(const struct engine *e, const struct op *op, uint32_t end);
uint32_t packet_behind(const struct engine *e, const struct op *op, uint32_t done);

/* wire_op.atomic of an atomic, or of a batch of them. */
static inline uint16_t op_wire_code(const struct op *op)
{
    return op->code | (op->flags & SUBMIT_FETCH ? WIRE_FETCH : 0);
}

/* Hook: notes how much of an atomic, or of a batch, is done. */
void op_partly_done(struct engine *e, struct op *op, uint32_t done);

/* Stages a record of this kind, with the fields of a PUT: id, payload, and `pad` bytes of padding.
 * Results as those of op_kind.record; with 1, *w is the record. */
int put_packed(struct engine *e, uint32_t flow, uint64_t slot, struct op *op, uint8_t kind,
               uint32_t pad, struct wire_put **w);

/* Hooks that active messages and signals share with put (op_put.c). */
int put_validate(struct engine *e, uint32_t client, const struct submit_record *r,
                 const struct remote *remote);
int put_start(struct engine *e, uint32_t flow, uint64_t slot, struct op *op);
int put_record(struct engine *e, uint32_t flow, uint64_t slot, struct op *op);
/* Does as put_record with a record of these kinds: `packed`, `placed` where the payload travels on
 * its own, and `bare` where there is none. */
int put_record_as(struct engine *e, uint32_t flow, uint64_t slot, struct op *op, uint8_t packed,
                  uint8_t placed, uint8_t bare);
/* Gives back the nonce that a payload under way, or some pieces of it, may hold. */
void put_abandon(struct engine *e, uint32_t flow, struct op *op, uint64_t posted);
void put_on_fabric(struct engine *e, uint32_t flow, struct op *op);

#endif
