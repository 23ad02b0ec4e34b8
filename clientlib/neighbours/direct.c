/* Owns nothing: chooses the path of operations to neighbours, and carries out direct ones
 * (direct.h). Thread: the context's. */
#include "clientlib/neighbours/direct.h"

#include <errno.h>
#include <string.h>
#include "clientlib/attach/wake.h"
#include "clientlib/calls/atomic.h"
#include "clientlib/calls/operation.h"
#include "clientlib/calls/pieces.h"
#include "clientlib/calls/series.h"
#include "clientlib/binds/bind.h"
#include "shm_ring/fault.h"
#include "shm_ring/strided.h"
#include "shm_ring/word.h"

/* ---- choice of the path ---------------------------------------------------------------------- */

bool direct_has_ended(const struct pwc_ctx *ctx, const struct pwc_remote *remote)
{
    const _Atomic uint64_t *words = ctx->channel.shared->ended_remotes;
    uint32_t handle = remote->handle % SESSION_REMOTES;

    return atomic_load_explicit(&words[handle / 64], memory_order_acquire) >> handle % 64 & 1;
}

int direct_leave(struct pwc_ctx *ctx, struct pwc_remote *remote)
{
    int rc = remote_is_unbound(remote) ? remote_make_ready(remote) : 0;
    struct direct_pair *pair = remote->pair;

    if (rc < 0 || !pair)
        return rc;
    if (pair->by_daemon)
        return series_holds(ctx, remote->peer) ? -EAGAIN : 0;
    if (ctx->channel.submit.open)
        return -EBUSY;
    if (!pair->over && (pair->awaited > 0 || !pair_drained(&pair->writer))) {
        neighbours_refuse(pair);
        return -EAGAIN;
    }
    pair->by_daemon = true;
    return 0;
}

/* Tries to return to the direct path. 1: the target has mapped the pair, all operations have ended,
 * and their events are kept; 0: not yet; -EAGAIN: the peer is held. An operation without a record
 * may be direct even if the target has not mapped the pair: that is also 1, but the path stays the
 * daemon's. */
static int come_back(struct pwc_ctx *ctx, struct direct_pair *pair, bool record)
{
    bool mapped =
        atomic_load_explicit(&pair->writer.shared->target.mapped, memory_order_acquire) == 1;

    if (ctx->channel.neighbours.pieces_due)
        return series_holds(ctx, pair->peer) ? -EAGAIN : 0;
    if ((!mapped && record) || !channel_idle(&ctx->channel) ||
        channel_awaits_reply(&ctx->channel) || channel_collect(&ctx->channel) < 0)
        return 0;
    pair->by_daemon = !mapped;
    pair->after = true;
    return 1;
}

/* direct_choose where the path may change. */
static __attribute__((noinline)) int choose_anew(struct pwc_ctx *ctx, struct pwc_remote *remote,
                                                 bool record)
{
    int rc = channel_state(&ctx->channel);
    struct direct_pair *pair;

    if (rc < 0)
        return rc;
    if (ctx->channel.submit.open)
        return -EBUSY;
    if (remote_is_unbound(remote)) {
        rc = remote_make_ready(remote);
        if (rc < 0 || !remote->pair)
            return rc;
    }
    pair = remote->pair;
    if (!remote->way || direct_has_ended(ctx, remote))
        return direct_leave(ctx, remote);
    return pair->by_daemon ? come_back(ctx, pair, record) : 1;
}

int direct_choose(struct pwc_ctx *ctx, struct pwc_remote *remote, bool record)
{
    if (remote->way && !remote->pair->by_daemon && !ctx->channel.submit.open &&
        channel_state(&ctx->channel) == 0 && !direct_has_ended(ctx, remote))
        return 1;
    return choose_anew(ctx, remote, record);
}

bool direct_idle(const struct pwc_remote *remote)
{
    return remote->pair && !remote->pair->by_daemon;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Whether only the target gets an event, with an id by value: this most frequent case has code of
 * its own. */
static inline bool is_short(const pwc_cid *rid, unsigned flags)
{
    return rid->size == 0 && (flags & (PWC_NO_LCE | PWC_NO_RCE)) == PWC_NO_LCE;
}

/* The flags of a short operation, partly as constants for the compiler. */
static inline unsigned short_flags(unsigned flags)
{
    return (flags & PWC_NOTIFY) | PWC_NO_LCE;
}

/* Checks that there is room for both events. */
static inline int room(struct pwc_ctx *ctx, struct direct_pair *pair, const pwc_cid *lid,
                       const pwc_cid *rid, unsigned flags)
{
    if (!(flags & PWC_NO_RCE) && direct_room(pair, pair_lines((uint32_t)rid->size)) < 0)
        return -EAGAIN;
    return flags & PWC_NO_LCE
               ? 0
               : channel_own_room(&ctx->channel, (uint32_t)lid->size + ctx->channel.set_aside);
}

/* Wakes the target if it sleeps, after something was written for it. */
static inline void wake_if_asleep(struct pwc_ctx *ctx, struct direct_pair *pair)
{
    if (pair_reader_sleeps(&pair->writer))
        wake_target(ctx, pair);
}

/* After an operation without a record: wakes the target if it sleeps until a count changes. */
static inline void wake_if_counting(struct pwc_ctx *ctx, struct direct_pair *pair)
{
    const struct pair_side *target = &pair->writer.shared->target;

    atomic_signal_fence(memory_order_seq_cst);                                    /* G */
    if (atomic_load_explicit(&target->counts_awaited, memory_order_relaxed) != 0) /* G */
        wake_if_asleep(ctx, pair);
}

/* Counts an operation for the target, after its bytes are placed. */
static inline void arrive(struct direct_pair *pair)
{
    count_show(&pair->writer.shared->origin.counts.arrived, ++pair->arrived); /* P */
}

/* Writes the record of an operation, after its bytes are placed. */
static inline void show_target(struct pwc_ctx *ctx, struct pwc_remote *remote, enum pair_kind kind,
                               uint64_t len, const pwc_cid *rid, unsigned flags)
{
    struct direct_pair *pair = remote->pair;
    const struct pair_record record = {
        .kind = (uint8_t)kind,
        .flags = (pair->after ? PAIR_AFTER : 0) | (flags & PWC_NOTIFY ? PAIR_NOTIFY : 0),
        .id_len = (uint16_t)rid->size,
        .lines = pair_lines((uint32_t)rid->size),
        .bytes = len,
        .id = rid->size == 0 ? rid->value : 0,
    };

    pair->after = false;
    pair_write(&pair->writer, &record, rid->data);
    FAULT(PAIR_SHOWN);
    wake_if_asleep(ctx, pair);
}

static inline void count_put(struct direct_pair *pair, size_t len)
{
    struct pair_counts *counts = &pair->writer.shared->origin.counts;

    pair->put_bytes += len;
    atomic_store_explicit(&counts->put_ops, ++pair->put_ops, memory_order_relaxed);
    atomic_store_explicit(&counts->put_bytes, pair->put_bytes, memory_order_relaxed);
}

/* Called when the bytes of a put or get are copied: shows this to both sides, and counts. */
static inline void put_ends(struct pwc_ctx *ctx, struct pwc_remote *dst, size_t len,
                            const pwc_cid *lid, const pwc_cid *rid, unsigned flags)
{
    struct direct_pair *pair = dst->pair;

    FAULT(DIRECT_COPIED);
    if (!(flags & PWC_NO_RCE)) {
        arrive(pair);
        show_target(ctx, dst, PAIR_PUT, len, rid, flags);
    } else if (len > 0) {
        arrive(pair);
        wake_if_counting(ctx, pair);
    }
    if (!(flags & PWC_NO_LCE))
        channel_own(&ctx->channel, SUBMIT_PUT, dst->peer, len, lid, 0);
    channel_count_end(&ctx->channel, 0);
    count_put(pair, len);
}

static inline void get_ends(struct pwc_ctx *ctx, struct pwc_remote *src, size_t len,
                            const pwc_cid *lid, const pwc_cid *rid, unsigned flags)
{
    struct direct_pair *pair = src->pair;
    struct pair_counts *counts = &pair->writer.shared->origin.counts;

    FAULT(DIRECT_COPIED);
    if (!(flags & PWC_NO_RCE))
        show_target(ctx, src, PAIR_GET, len, rid, flags);
    if (!(flags & PWC_NO_LCE))
        channel_own(&ctx->channel, SUBMIT_GET, src->peer, len, lid, 0);
    channel_count_end(&ctx->channel, 0);
    pair->get_bytes += len;
    atomic_store_explicit(&counts->get_ops, ++pair->get_ops, memory_order_relaxed);
    atomic_store_explicit(&counts->get_bytes, pair->get_bytes, memory_order_relaxed);
}

/* As direct_put. Inlined into both cases below. */
static inline __attribute__((always_inline)) int put(struct pwc_ctx *ctx, struct pwc_remote *dst,
                                                     uint64_t off, const void *src, size_t len,
                                                     const pwc_cid *lid, const pwc_cid *rid,
                                                     unsigned flags)
{
    int rc = room(ctx, dst->pair, lid, rid, flags);

    if (rc < 0)
        return rc;
    if (len > 0)
        word_place(dst->memory + off, src, len);
    put_ends(ctx, dst, len, lid, rid, flags);
    return 0;
}

static __attribute__((noinline)) int put_any(struct pwc_ctx *ctx, struct pwc_remote *dst,
                                             uint64_t off, const void *src, size_t len,
                                             const pwc_cid *lid, const pwc_cid *rid, unsigned flags)
{
    return put(ctx, dst, off, src, len, lid, rid, flags);
}

int direct_put(struct pwc_ctx *ctx, struct pwc_remote *dst, uint64_t off, const void *src,
               size_t len, const pwc_cid *lid, const pwc_cid *rid, unsigned flags)
{
    if (is_short(rid, flags))
        return put(ctx, dst, off, src, len, lid, &(pwc_cid){.value = rid->value},
                   short_flags(flags));
    return put_any(ctx, dst, off, src, len, lid, rid, flags);
}

int direct_signal(struct pwc_ctx *ctx, struct pwc_remote *dst, uint64_t off, const void *src,
                  size_t len, const struct signal *signal, const pwc_cid *lid, unsigned flags)
{
    const pwc_cid none = PWC_CID_NONE;
    uint8_t *word = dst->memory + signal->offset;
    int rc = word_aligned((uintptr_t)word, signal->code) ? 0 : -EINVAL;

    if (rc == 0)
        rc = room(ctx, dst->pair, lid, &none, flags | PWC_NO_RCE);
    if (rc < 0)
        return rc;
    if (len > 0)
        word_place(dst->memory + off, src, len);
    FAULT(DIRECT_COPIED);
    /* This instruction is a full barrier; the look at the bell must come after it (G). */
    (void)word_apply(word, signal->code, &signal->value, NULL);
    arrive(dst->pair);
    wake_if_asleep(ctx, dst->pair);
    if (!(flags & PWC_NO_LCE))
        channel_own(&ctx->channel, SUBMIT_SIGNAL, dst->peer, len, lid, 0);
    channel_count_end(&ctx->channel, 0);
    count_put(dst->pair, len);
    return 0;
}

/* As direct_get. */
static inline __attribute__((always_inline)) int get(struct pwc_ctx *ctx, struct pwc_remote *src,
                                                     uint64_t off, void *dst, size_t len,
                                                     const pwc_cid *lid, const pwc_cid *rid,
                                                     unsigned flags)
{
    int rc = room(ctx, src->pair, lid, rid, flags);

    if (rc < 0)
        return rc;
    if (len > 0)
        memcpy(dst, src->memory + off, len);
    get_ends(ctx, src, len, lid, rid, flags);
    return 0;
}

static __attribute__((noinline)) int get_any(struct pwc_ctx *ctx, struct pwc_remote *src,
                                             uint64_t off, void *dst, size_t len,
                                             const pwc_cid *lid, const pwc_cid *rid, unsigned flags)
{
    return get(ctx, src, off, dst, len, lid, rid, flags);
}

int direct_get(struct pwc_ctx *ctx, struct pwc_remote *src, uint64_t off, void *dst, size_t len,
               const pwc_cid *lid, const pwc_cid *rid, unsigned flags)
{
    if (is_short(rid, flags))
        return get(ctx, src, off, dst, len, lid, &(pwc_cid){.value = rid->value},
                   short_flags(flags));
    return get_any(ctx, src, off, dst, len, lid, rid, flags);
}

/* ---- vectors --------------------------------------------------------------------------------- */

/* Takes the next piece of a list, or the next row of a shape. Returns how many pieces that are; 0:
 * there are no more. */
static uint32_t take(struct pieces *pieces, struct pwc_piece *first)
{
    return pieces->list ? pieces_next_listed(pieces, first)
                        : pieces_take_row(pieces, UINT32_MAX, first);
}

int direct_putv(struct pwc_ctx *ctx, struct pwc_remote *dst, const struct pieces *all, size_t total,
                const pwc_cid *lid, const pwc_cid *rid, unsigned flags)
{
    struct pieces pieces = *all;
    struct pwc_piece piece;
    uint32_t count;
    int rc = room(ctx, dst->pair, lid, rid, flags);

    if (rc < 0)
        return rc;
    while ((count = take(&pieces, &piece)) > 0)
        strided_copy(dst->memory + piece.off, all->remote_stride, piece.local, all->local_stride,
                     piece.len, count);
    put_ends(ctx, dst, total, lid, rid, flags);
    return 0;
}

int direct_getv(struct pwc_ctx *ctx, struct pwc_remote *src, const struct pieces *all, size_t total,
                const pwc_cid *lid, const pwc_cid *rid, unsigned flags)
{
    struct pieces pieces = *all;
    struct pwc_piece piece;
    uint32_t count;
    int rc = room(ctx, src->pair, lid, rid, flags);

    if (rc < 0)
        return rc;
    while ((count = take(&pieces, &piece)) > 0)
        strided_copy(piece.local, all->local_stride, src->memory + piece.off, all->remote_stride,
                     piece.len, count);
    get_ends(ctx, src, total, lid, rid, flags);
    return 0;
}

/* Checks everything before the first word is changed. There must be room for the local event in any
 * case, because an atomic may fail. */
static int check_atomic(struct pwc_ctx *ctx, const struct atomic_call *a)
{
    int rc = word_aligned((uintptr_t)a->dst->memory, a->code) ? 0 : -EINVAL;

    if (rc == 0 && a->result && a->count > 1)
        rc = operation_check_memory(ctx, a->result, a->count * word_bytes(a->code));
    return rc == 0 ? room(ctx, a->dst->pair, a->lid, a->rid, a->flags & ~(unsigned)PWC_NO_LCE) : rc;
}

/* Adds the local event, if one is wanted or the atomic has failed; or notes the end in its
 * request. */
static void end_atomic(struct pwc_ctx *ctx, const struct atomic_call *a, int status, uint64_t bytes)
{
    if (a->request)
        request_end_at_once(a->request, status, a->dst->peer, bytes);
    else if (status < 0 || !(a->flags & PWC_NO_LCE))
        channel_own(&ctx->channel, SUBMIT_ATOMIC, a->dst->peer, bytes, a->lid, status);
    channel_count_end(&ctx->channel, status);
}

int direct_atomic(struct pwc_ctx *ctx, const struct atomic_call *a)
{
    struct direct_pair *pair = a->dst->pair;
    uint64_t bytes = a->count * word_bytes(a->code);
    uint32_t done;
    int rc = check_atomic(ctx, a);

    if (rc < 0)
        return rc;
    done = word_apply_all(a->dst->memory + a->off, a->code, (uint32_t)a->count, a->operands,
                          a->result);
    FAULT(DIRECT_COPIED);
    if (done < a->count) {
        if (done > 0)
            wake_if_asleep(ctx, pair); /* the target may wait for a word that has changed */
        end_atomic(ctx, a, -EBUSY, done);
        return 0;
    }
    if (word_op(a->code) != WORD_READ)
        arrive(pair);
    if (!(a->flags & PWC_NO_RCE))
        show_target(ctx, a->dst, PAIR_ATOMIC, bytes, a->rid, a->flags);
    else
        wake_if_asleep(ctx, pair); /* the target may wait for the word */
    end_atomic(ctx, a, 0, bytes);
    count_put(pair, bytes);
    return 0;
}
