/*
 * Vectors and shapes: their pieces are checked and counted, then copied to a neighbour, or
 * submitted as one series (channel_vector.h). Each of these steps goes over the pieces again.
 *
 * Thread: the one that owns the context. No system call unless the daemon sleeps or waits for this
 * processor (give_way.h) or pieces are in the heap break (spans.h), no allocation, no lock (except
 * a copy of the span table when a region was added or removed).
 */
#include <errno.h>
#include <string.h>
#include "clientlib/calls/give_way.h"
#include "clientlib/calls/operation.h"
#include "clientlib/calls/pieces.h"
#include "clientlib/calls/room.h"
#include "clientlib/channel/channel_vector.h"
#include "clientlib/neighbours/direct.h"

static_assert(PWC_PIECES_MAX == VECTOR_PIECES_MAX, "as many as the tests of the engine have");

enum {
    GETV_FLAGS = PWC_NO_LCE | PWC_NO_RCE | PWC_LCE_SOURCE | PWC_FENCE | PWC_UNORDERED | PWC_NOTIFY,
    PUTV_FLAGS = GETV_FLAGS | SUBMIT_PROTOCOL,
};

/* A vector as the caller asked for it, and the result of a first look at all its pieces. */
struct vector {
    struct pwc_ctx *ctx;
    struct pwc_remote *remote;
    struct pieces pieces;
    const pwc_cid *lid, *rid;
    unsigned flags;
    struct pwc_piece first;
    uint64_t total;     /* bytes */
    size_t longest;     /* piece */
    uint64_t ring;      /* bytes that the records need in the submission ring */
    uint32_t records;   /* of pieces */
    uint32_t longs;     /* pieces that are not packed */
    uint32_t count;     /* pieces */
    uint32_t block_max; /* 0: no piece is packed */
    uint32_t block;     /* bytes in the last block, which is not full */
    /* Where the daemon reads the elements of a shape: how many a record has at most, and where the
     * local range begins; `strided` 0: the library copies them. */
    uint32_t strided;
    uint32_t segment;
    uint64_t local_from, local_offset;
    struct span_look look; /* of all pieces that must be in regions */
};

static bool is_short(const struct vector *v, const struct pwc_piece *piece)
{
    return channel_piece_short(v->block_max, piece->off, piece->len);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static void count_record(struct vector *v)
{
    v->records++;
    v->ring += sizeof(struct submit_record);
}

static void count_long(struct vector *v, const struct pwc_piece *piece)
{
    uint64_t end = (uintptr_t)piece->local + piece->len;

    count_record(v);
    v->longs++;
    if (end > v->look.highest)
        v->look.highest = end;
}

static void count_short(struct vector *v, const struct pwc_piece *piece)
{
    uint32_t size = (uint32_t)sizeof(struct vector_piece) + abi_pad8((uint32_t)piece->len);

    if (v->block == 0 || v->block + size > v->block_max) {
        count_record(v);
        v->block = 0;
    }
    v->block += size;
    v->ring += size;
}

static int check_piece(struct vector *v, const struct pwc_piece *piece, unsigned right)
{
    int rc = operation_check_range(v->ctx, v->remote, piece->off, piece->len, right);

    if (rc < 0)
        return rc;
    if (v->count == PWC_PIECES_MAX)
        return -E2BIG;
    if (v->count++ == 0)
        v->first = *piece;
    v->total += piece->len;
    if (piece->len > v->longest)
        v->longest = piece->len;
    if (is_short(v, piece))
        count_short(v, piece);
    else
        count_long(v, piece);
    return v->total > v->ctx->client->message_max ? -EMSGSIZE : 0;
}

/* Counts the records of pieces of one length. A block is full when it has no room for another
 * piece. */
static void count_alike(struct vector *v, const struct pieces_extent *all)
{
    uint64_t size = sizeof(struct vector_piece) + ((all->length + 7) & ~(uint64_t)7), step;

    if (!channel_piece_short(v->block_max, all->end - all->length, all->length)) {
        v->longs = v->records = (uint32_t)all->count;
        v->look.highest = all->local_end;
        v->ring = all->count * sizeof(struct submit_record);
        return;
    }
    step = v->block_max >= 2 * size ? v->block_max - size : size;
    v->ring = all->count * size;
    for (uint64_t done = 0; done < all->count * size; done += step)
        v->records++;
    v->ring += v->records * sizeof(struct submit_record);
}

/*
 * The most elements in a record when the daemon reads a shape of this extent out of the client's
 * memory, or 0: the library copies them. The daemon saves a copy, but each record has one row's
 * elements only, so a row has to be worth it.
 */
static uint32_t elements_of_record(struct vector *v, const struct pieces_extent *all)
{
    size_t most = v->ctx->client->packed_max / all->length;
    size_t row = most < v->pieces.left ? most : v->pieces.left;
    uint8_t *shadow = NULL;

    if (!v->ctx->channel.shared->strided || v->total <= v->ctx->client->packed_max ||
        row * all->length < v->ctx->client->packed_max / 4 || all->local_end == 0)
        return 0;
    v->local_from = all->local_from;
    if (span_view_find(&v->ctx->spans, &v->ctx->client->spans, (const void *)all->local_from,
                       all->local_end - all->local_from, &v->segment, &v->local_offset,
                       &shadow) < 0 ||
        shadow)
        return 0;
    return (uint32_t)row;
}

static void count_strided(struct vector *v, const struct pieces_extent *all)
{
    uint64_t row = v->pieces.left; /* elements */

    v->records = (uint32_t)(all->count / row * ((row + v->strided - 1) / v->strided));
    v->ring = v->records * (sizeof(struct submit_record) + sizeof(struct submit_strided));
}

/* All pieces of a shape have the same length, so it is enough to check the two outermost. */
static int check_shape(struct vector *v, unsigned right)
{
    struct pieces_extent all;
    int rc = v->pieces.left > 0 ? pieces_extent(&v->pieces, &all) : 0;

    if (rc < 0 || v->pieces.left == 0)
        return rc;
    rc = operation_check_range(v->ctx, v->remote, all.from, all.length, right);
    if (rc == 0 && all.end > v->remote->length)
        rc = -ERANGE;
    if (rc < 0)
        return rc;
    v->first = v->pieces.next;
    v->count = (uint32_t)all.count;
    v->longest = all.length;
    if (__builtin_mul_overflow(all.count, all.length, &v->total) ||
        v->total > v->ctx->client->message_max)
        return -EMSGSIZE;
    if (right == PWC_REMOTE_WRITE)
        v->strided = elements_of_record(v, &all);
    if (v->strided > 0)
        count_strided(v, &all);
    else
        count_alike(v, &all);
    return 0;
}

/* Looks at ids, flags and all pieces: 0, or why the call fails. */
static int survey(struct vector *v, unsigned flags_allowed, unsigned right)
{
    struct pieces pieces = v->pieces;
    struct pwc_piece piece;
    int rc = operation_check(v->ctx, v->lid, v->flags, flags_allowed);

    if (rc == 0 && !operation_rid_valid(v->rid, v->flags))
        rc = -EINVAL;
    if (rc == 0 && !pieces.list)
        return check_shape(v, right);
    while (rc == 0 && pieces_next(&pieces, &piece))
        rc = check_piece(v, &piece, right);
    return rc;
}

/* Whether half of each ring has room for the vector's pieces. The other half is left for the end,
 * and for padding where the ring wraps. */
static int check_room(const struct vector *v)
{
    const struct channel *ch = &v->ctx->channel;

    return v->ring <= ch->submit.ring.size / 2 &&
                   (uint64_t)v->records * event_bytes(0) <= ch->local.limit / 2
               ? 0
               : -E2BIG;
}

/* ---- through the daemon ---------------------------------------------------------------------- */

static struct submit_record like(const struct vector *v, uint8_t kind)
{
    return (struct submit_record){
        .kind = kind,
        .flags = (uint16_t)v->flags,
        .remote = v->remote->handle,
        .length = v->total,
        .rid = v->rid->size == 0 ? v->rid->value : 0,
        .rid_len = (uint16_t)v->rid->size,
    };
}

/* Sets segment and offset of a piece; *shadow is the copy of a region that has one, or NULL. */
static int place_piece(struct vector *v, const struct pwc_piece *piece,
                       struct submit_record *record, uint8_t **shadow)
{
    return span_view_find_piece(&v->ctx->spans, &v->ctx->client->spans, &v->look, piece->local,
                                piece->len, &record->segment, &record->local_offset, shadow);
}

static int put_long(struct vector *v, struct channel_vector *out, const struct pwc_piece *piece)
{
    struct submit_record record = {.offset = piece->off, .length = piece->len, .lid = out->slot};
    uint8_t *shadow;
    int rc = place_piece(v, piece, &record, &shadow);

    if (rc == -EFAULT && piece->len <= v->ctx->client->packed_max)
        return -EMSGSIZE;
    if (rc < 0)
        return rc;
    if (shadow)
        memcpy(shadow, piece->local, piece->len);
    return channel_vector_long(out, &record);
}

static int put_strided(struct vector *v, struct channel_vector *out)
{
    struct pieces pieces = v->pieces;
    struct pwc_piece first;
    uint32_t count;
    int rc = 0;

    while (rc == 0 && (count = pieces_take_row(&pieces, v->strided, &first)) > 0) {
        const struct submit_record record = {
            .segment = v->segment,
            .local_offset = v->local_offset + ((uintptr_t)first.local - v->local_from),
        };
        const struct submit_strided elements = {
            .offset = first.off,
            .local_stride = v->pieces.local_stride,
            .remote_stride = v->pieces.remote_stride,
            .element = (uint32_t)first.len,
            .count = count,
        };

        rc = channel_vector_strided(out, &record, &elements);
    }
    return rc;
}

static int put_pieces(struct vector *v, struct channel_vector *out)
{
    struct pieces pieces = v->pieces;
    struct pwc_piece piece;
    int rc = 0;

    while (rc == 0 && v->longs > 0 && pieces_next(&pieces, &piece))
        if (!is_short(v, &piece))
            rc = put_long(v, out, &piece);
    pieces = v->pieces;
    while (rc == 0 && pieces_next(&pieces, &piece))
        if (is_short(v, &piece))
            rc = channel_vector_short(out, piece.off, piece.local, (uint32_t)piece.len);
    return rc;
}

static int get_piece(struct vector *v, struct channel_vector *out, const struct pwc_piece *piece)
{
    struct submit_record record = {.offset = piece->off, .length = piece->len, .lid = out->slot};
    int64_t slot = out->slot;
    uint8_t *shadow;
    int rc = place_piece(v, piece, &record, &shadow);

    if (rc < 0)
        return rc;
    if (shadow)
        slot = pending_begin_piece(&v->ctx->channel.pending, out->slot, piece->local, shadow,
                                   piece->len);
    if (slot < 0)
        return (int)slot;
    record.lid = (uint64_t)slot;
    return channel_vector_long(out, &record);
}

static int get_pieces(struct vector *v, struct channel_vector *out)
{
    struct pieces pieces = v->pieces;
    struct pwc_piece piece;
    int rc = 0;

    while (rc == 0 && pieces_next(&pieces, &piece))
        rc = get_piece(v, out, &piece);
    return rc;
}

/* Submits the whole vector, or nothing: `add` writes the records of the pieces. */
static int by_daemon(struct vector *v, uint8_t kind,
                     int (*add)(struct vector *v, struct channel_vector *out))
{
    struct channel *ch = &v->ctx->channel;
    const struct submit_record record = like(v, kind);
    struct channel_vector out;
    int64_t slot;
    int rc = check_room(v);

    if (rc < 0)
        return give_way_refused(&v->ctx->give_way, rc);
    slot = pending_begin_vector(&ch->pending, v->lid, v->flags, kind, v->total);
    if (slot < 0)
        return give_way_refused(&v->ctx->give_way, (int)slot);
    rc = channel_vector_begin(&out, ch, &record, (uint32_t)slot, v->ctx->client->packed_max);
    if (rc == 0)
        rc = add(v, &out);
    if (rc == 0)
        rc = channel_vector_end(&out, v->rid->data);
    if (rc < 0) {
        channel_vector_cancel(&out);
        pending_cancel(&ch->pending, (uint32_t)slot);
        return give_way_refused(&v->ctx->give_way, rc);
    }
    if (rc > 0)
        give_way_or_wake(v->ctx, rc);
    return 0;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The local id for the session: that of `request`, if the caller's id is a request. */
static pwc_cid id_of(const struct pwc_request *request, const pwc_cid *lid)
{
    return request ? request_cid(request) : *lid;
}

/* Submits through the daemon, also for a request. */
static int submit(struct vector *v, struct pwc_request *request, uint8_t kind,
                  int (*add)(struct vector *v, struct channel_vector *out))
{
    int rc;

    if (request)
        v->flags = operation_request_flags(v->flags);
    rc = by_daemon(v, kind, add);
    if (rc == 0 && request)
        request_begin(request);
    return rc;
}

/* Whether all pieces that are longer than `any` are in regions of this client. */
static int check_memory(struct vector *v, size_t any)
{
    struct pieces pieces = v->pieces;
    struct submit_record unused;
    struct pwc_piece piece;
    uint8_t *shadow;
    int rc = 0;

    while (rc == 0 && v->longest > any && pieces_next(&pieces, &piece))
        if (piece.len > any)
            rc = place_piece(v, &piece, &unused, &shadow);
    return rc;
}

/* Copies the vector directly. `copy` is direct_putv or direct_getv. */
static int copy_directly(struct vector *v, struct pwc_request *request, size_t any,
                         int (*copy)(struct pwc_ctx *ctx, struct pwc_remote *remote,
                                     const struct pieces *pieces, size_t total, const pwc_cid *lid,
                                     const pwc_cid *rid, unsigned flags))
{
    unsigned flags = v->flags | (request ? PWC_NO_LCE : 0);
    int rc = check_memory(v, any);

    if (rc == 0)
        rc = copy(v->ctx, v->remote, &v->pieces, v->total, v->lid, v->rid, flags);
    if (rc == 0 && request)
        request_end_at_once(request, 0, v->remote->peer, v->total);
    return rc;
}

static int put_now(pwc_remote *dst, const struct pieces *pieces, const pwc_cid *lid,
                   const pwc_cid *rid, unsigned flags)
{
    struct pwc_ctx *ctx = dst->ctx;
    struct pwc_request *request = operation_request(ctx, lid);
    const pwc_cid id = id_of(request, lid);
    struct vector v = {.ctx = ctx,
                       .remote = dst,
                       .pieces = *pieces,
                       .lid = &id,
                       .rid = rid,
                       .flags = flags,
                       .block_max = channel_block_max(&ctx->channel, ctx->client->packed_max)};
    int rc = survey(&v, PUTV_FLAGS, PWC_REMOTE_WRITE);

    if (rc < 0)
        return rc;
    if (v.count <= 1)
        return pwc_put(dst, v.first.off, v.first.local, v.first.len, *lid, *rid, flags);
    if (dst->pair)
        rc = direct_choose(ctx, dst, !(flags & PWC_NO_RCE));
    if (rc == 1)
        return copy_directly(&v, request, ctx->client->packed_max, direct_putv);
    return rc < 0 ? rc : submit(&v, request, SUBMIT_PUT, v.strided > 0 ? put_strided : put_pieces);
}

static int get_now(pwc_remote *src, const struct pieces *pieces, const pwc_cid *lid,
                   const pwc_cid *rid, unsigned flags)
{
    struct pwc_ctx *ctx = src->ctx;
    struct pwc_request *request = operation_request(ctx, lid);
    const pwc_cid id = id_of(request, lid);
    struct vector v = {
        .ctx = ctx, .remote = src, .pieces = *pieces, .lid = &id, .rid = rid, .flags = flags};
    int rc = survey(&v, GETV_FLAGS, PWC_REMOTE_READ);

    if (rc < 0)
        return rc;
    if (v.count <= 1)
        return pwc_get(src, v.first.off, v.first.local, v.first.len, *lid, *rid, flags);
    if (src->pair)
        rc = direct_choose(ctx, src, !(flags & PWC_NO_RCE));
    if (rc == 1)
        return copy_directly(&v, request, 0, direct_getv);
    return rc < 0 ? rc : submit(&v, request, SUBMIT_GET, get_pieces);
}

typedef int transfer(pwc_remote *remote, const struct pieces *pieces, const pwc_cid *lid,
                     const pwc_cid *rid, unsigned flags);

static int run_waiting(transfer *run, pwc_remote *remote, const struct pieces *pieces,
                       const pwc_cid *lid, const pwc_cid *rid, unsigned flags)
{
    struct room room;
    int rc = room_begin(&room, remote, lid, flags);

    if (rc < 0)
        return rc;
    do
        rc = run(remote, pieces, lid, rid, flags & ~(unsigned)PWC_WAIT);
    while (room_wait(&room, &rc));
    return rc;
}

static int put(pwc_remote *dst, const struct pieces *pieces, const pwc_cid *lid, const pwc_cid *rid,
               unsigned flags)
{
    return flags & PWC_WAIT ? run_waiting(put_now, dst, pieces, lid, rid, flags)
                            : put_now(dst, pieces, lid, rid, flags);
}

static int get(pwc_remote *src, const struct pieces *pieces, const pwc_cid *lid, const pwc_cid *rid,
               unsigned flags)
{
    return flags & PWC_WAIT ? run_waiting(get_now, src, pieces, lid, rid, flags)
                            : get_now(src, pieces, lid, rid, flags);
}

int pwc_putv(pwc_remote *dst, const struct pwc_piece *list, size_t n, pwc_cid lid, pwc_cid rid,
             unsigned flags)
{
    struct pieces pieces;

    if (!dst)
        return -EINVAL;
    pieces_of_vector(&pieces, list, n);
    return put(dst, &pieces, &lid, &rid, flags);
}

int pwc_getv(pwc_remote *src, const struct pwc_piece *list, size_t n, pwc_cid lid, pwc_cid rid,
             unsigned flags)
{
    struct pieces pieces;

    if (!src)
        return -EINVAL;
    pieces_of_vector(&pieces, list, n);
    return get(src, &pieces, &lid, &rid, flags);
}

int pwc_put_shape(pwc_remote *dst, uint64_t off, const void *src, const struct pwc_shape *shape,
                  pwc_cid lid, pwc_cid rid, unsigned flags)
{
    struct pieces pieces;
    int rc = dst ? pieces_of_shape(&pieces, off, (void *)(uintptr_t)src, shape) : -EINVAL;

    return rc < 0 ? rc : put(dst, &pieces, &lid, &rid, flags);
}

int pwc_get_shape(pwc_remote *src, uint64_t off, void *dst, const struct pwc_shape *shape,
                  pwc_cid lid, pwc_cid rid, unsigned flags)
{
    struct pieces pieces;
    int rc = src ? pieces_of_shape(&pieces, off, dst, shape) : -EINVAL;

    return rc < 0 ? rc : get(src, &pieces, &lid, &rid, flags);
}
