/*
 * Operation kinds: one row each, one file each.
 *
 * - validate, at submission: 0, an errno that becomes the operation's status, or, for what no
 *   honest library submits (quarantine), -EPROTO (a field) or -EFAULT (memory)
 * - start posts what goes by itself (a payload, a read): 0 when started or when there is nothing to
 *   post; -EAGAIN: the fabric is full; -EBUSY: its peer has no nonce left for it; -EINPROGRESS:
 *   wait; other errors end the operation
 * - record stages the record: 1 staged; 0: needs none; -ENOSPC: no credit; -EINPROGRESS: not yet
 * - on_fabric: what start posted has ended (success only; failures break the link)
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_OP_H
#define PWC_ENGINE_OP_H

#include "daemon/engine/state/state.h"

struct op_kind {
    int (*validate)(struct engine *e, const struct session *s, const struct submit_record *r,
                    const struct remote *remote);
    int (*start)(struct engine *e, uint32_t flow, uint64_t slot, struct op *op);
    int (*record)(struct engine *e, uint32_t flow, uint64_t slot, struct op *op);
    void (*on_fabric)(struct engine *e, uint32_t flow, struct op *op);
};

extern const struct op_kind op_batch;
extern const struct op_kind op_put;
extern const struct op_kind op_get;
extern const struct op_kind op_flush;
extern const struct op_kind op_short;
extern const struct op_kind op_medium;
extern const struct op_kind op_long;

/* By enum submit_kind, and OP_BATCH; NULL for a kind that does not exist. */
extern const struct op_kind *const op_kinds[SUBMIT_KINDS];

static inline const struct op_kind *op_kind_of(uint8_t kind)
{
    return kind < SUBMIT_KINDS ? op_kinds[kind] : NULL;
}

/* Bounds, rights and length, the same for put and get. */
int op_check_remote(const struct engine *e, const struct submit_record *r,
                    const struct remote *remote, uint32_t right);
/* The client's memory that a record names, or -EFAULT. */
int op_check_local(const struct engine *e, const struct session *s, const struct submit_record *r);
/* Whether the operation may start now, its memory and its remote being what they were at
 * submission: 0, -EINPROGRESS, or the errno that ends it. */
int op_usable(const struct engine *e, uint32_t flow, const struct op *op);
/* Its payload travels in 1 << this writes. */
uint32_t op_stripe_shift(const struct engine *e, const struct op *op);
/* Counts a fabric operation of this operation in, and out. */
void op_fabric_begin(struct engine *e, uint32_t flow, struct op *op);
void op_fabric_end(struct engine *e, uint32_t flow, struct op *op);
/* Bytes behind the fixed part: copies `n` from `from` on. */
void op_bytes(struct engine *e, struct flow *f, uint64_t slot, uint32_t from, uint32_t n, void *to);
/* Bytes of the id that its record carries. */
uint32_t op_id_len(const struct op *op);
/* Whether its remote is still one of this flow's session, towards this flow's peer. */
bool op_remote_ours(const struct engine *e, uint32_t flow, const struct op *op);
/* Stages PLACED, GOT or NOTE: a record without payload. As `record`. */
int op_stage_plain(struct engine *e, uint32_t flow, uint64_t slot, struct op *op, uint8_t kind);
/* The record's head, and its id, abi_pad8(op_id_len) bytes at `id`. */
void op_fill_wire(struct engine *e, uint32_t flow, uint64_t slot, struct op *op, struct wire_op *w,
                  void *id);

/* What active messages take from put: op_put.c. */
int put_validate(struct engine *e, const struct session *s, const struct submit_record *r,
                 const struct remote *remote);
int put_start(struct engine *e, uint32_t flow, uint64_t slot, struct op *op);
int put_record(struct engine *e, uint32_t flow, uint64_t slot, struct op *op);
/* Its payload, or some stripes of it, are on their way ahead of its record, which does not follow
 * now: the nonce that it may hold goes back. */
void put_abandon(struct engine *e, uint32_t node, struct op *op);
void put_on_fabric(struct engine *e, uint32_t flow, struct op *op);

/* Active messages: op_message.c. */
static inline bool op_is_message(const struct op *op)
{
    return op->kind >= SUBMIT_SHORT;
}
/* Whether a block of `len` bytes makes sense; `m` is a copy of its head. */
bool message_valid(const struct message *m, uint64_t len);
/* A submitted message: whether its block and the record around it make sense. */
bool message_submitted_valid(const struct engine *e, const struct submit_record *r);
/* The daemon's words in a block that is being staged, and what it is on the wire. */
void message_fill(const struct engine *e, uint32_t flow, const struct op *op, struct message *m);
uint8_t message_wire_flags(const struct flow *f, const struct op *op);

#endif
