/* Owns the pairs of which a context is the origin, and what is done by them (direct.h). Thread: the
 * context's. */
#include "direct.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "context.h"
#include "doorbell.h"
#include "fault.h"
#include "operation.h"

/* ---- opening -------------------------------------------------------------------------------- */

void direct_way_take(struct direct_way *way, const Pwc__Pair *pair, int *fds, int fd_count)
{
    *way = (struct direct_way){.present = pair && fd_count <= DIRECT_FDS};
    if (!way->present)
        return;
    way->fresh = pair->fresh;
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

static void pair_free(struct direct_pair *pair)
{
    mapping_destroy(&pair->ring);
    free(pair);
}

static struct direct_pair *pair_new(struct pwc_ctx *ctx, struct direct_way *way, int *next)
{
    struct direct_pair *pair = calloc(1, sizeof(*pair));
    int rc = -ENOMEM;

    if (!pair)
        return NULL;
    pair->number = way->number;
    pair->ring.fd = -1;
    rc = map_whole(&pair->ring, way, next, PAIR_BYTES);
    if (rc == 0)
        rc = pair_writer_init(&pair->writer, pair->ring.base, pair->ring.size);
    if (rc == 0)
        rc = channel_own_prepare(&ctx->channel);
    if (rc < 0) {
        pair_free(pair);
        return NULL;
    }
    pair->next = ctx->pairs;
    ctx->pairs = pair;
    return pair;
}

static struct direct_pair *pair_find(const struct pwc_ctx *ctx, uint64_t number)
{
    struct direct_pair *pair = ctx->pairs;

    while (pair && pair->number != number)
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

void direct_open(struct pwc_ctx *ctx, struct pwc_remote *remote, struct direct_way *way)
{
    struct direct_pair *pair = NULL;
    int next = 0;

    if (way->present)
        pair = way->fresh ? pair_new(ctx, way, &next) : pair_find(ctx, way->number);
    if (pair && remote->length > 0 && map_region(remote, way, &next) < 0)
        pair = NULL;
    if (pair) {
        remote->pair = pair;
        pair->remotes++;
    }
    for (int i = 0; i < way->fd_count; i++)
        if (way->fds[i] >= 0)
            close(way->fds[i]);
}

static void pair_remove(struct pwc_ctx *ctx, struct direct_pair *pair)
{
    struct direct_pair **at = &ctx->pairs;

    while (*at != pair)
        at = &(*at)->next;
    *at = pair->next;
    pair_free(pair);
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

/* While the target lives, the next bind is told of the same pair. */
static bool leads_nowhere(const struct direct_pair *pair)
{
    uint32_t gone = atomic_load_explicit(&pair->writer.shared->gone, memory_order_relaxed);

    return pair->remotes == 0 && gone & PAIR_TARGET_GONE;
}

void direct_check(struct pwc_ctx *ctx)
{
    struct direct_pair *next;

    for (struct direct_pair *pair = ctx->pairs; pair; pair = next) {
        next = pair->next;
        if (leads_nowhere(pair))
            pair_remove(ctx, pair);
    }
}

void direct_destroy(struct pwc_ctx *ctx)
{
    while (ctx->pairs)
        pair_remove(ctx, ctx->pairs);
}

/* ---- which path ----------------------------------------------------------------------------- */

static bool has_ended(const struct pwc_ctx *ctx, const struct pwc_remote *remote)
{
    const _Atomic uint64_t *words = ctx->channel.shared->ended_remotes;
    uint32_t handle = remote->handle;

    return atomic_load_explicit(&words[handle / 64], memory_order_acquire) >> handle % 64 & 1;
}

int direct_leave(const struct pwc_remote *remote)
{
    struct direct_pair *pair = remote->pair;

    if (!pair || pair->by_daemon)
        return 0;
    if (!pair_drained(&pair->writer))
        return -EAGAIN;
    pair->by_daemon = true;
    return 0;
}

/* Back to the direct path, when all has ended and its events stand among those kept: 1; else 0. */
static int come_back(struct pwc_ctx *ctx, struct direct_pair *pair)
{
    if (!channel_idle(&ctx->channel) || channel_collect(&ctx->channel) < 0)
        return 0;
    pair->by_daemon = false;
    pair->after = true;
    return 1;
}

int direct_choose(struct pwc_ctx *ctx, struct pwc_remote *remote)
{
    struct direct_pair *pair = remote->pair;
    int rc = channel_state(&ctx->channel);

    if (rc < 0)
        return rc;
    if (ctx->channel.submit.open)
        return -EBUSY;
    if (has_ended(ctx, remote))
        return direct_leave(remote);
    return pair->by_daemon ? come_back(ctx, pair) : 1;
}

bool direct_idle(const struct pwc_remote *remote)
{
    return remote->pair && !remote->pair->by_daemon;
}

/* ---- waking --------------------------------------------------------------------------------- */

/* By an operation of no effect, for which the daemon rings the target's bell. */
static void ask_for_wake(struct pwc_ctx *ctx, struct direct_pair *pair,
                         const struct pwc_remote *remote)
{
    const struct submit_record record = {
        .kind = SUBMIT_FLUSH,
        .flags = SUBMIT_WAKE | SUBMIT_NO_LCE,
        .remote = remote->handle,
    };
    int rc = channel_submit(&ctx->channel, &record, NULL, NULL, NULL);

    if (rc == 1)
        context_ring(ctx);
    pair->wake_due = rc == -EAGAIN || rc == -EBUSY; /* a Medium is being prepared */
    ctx->wakes_due |= pair->wake_due;
}

void direct_retry_wakes(struct pwc_ctx *ctx)
{
    ctx->wakes_due = false;
    for (struct pwc_remote *remote = ctx->remotes; remote; remote = remote->next)
        if (remote->pair && remote->pair->wake_due)
            ask_for_wake(ctx, remote->pair, remote);
}

/* After a record, without a fence: pair.h tells why. */
static inline bool target_sleeps(const struct direct_pair *pair)
{
    const _Atomic uint32_t *armed = &pair->writer.shared->bell.armed;

    atomic_signal_fence(memory_order_seq_cst);                                  /* G */
    return atomic_load_explicit(armed, memory_order_relaxed) != DOORBELL_AWAKE; /* G */
}

static void wake(struct pwc_ctx *ctx, struct direct_pair *pair, const struct pwc_remote *remote)
{
    /* Once: it looks at everything before it arms again. */
    atomic_store_explicit(&pair->writer.shared->bell.armed, DOORBELL_AWAKE, memory_order_relaxed);
    FAULT(PAIR_BELL);
    ask_for_wake(ctx, pair, remote);
}

/* ---- operations ----------------------------------------------------------------------------- */

/* Room for both events. */
static inline int room(struct pwc_ctx *ctx, struct direct_pair *pair, const pwc_cid *lid,
                       const pwc_cid *rid, unsigned flags)
{
    /* What a neighbour has written there, if it makes no sense, is no fault of ours: as if full. */
    if (!(flags & PWC_NO_RCE) && pair_room(&pair->writer, (uint32_t)rid->size) < 0)
        return -EAGAIN;
    return flags & PWC_NO_LCE ? 0 : channel_own_room(&ctx->channel, (uint32_t)lid->size);
}

/* The bytes are placed: the target may know. */
static inline void tell_target(struct pwc_ctx *ctx, struct pwc_remote *remote, enum pair_kind kind,
                               uint64_t len, const pwc_cid *rid)
{
    struct direct_pair *pair = remote->pair;
    const struct pair_record record = {
        .kind = (uint8_t)kind,
        .flags = pair->after ? PAIR_AFTER : 0,
        .id_len = (uint16_t)rid->size,
        .bytes = len,
        .id = rid->size == 0 ? rid->value : 0,
    };

    pair->after = false;
    pair_write(&pair->writer, &record, rid->data);
    FAULT(PAIR_SHOWN);
    if (target_sleeps(pair))
        wake(ctx, pair, remote);
}

int direct_put(struct pwc_ctx *ctx, struct pwc_remote *dst, uint64_t off, const void *src,
               size_t len, const pwc_cid *lid, const pwc_cid *rid, unsigned flags)
{
    struct direct_pair *pair = dst->pair;
    struct pair_shared *shared = pair->writer.shared;
    int rc = 0;

    if (len > ctx->client->packed_max)
        rc = operation_check_memory(ctx, src, len);
    if (rc == 0)
        rc = room(ctx, pair, lid, rid, flags);
    if (rc < 0)
        return rc;
    if (len > 0)
        memcpy(dst->memory + off, src, len);
    FAULT(DIRECT_COPIED);
    if (!(flags & PWC_NO_RCE))
        tell_target(ctx, dst, PAIR_PUT, len, rid);
    if (!(flags & PWC_NO_LCE))
        channel_own(&ctx->channel, SUBMIT_PUT, dst->peer, len, lid);
    pair->put_bytes += len;
    atomic_store_explicit(&shared->put_ops, ++pair->put_ops, memory_order_relaxed);
    atomic_store_explicit(&shared->put_bytes, pair->put_bytes, memory_order_relaxed);
    return 0;
}

int direct_get(struct pwc_ctx *ctx, struct pwc_remote *src, uint64_t off, void *dst, size_t len,
               const pwc_cid *lid, const pwc_cid *rid, unsigned flags)
{
    struct direct_pair *pair = src->pair;
    struct pair_shared *shared = pair->writer.shared;
    int rc = 0;

    if (len > 0)
        rc = operation_check_memory(ctx, dst, len);
    if (rc == 0)
        rc = room(ctx, pair, lid, rid, flags);
    if (rc < 0)
        return rc;
    if (len > 0)
        memcpy(dst, src->memory + off, len);
    FAULT(DIRECT_COPIED);
    if (!(flags & PWC_NO_RCE))
        tell_target(ctx, src, PAIR_GET, len, rid);
    if (!(flags & PWC_NO_LCE))
        channel_own(&ctx->channel, SUBMIT_GET, src->peer, len, lid);
    pair->get_bytes += len;
    atomic_store_explicit(&shared->get_ops, ++pair->get_ops, memory_order_relaxed);
    atomic_store_explicit(&shared->get_bytes, pair->get_bytes, memory_order_relaxed);
    return 0;
}
