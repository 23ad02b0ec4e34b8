/* Owns the pairs of which a context is the origin, and what is done by them (direct.h). Thread: the
 * context's. */
#include "clientlib/neighbours/direct.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clientlib/attach/wake.h"
#include "clientlib/calls/atomic.h"
#include "clientlib/calls/operation.h"
#include "clientlib/calls/pieces.h"
#include "shm_ring/fault.h"
#include "shm_ring/word.h"

/* ---- opening -------------------------------------------------------------------------------- */

void direct_way_take(struct direct_way *way, const Pwc__Pair *pair, int *fds, int fd_count)
{
    *way = (struct direct_way){.present = pair && fd_count <= DIRECT_FDS};
    if (!way->present)
        return;
    way->fresh = pair->fresh;
    way->board = pair->fresh && pair->board && pair->slot < BOARD_SLOTS;
    way->slot = pair->slot;
    way->number = pair->number;
    way->segment_length = pair->segment_length;
    way->offset = pair->offset;
    for (int i = 0; i < fd_count; i++) {
        way->fds[way->fd_count++] = fds[i];
        fds[i] = -1;
    }
}

static int take_fd(struct direct_way *way, int *next)
{
    int fd;

    if (*next >= way->fd_count)
        return -1;
    fd = way->fds[*next];
    way->fds[(*next)++] = -1;
    return fd;
}

static int map_whole(struct mapping *m, struct direct_way *way, int *next, size_t size)
{
    int fd = take_fd(way, next);
    int rc = fd < 0 ? -EPROTO : mapping_adopt(m, fd, size);

    if (rc < 0 && fd >= 0)
        close(fd);
    if (rc == 0)
        mapping_close_fd(m);
    return rc;
}

static int pair_map(struct direct_pair *pair, struct direct_way *way, int *next)
{
    int rc = map_whole(&pair->ring, way, next, PAIR_BYTES);

    if (rc == 0)
        rc = pair_writer_init(&pair->writer, pair->ring.base, pair->ring.size, PAIR_REQUESTS);
    if (rc == 0)
        rc = pair_reader_init(&pair->answers, pair->ring.base, pair->ring.size, PAIR_ANSWERS);
    return rc;
}

/* Where this fails, the target never leaves us quiet. */
static void map_board(struct direct_pair *pair, struct direct_way *way, int *next)
{
    struct board_shared *board;

    if (!way->board || map_whole(&pair->board, way, next, BOARD_BYTES) < 0)
        return;
    board = pair->board.base;
    pair->writer.called = &board->called[way->slot / 64];
    pair->writer.bit = UINT64_C(1) << way->slot % 64;
    atomic_store_explicit(&pair->writer.shared->origin.mapped, 1, memory_order_release);
}

static struct direct_pair *pair_new(struct pwc_ctx *ctx, uint64_t peer, struct direct_way *way,
                                    int *next)
{
    struct direct_pair *pair = calloc(1, sizeof(*pair));
    int rc = -ENOMEM;

    if (!pair)
        return NULL;
    pair->number = way->number;
    pair->peer = peer;
    pair->ring.fd = pair->board.fd = -1;
    /* Until the target has mapped the pair, and all operations through the daemon have ended. */
    pair->by_daemon = true;
    rc = pair_map(pair, way, next);
    if (rc == 0)
        rc = channel_own_prepare(&ctx->channel);
    if (rc == 0)
        map_board(pair, way, next);
    if (rc < 0) {
        mapping_destroy(&pair->ring);
        free(pair);
        return NULL;
    }
    neighbours_add_ours(&ctx->channel.neighbours, pair);
    return pair;
}

/* The newest pair with this peer that is not over. */
static struct direct_pair *pair_of_peer(const struct pwc_ctx *ctx, uint64_t peer)
{
    struct direct_pair *pair = ctx->channel.neighbours.ours;

    while (pair && (pair->peer != peer || pair->over))
        pair = pair->next;
    return pair;
}

/* The pages of the region. */
static int map_region(struct pwc_remote *remote, struct direct_way *way, int *next)
{
    struct mapping_part part = {
        .file_size = way->segment_length,
        .offset = way->offset,
        .length = remote->length,
        .writable = remote->rights & PWC_REMOTE_WRITE,
    };
    int fd = take_fd(way, next);
    void *at;
    int rc = fd < 0 ? -EPROTO : mapping_adopt_part(&remote->mapping, fd, &part, &at);

    if (fd >= 0)
        close(fd);
    remote->memory = rc == 0 ? at : NULL;
    return rc;
}

static void lead(struct pwc_remote *remote, struct direct_pair *pair)
{
    remote->pair = pair;
    pair->remotes++;
}

/* Remotes of the same peer that were bound before there was a way: one path for all. */
static void lead_others(struct pwc_ctx *ctx, struct direct_pair *pair)
{
    for (struct pwc_remote *other = ctx->remotes; other; other = other->next)
        if (other->peer == pair->peer && !other->pair)
            lead(other, pair);
}

void direct_open(struct pwc_ctx *ctx, struct pwc_remote *remote, struct direct_way *way)
{
    struct direct_pair *pair = NULL;
    int next = 0;

    if (way->present && way->fresh) {
        pair = pair_new(ctx, remote->peer, way, &next);
        if (pair)
            lead_others(ctx, pair);
    } else {
        pair = pair_of_peer(ctx, remote->peer);
    }
    if (pair) {
        lead(remote, pair);
        remote->way = way->present && pair->number == way->number &&
                      (remote->length == 0 || map_region(remote, way, &next) == 0);
    }
    for (int i = 0; i < way->fd_count; i++)
        if (way->fds[i] >= 0)
            close(way->fds[i]);
}

void direct_close(struct pwc_ctx *ctx, struct pwc_remote *remote)
{
    struct direct_pair *pair = remote->pair;

    if (remote->mapping.base)
        mapping_destroy(&remote->mapping);
    remote->pair = NULL;
    if (pair) {
        pair->remotes--;
        direct_check(ctx);
    }
}

/* Only of a target that is gone: while it lives, the next bind leads to the same pair. */
static bool pair_is_dead(const struct direct_pair *pair)
{
    uint32_t gone = atomic_load_explicit(&pair->writer.shared->gone, memory_order_relaxed);

    return pair->remotes == 0 && gone & PAIR_TARGET_GONE && !pair_pending(&pair->answers);
}

void direct_check(struct pwc_ctx *ctx)
{
    struct neighbours *n = &ctx->channel.neighbours;
    struct direct_pair *next;

    for (struct direct_pair *pair = n->ours; pair; pair = next) {
        next = pair->next;
        if (pair_is_dead(pair))
            neighbours_drop(n, pair);
    }
}

/* ---- which path ----------------------------------------------------------------------------- */

bool direct_has_ended(const struct pwc_ctx *ctx, const struct pwc_remote *remote)
{
    const _Atomic uint64_t *words = ctx->channel.shared->ended_remotes;
    uint32_t handle = remote->handle;

    return atomic_load_explicit(&words[handle / 64], memory_order_acquire) >> handle % 64 & 1;
}

int direct_leave(struct pwc_ctx *ctx, const struct pwc_remote *remote)
{
    struct direct_pair *pair = remote->pair;

    if (!pair || pair->by_daemon)
        return 0;
    if (ctx->channel.submit.open)
        return -EBUSY;
    if (!pair->over && (pair->awaited > 0 || !pair_drained(&pair->writer))) {
        neighbours_refuse(pair);
        return -EAGAIN;
    }
    pair->by_daemon = true;
    return 0;
}

/* 1: back to the direct path, since the target has mapped the pair, all operations have ended, and
 * their events are kept; else 0. An operation without a record may go directly to a target that has
 * not mapped the pair: 1 too, but the path stays the daemon's. */
static int come_back(struct pwc_ctx *ctx, struct direct_pair *pair, bool record)
{
    bool mapped =
        atomic_load_explicit(&pair->writer.shared->target.mapped, memory_order_acquire) == 1;

    if ((!mapped && record) || !channel_idle(&ctx->channel) ||
        channel_awaits_reply(&ctx->channel) || channel_collect(&ctx->channel) < 0)
        return 0;
    pair->by_daemon = !mapped;
    pair->after = true;
    return 1;
}

/* direct_choose where something has changed, or may have to. */
static __attribute__((noinline)) int choose_anew(struct pwc_ctx *ctx,
                                                 const struct pwc_remote *remote, bool record)
{
    struct direct_pair *pair = remote->pair;
    int rc = channel_state(&ctx->channel);

    if (rc < 0)
        return rc;
    if (ctx->channel.submit.open)
        return -EBUSY;
    if (!remote->way || direct_has_ended(ctx, remote))
        return direct_leave(ctx, remote);
    return pair->by_daemon ? come_back(ctx, pair, record) : 1;
}

int direct_choose(struct pwc_ctx *ctx, const struct pwc_remote *remote, bool record)
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

/* ---- operations ----------------------------------------------------------------------------- */

/* Only the target learns of it, by an id by value: the most frequent way has code of its own. */
static inline bool is_short(const pwc_cid *rid, unsigned flags)
{
    return rid->size == 0 && (flags & (PWC_NO_LCE | PWC_NO_RCE)) == PWC_NO_LCE;
}

/* The flags of such an operation, as the compiler knows them. */
static inline unsigned short_flags(unsigned flags)
{
    return (flags & PWC_NOTIFY) | PWC_NO_LCE;
}

/* Room for both events. */
static inline int room(struct pwc_ctx *ctx, struct direct_pair *pair, const pwc_cid *lid,
                       const pwc_cid *rid, unsigned flags)
{
    if (!(flags & PWC_NO_RCE) && direct_room(pair, pair_lines((uint32_t)rid->size)) < 0)
        return -EAGAIN;
    return flags & PWC_NO_LCE
               ? 0
               : channel_own_room(&ctx->channel, (uint32_t)lid->size + ctx->channel.set_aside);
}

/* The target may sleep until it finds what was written last. */
static inline void wake_if_asleep(struct pwc_ctx *ctx, struct direct_pair *pair)
{
    if (pair_reader_sleeps(&pair->writer))
        wake_target(ctx, pair);
}

/* Writes the record of an operation whose bytes are placed. */
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

/* The bytes of a put are placed, those of a get are here: shows both sides that, and counts. */
static inline void put_ends(struct pwc_ctx *ctx, struct pwc_remote *dst, size_t len,
                            const pwc_cid *lid, const pwc_cid *rid, unsigned flags)
{
    struct direct_pair *pair = dst->pair;

    FAULT(DIRECT_COPIED);
    if (!(flags & PWC_NO_RCE))
        show_target(ctx, dst, PAIR_PUT, len, rid, flags);
    if (!(flags & PWC_NO_LCE))
        channel_own(&ctx->channel, SUBMIT_PUT, dst->peer, len, lid, 0);
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
    pair->get_bytes += len;
    atomic_store_explicit(&counts->get_ops, ++pair->get_ops, memory_order_relaxed);
    atomic_store_explicit(&counts->get_bytes, pair->get_bytes, memory_order_relaxed);
}

/* As direct_put. Compiled into each of the two ways below. */
static inline __attribute__((always_inline)) int put(struct pwc_ctx *ctx, struct pwc_remote *dst,
                                                     uint64_t off, const void *src, size_t len,
                                                     const pwc_cid *lid, const pwc_cid *rid,
                                                     unsigned flags)
{
    int rc = 0;

    if (len > ctx->client->packed_max)
        rc = operation_check_memory(ctx, src, len);
    if (rc == 0)
        rc = room(ctx, dst->pair, lid, rid, flags);
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

    if (rc == 0 && len > ctx->client->packed_max)
        rc = operation_check_memory(ctx, src, len);
    if (rc == 0)
        rc = room(ctx, dst->pair, lid, &none, flags | PWC_NO_RCE);
    if (rc < 0)
        return rc;
    if (len > 0)
        word_place(dst->memory + off, src, len);
    FAULT(DIRECT_COPIED);
    /* An instruction with a full barrier, which the look at the bell must stand behind (G). */
    (void)word_apply(word, signal->code, &signal->value, NULL);
    wake_if_asleep(ctx, dst->pair);
    if (!(flags & PWC_NO_LCE))
        channel_own(&ctx->channel, SUBMIT_SIGNAL, dst->peer, len, lid, 0);
    count_put(dst->pair, len);
    return 0;
}

/* As direct_get. */
static inline __attribute__((always_inline)) int get(struct pwc_ctx *ctx, struct pwc_remote *src,
                                                     uint64_t off, void *dst, size_t len,
                                                     const pwc_cid *lid, const pwc_cid *rid,
                                                     unsigned flags)
{
    int rc = 0;

    if (len > 0)
        rc = operation_check_memory(ctx, dst, len);
    if (rc == 0)
        rc = room(ctx, src->pair, lid, rid, flags);
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

/* ---- vectors -------------------------------------------------------------------------------- */

int direct_putv(struct pwc_ctx *ctx, struct pwc_remote *dst, const struct pieces *all, size_t total,
                const pwc_cid *lid, const pwc_cid *rid, unsigned flags)
{
    struct pieces pieces = *all;
    struct pwc_piece piece;
    int rc = room(ctx, dst->pair, lid, rid, flags);

    if (rc < 0)
        return rc;
    while (pieces_next(&pieces, &piece))
        memcpy(dst->memory + piece.off, piece.local, piece.len);
    put_ends(ctx, dst, total, lid, rid, flags);
    return 0;
}

int direct_getv(struct pwc_ctx *ctx, struct pwc_remote *src, const struct pieces *all, size_t total,
                const pwc_cid *lid, const pwc_cid *rid, unsigned flags)
{
    struct pieces pieces = *all;
    struct pwc_piece piece;
    int rc = room(ctx, src->pair, lid, rid, flags);

    if (rc < 0)
        return rc;
    while (pieces_next(&pieces, &piece))
        memcpy(piece.local, src->memory + piece.off, piece.len);
    get_ends(ctx, src, total, lid, rid, flags);
    return 0;
}

/* Finds what is wrong before the first word is touched. Room for the local event is made sure
 * of in any case, because an atomic may fail. */
static int check_atomic(struct pwc_ctx *ctx, const struct atomic_call *a)
{
    int rc = word_aligned((uintptr_t)a->dst->memory, a->code) ? 0 : -EINVAL;

    if (rc == 0 && a->result && a->count > 1)
        rc = operation_check_memory(ctx, a->result, a->count * word_bytes(a->code));
    return rc == 0 ? room(ctx, a->dst->pair, a->lid, a->rid, a->flags & ~(unsigned)PWC_NO_LCE) : rc;
}

/* Adds the local event, where one is asked for or the atomic has failed; or notes the end in its
 * request. */
static void end_atomic(struct pwc_ctx *ctx, const struct atomic_call *a, int status, uint64_t bytes)
{
    if (a->request)
        request_end_at_once(a->request, status, a->dst->peer, bytes);
    else if (status < 0 || !(a->flags & PWC_NO_LCE))
        channel_own(&ctx->channel, SUBMIT_ATOMIC, a->dst->peer, bytes, a->lid, status);
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
        end_atomic(ctx, a, -EBUSY, done);
        return 0;
    }
    if (!(a->flags & PWC_NO_RCE))
        show_target(ctx, a->dst, PAIR_ATOMIC, bytes, a->rid, a->flags);
    else
        wake_if_asleep(ctx, pair); /* it may wait for the word */
    end_atomic(ctx, a, 0, bytes);
    count_put(pair, bytes);
    return 0;
}
