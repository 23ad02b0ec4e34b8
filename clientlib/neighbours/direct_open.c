/* Owns the pairs of which a context is the origin, from opening to closing (direct.h). Thread: the
 * context's. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "clientlib/attach/context.h"
#include "clientlib/calls/series.h"
#include "clientlib/neighbours/direct.h"

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

void direct_way_drop(struct direct_way *way)
{
    for (int i = 0; i < way->fd_count; i++)
        if (way->fds[i] >= 0)
            close(way->fds[i]);
    way->fd_count = 0;
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

/* If this fails, the target never makes the pair quiet. */
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
    /* The path is the daemon's until the target has mapped the pair, and all operations through the
     * daemon have ended. */
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

/* Maps the pages of the region. */
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

/* Gives the pair to remotes of the same peer that were bound before there was a pair: all share one
 * path. */
static void lead_others(struct pwc_ctx *ctx, struct direct_pair *pair)
{
    struct pwc_remote *other = bound_of_peer(&ctx->bound, pair->peer);

    for (; other; other = bound_next(other))
        if (!other->pair || other->pair == &series_pair)
            lead(other, pair);
}

bool direct_way_is_lost(const struct pwc_ctx *ctx, const struct direct_way *way)
{
    const struct direct_pair *pair = ctx->channel.neighbours.ours;

    while (pair && pair->number != way->number)
        pair = pair->next;
    return way->present && !way->fresh && !pair;
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
    direct_way_drop(way);
}

void direct_close(struct pwc_ctx *ctx, struct pwc_remote *remote)
{
    struct direct_pair *pair = remote->pair == &series_pair ? NULL : remote->pair;

    if (remote->mapping.base)
        mapping_destroy(&remote->mapping);
    remote->pair = NULL;
    if (pair) {
        pair->remotes--;
        direct_check(ctx);
    }
}

/* Whether the pair can be freed: only if its target is gone. While the target lives, the next bind
 * uses the same pair. */
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
