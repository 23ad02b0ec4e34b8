/*
 * Remote atomics: checks what can be checked here, submits.
 *
 * Thread: the one that owns the context. No system call unless the daemon or the target sleeps, or
 * the daemon waits for this processor (give_way.h), no allocation, no lock (except a copy of the
 * span table when a region was added or removed).
 */
#include "pwc/atomic.h"

#include <errno.h>
#include <string.h>
#include "clientlib/calls/give_way.h"
#include "clientlib/calls/atomic.h"
#include "clientlib/calls/operation.h"
#include "clientlib/calls/room.h"
#include "clientlib/neighbours/direct.h"
#include "shm_ring/word.h"

static_assert((int)PWC_I8 == (int)WORD_I8 && (int)PWC_U64 == (int)WORD_U64 &&
                  (int)PWC_F32 == (int)WORD_F32 && (int)PWC_F64 == (int)WORD_F64,
              "types pass to the daemon as they are");
static_assert((int)PWC_SET == (int)WORD_SET && (int)PWC_ADD == (int)WORD_ADD &&
                  (int)PWC_MIN == (int)WORD_MIN && (int)PWC_XOR == (int)WORD_XOR &&
                  (int)PWC_READ == (int)WORD_READ,
              "and so do operations");
static_assert((int)PWC_C64 == (int)FOLD_C64 && (int)PWC_BOOL == (int)FOLD_BOOL &&
                  (int)PWC_I64_AT == (int)FOLD_I64_AT && (int)PWC_LAND == (int)FOLD_LAND &&
                  (int)PWC_MAXLOC == (int)FOLD_MAXLOC,
              "those of collectives too");
static_assert((int)PWC_FETCH_MAX == (int)SUBMIT_FETCH_MAX &&
                  (int)PWC_OP_ATOMIC == (int)SUBMIT_ATOMIC,
              "the daemon's limit");

enum { ATOMIC_FLAGS = PWC_NO_LCE | PWC_NO_RCE | PWC_FENCE | PWC_UNORDERED | PWC_NOTIFY };

/* The operands of a READ, which have no meaning. */
static const uint8_t no_operands[8 * SUBMIT_FETCH_MAX];

/* The operands to submit. A READ ignores its operands, but its record has room for them. */
static const void *operands_of(const struct atomic_call *a)
{
    return word_op(a->code) == WORD_READ ? no_operands : a->operands;
}

/* The bytes of the operands of one element. */
static uint32_t operand_bytes(const struct atomic_call *a)
{
    return word_bytes(a->code) << word_is_swap_if(a->code);
}

static unsigned rights_needed(const struct atomic_call *a)
{
    if (word_op(a->code) == WORD_READ)
        return PWC_REMOTE_READ;
    return a->result ? PWC_REMOTE_RW : PWC_REMOTE_WRITE;
}

static inline int check(struct pwc_ctx *ctx, const struct atomic_call *a)
{
    uint32_t width = word_bytes(a->code);
    int rc = operation_check(ctx, a->lid, a->flags, ATOMIC_FLAGS);

    if (rc < 0)
        return rc;
    if (a->flags & PWC_NOTIFY && (a->rid->size > 0 || a->flags & PWC_NO_RCE))
        return -EINVAL;
    if (a->rid->size > PWC_CID_MAX || a->count == 0 || !word_aligned(a->off, a->code) ||
        (a->result ? a->count > PWC_FETCH_MAX : word_op(a->code) == WORD_READ))
        return -EINVAL;
    if (a->count > ctx->client->packed_max || a->count * width > ctx->client->packed_max)
        return -EMSGSIZE;
    return operation_check_range(ctx, a->dst, a->off, a->count * width, rights_needed(a));
}

/* Finds the place for the fetched values: the slot for one element, a region of ours for
 * several. */
static int64_t begin_fetch(struct pwc_ctx *ctx, const struct atomic_call *a,
                           struct submit_record *record)
{
    uint64_t bytes = (uint64_t)a->count * word_bytes(a->code);
    uint8_t *shadow = NULL;
    int rc = 0;

    if (a->count == 1)
        return pending_begin(&ctx->channel.pending, a->lid, a->flags, a->result, NULL, bytes);
    rc = span_view_find(&ctx->spans, &ctx->client->spans, a->result, bytes, &record->segment,
                        &record->local_offset, &shadow);
    if (rc < 0)
        return rc;
    return pending_begin(&ctx->channel.pending, a->lid, a->flags, shadow ? a->result : NULL, shadow,
                         bytes);
}

static struct operation make(struct pwc_ctx *ctx, const struct atomic_call *a)
{
    struct operation op = {
        .outbox = &ctx->channel.submit,
        .record =
            {
                .kind = SUBMIT_ATOMIC,
                .code = a->code,
                .flags = (uint16_t)(a->flags | SUBMIT_INLINE),
                .remote = a->dst->handle,
                .offset = a->off,
                .length = (uint64_t)a->count * operand_bytes(a),
            },
        .payload = operands_of(a),
    };

    operation_set_rid(&op, a->rid);
    return op;
}

/* Most atomics have one element and ids by value: these skip the steps that others need. */
static int one_by_daemon(struct pwc_ctx *ctx, const struct atomic_call *a)
{
    unsigned flags = a->flags;
    uint64_t lid = a->lid->value;
    int64_t slot = 0;
    int rc;

    if (a->result) {
        slot = pending_begin(&ctx->channel.pending, a->lid, a->flags, a->result, NULL,
                             word_bytes(a->code));
        if (slot < 0)
            return give_way_refused(&ctx->give_way, (int)slot);
        lid = (uint64_t)slot;
        flags = (flags & ~(unsigned)PWC_NO_LCE) | SUBMIT_FETCH | SUBMIT_SLOT;
    }
    rc = channel_atomic(&ctx->channel, a->code, a->dst->handle, a->off, operands_of(a),
                        operand_bytes(a), lid, a->rid->value, (uint16_t)flags);
    if (rc < 0 && a->result)
        pending_cancel(&ctx->channel.pending, (uint32_t)slot);
    if (rc > 0)
        give_way_or_wake(ctx, rc);
    return rc < 0 ? give_way_refused(&ctx->give_way, rc) : 0;
}

static __attribute__((noinline)) int fetch_by_daemon(struct pwc_ctx *ctx,
                                                     const struct atomic_call *a)
{
    struct operation op = make(ctx, a);
    int64_t slot = begin_fetch(ctx, a, &op.record);
    int rc;

    if (slot < 0)
        return give_way_refused(&ctx->give_way, (int)slot);
    op.record.lid = (uint64_t)slot;
    op.record.flags =
        (uint16_t)((op.record.flags & ~(unsigned)SUBMIT_NO_LCE) | SUBMIT_FETCH | SUBMIT_SLOT);
    rc = operation_submit(ctx, &op);
    if (rc < 0)
        pending_cancel(&ctx->channel.pending, (uint32_t)slot);
    return rc;
}

static __attribute__((noinline)) int change_by_daemon(struct pwc_ctx *ctx,
                                                      const struct atomic_call *a)
{
    struct operation op = make(ctx, a);

    operation_set_lid(&op, a->lid);
    return operation_submit(ctx, &op);
}

static int by_daemon(struct pwc_ctx *ctx, struct atomic_call *a)
{
    int rc;

    if (a->request)
        a->flags = operation_request_flags(a->flags);
    if (a->count == 1 && a->lid->size == 0 && a->rid->size == 0)
        rc = one_by_daemon(ctx, a);
    else
        rc = a->result ? fetch_by_daemon(ctx, a) : change_by_daemon(ctx, a);
    if (rc == 0 && a->request)
        request_begin(a->request);
    return rc;
}

/* Compiled into each caller, so that most of the call stays in registers. */
static inline __attribute__((always_inline)) int run(struct atomic_call *a)
{
    struct pwc_ctx *ctx;
    pwc_cid id;
    int rc;

    if (!a->dst)
        return -EINVAL;
    ctx = a->dst->ctx;
    if (a->lid->size > PWC_CID_MAX)
        a->request = operation_request(ctx, a->lid);
    if (a->request) {
        id = request_cid(a->request);
        a->lid = &id;
    }
    rc = check(ctx, a);

    if (rc == 0 && a->dst->pair) {
        rc = direct_choose(ctx, a->dst, !(a->flags & PWC_NO_RCE));
        if (rc == 1)
            return direct_atomic(ctx, a);
    }
    return rc < 0 ? rc : by_daemon(ctx, a);
}

static __attribute__((noinline, cold)) int run_waiting(struct atomic_call *a)
{
    struct room room;
    int rc = a->dst ? room_begin(&room, a->dst, a->lid, a->flags) : -EINVAL;

    if (rc < 0)
        return rc;
    room.event = true; /* also with PWC_NO_LCE, because the operation may fail */
    a->flags &= ~(unsigned)PWC_WAIT;
    do {
        struct atomic_call again = *a;

        rc = run(&again);
    } while (room_wait(&room, &rc));
    return rc;
}

static inline __attribute__((always_inline)) int run_or_wait(struct atomic_call *a)
{
    return a->flags & PWC_WAIT ? run_waiting(a) : run(a);
}

/* The code of the caller's operation, or -EINVAL: there is no such operation. */
static int code_of(unsigned op, unsigned type)
{
    if (op >= WORD_OPS || type >= WORD_TYPES)
        return -EINVAL;
    return word_code_valid(word_code(op, type)) ? word_code(op, type) : -EINVAL;
}

int pwc_atomic(pwc_remote *dst, uint64_t off, enum pwc_atomic_op op, enum pwc_type type,
               const void *operands, size_t count, pwc_cid lid, pwc_cid rid, unsigned flags)
{
    struct atomic_call a = {.dst = dst,
                            .off = off,
                            .count = count,
                            .operands = operands,
                            .lid = &lid,
                            .rid = &rid,
                            .flags = flags};
    int code = (unsigned)op < PWC_READ ? code_of(op, type) : -EINVAL;

    if (code < 0)
        return code;
    a.code = (uint8_t)code;
    return run_or_wait(&a);
}

int pwc_fetch_atomic(pwc_remote *dst, uint64_t off, enum pwc_atomic_op op, enum pwc_type type,
                     const void *operands, size_t count, void *result, pwc_cid lid, pwc_cid rid,
                     unsigned flags)
{
    struct atomic_call a = {.dst = dst,
                            .off = off,
                            .count = count,
                            .operands = operands,
                            .result = result,
                            .lid = &lid,
                            .rid = &rid,
                            .flags = flags};
    int code = (unsigned)op <= PWC_READ && result ? code_of(op, type) : -EINVAL;

    if (code < 0)
        return code;
    a.code = (uint8_t)code;
    return run_or_wait(&a);
}

/* A swap of one element, whose two operands the caller passes separately. */
static int swap(const struct atomic_call *swap_call, enum word_op op, unsigned type,
                const void *first, const void *desired)
{
    struct atomic_call a = *swap_call;
    int code = a.result ? code_of(op, type) : -EINVAL;
    uint8_t operands[16];

    if (code < 0)
        return code;
    a.code = (uint8_t)code;
    a.count = 1;
    a.operands = operands;
    memcpy(operands, first, word_bytes(a.code));
    memcpy(operands + word_bytes(a.code), desired, word_bytes(a.code));
    return run_or_wait(&a);
}

int pwc_compare_swap(pwc_remote *dst, uint64_t off, enum pwc_type type, const void *expected,
                     const void *desired, void *result, pwc_cid lid, pwc_cid rid, unsigned flags)
{
    const struct atomic_call a = {
        .dst = dst, .off = off, .result = result, .lid = &lid, .rid = &rid, .flags = flags};

    return swap(&a, WORD_COMPARE_SWAP, type, expected, desired);
}

int pwc_masked_swap(pwc_remote *dst, uint64_t off, enum pwc_type type, const void *mask,
                    const void *desired, void *result, pwc_cid lid, pwc_cid rid, unsigned flags)
{
    const struct atomic_call a = {
        .dst = dst, .off = off, .result = result, .lid = &lid, .rid = &rid, .flags = flags};

    return swap(&a, WORD_MASKED_SWAP, type, mask, desired);
}
