/* Owns the queue of operations over loose memory that are not wholly submitted (series.h). Thread:
 * the one that owns the context. */
#include "clientlib/attach/wake.h"
#include "clientlib/calls/series.h"

#include <stdlib.h>
#include "clientlib/calls/give_way.h"

enum {
    SERIES_MAX = 64, /* operations in the queue of a context */
    PIECE_BYTES = GRAINS_PIECE * GRAIN_BYTES,
    ID_BYTES = SESSION_ID_MAX, /* bytes of a remote id, or of a block */
};

static_assert(ID_BYTES >= sizeof(struct message) + 8 * SESSION_ARGUMENTS_MAX &&
                  ID_BYTES >= sizeof(struct signal),
              "an id has room for what stands in its place");

/* An operation in the queue. */
struct series {
    struct series *next;
    struct submit_record record; /* the caller's operation; if `whole`, its lid is the slot */
    uint8_t *memory;             /* source or destination */
    uint64_t done;               /* bytes in pieces that are submitted */
    pwc_peer peer;               /* the peer that is held */
    uint32_t slot;               /* slot of its end (pending.h) */
    bool whole;                  /* the operation is one record */
    bool is_short;               /* a short get, which may use the grains for short gets */
    bool dropped;                /* a get whose destination is not filled any more */
    bool queued;
    uint8_t id[ID_BYTES]; /* bytes of the remote id, or the block, padded to 8 */
};

enum step {
    STEP_ON,   /* a piece is submitted */
    STEP_OVER, /* the last record is submitted */
    STEP_FULL, /* staging has no room */
    STEP_WAITS /* rings have no room, or the session is over */
};

/* This pair's target has no handlers, so that active messages, too, take the slow way. */
static struct pair_shared no_target;
const struct direct_pair series_pair = {.by_daemon = true, .writer.shared = &no_target};

static struct pending_slot *slot_of(struct pwc_ctx *ctx, const struct series *s)
{
    return &ctx->channel.pending.slots[s->slot];
}

/* ---- peers that are held -------------------------------------------------------------------- */

bool series_holds_any(const struct pwc_ctx *ctx, pwc_peer peer)
{
    const struct series *s = ctx->series.first;

    while (s && s->peer != peer)
        s = s->next;
    return s != NULL;
}

static pwc_peer peer_of(const struct pwc_ctx *ctx, uint32_t handle)
{
    const struct pwc_remote *remote = ctx->bound.first;

    while (remote && remote->handle != handle)
        remote = remote->next;
    return remote ? remote->peer : PWC_ANY;
}

/* Gives the pair `to` to those remotes of a peer that have the pair `from`. With series_pair a
 * remote's calls leave their fast way, without a pair (NULL) they take it. Remotes with a real pair
 * keep it: its path is the daemon's while the peer is held, so each of their calls chooses a path,
 * and finds the peer held. */
static void mark_remotes(struct pwc_ctx *ctx, pwc_peer peer, const struct direct_pair *from,
                         const struct direct_pair *to)
{
    struct pwc_remote *remote = bound_of_peer(&ctx->bound, peer);

    for (; remote; remote = bound_next(remote))
        if (remote->pair == from)
            remote->pair = (struct direct_pair *)(uintptr_t)to; /* never written */
}

void series_adopt(struct pwc_ctx *ctx, struct pwc_remote *remote)
{
    if (!remote->pair && series_holds(ctx, remote->peer))
        mark_remotes(ctx, remote->peer, NULL, &series_pair);
}

/* ---- records -------------------------------------------------------------------------------- */

/* Flags of a record that is not the last one of its series. Only the first record has the fence,
 * and holds back the other ones, which may not pass it. */
static uint16_t piece_flags(const struct series *s)
{
    uint32_t flags = s->record.flags &
                     ~(uint32_t)(SUBMIT_NO_LCE | SUBMIT_FENCE | SUBMIT_NOTIFY | SUBMIT_NO_REPLY);

    if (s->done == 0)
        flags |= s->record.flags & SUBMIT_FENCE;
    return (uint16_t)(flags | SUBMIT_NO_RCE | SUBMIT_SLOT | SUBMIT_MORE);
}

/* Reserves room for the record in the ring: 0, with *at the place after the record; or -EAGAIN. */
static int begin(struct pwc_ctx *ctx, const struct submit_record *record, uint8_t **at)
{
    return channel_begin(&ctx->channel, &ctx->channel.submit, record, at) < 0 ? -EAGAIN : 0;
}

static void commit(struct pwc_ctx *ctx, const struct series *s, const struct submit_record *record,
                   uint8_t *at)
{
    int rc;

    (void)channel_append(at, s->id, record->rid_len);
    rc = channel_commit(&ctx->channel, &ctx->channel.submit);
    give_way_passes_over(ctx);
    if (rc == CHANNEL_WAKES)
        wake_daemon(ctx);
}

/* Submits a record whose payload of record->length bytes passes through staging, from or to
 * `memory`. record->lid is its slot. */
static enum step submit_payload(struct pwc_ctx *ctx, const struct series *s,
                                struct submit_record *record, uint8_t *memory)
{
    struct pending_slots *p = &ctx->channel.pending;
    uint32_t from = s->is_short ? 0 : GRAINS_SHORT;
    uint32_t to = s->is_short && ctx->series.first ? GRAINS_SHORT : GRAINS;
    bool get = record->kind == SUBMIT_GET;
    struct grains_run run;
    uint8_t *staged, *at;

    if (!grains_take(&p->grains, from, to, grains_of(record->length), &run))
        return STEP_FULL;
    record->segment = staging_segment(&ctx->staging);
    record->local_offset = staging_offset(&ctx->staging, run);
    if (begin(ctx, record, &at) < 0) {
        grains_give(&p->grains, run);
        return STEP_WAITS;
    }
    staged = staging_at(&ctx->staging, run);
    pending_stage(p, (uint32_t)record->lid, run, get ? staged : NULL);
    if (!get)
        memcpy(staged, memory, record->length);
    commit(ctx, s, record, at);
    return STEP_ON;
}

static enum step submit_whole(struct pwc_ctx *ctx, const struct series *s)
{
    struct submit_record record = s->record;
    enum step step = submit_payload(ctx, s, &record, s->memory);

    return step == STEP_ON ? STEP_OVER : step;
}

static enum step submit_piece(struct pwc_ctx *ctx, struct series *s)
{
    struct pending_slots *p = &ctx->channel.pending;
    uint64_t left = s->record.length - s->done;
    bool get = s->record.kind == SUBMIT_GET;
    struct submit_record record = {
        .kind = get ? SUBMIT_GET : SUBMIT_PUT,
        .flags = piece_flags(s),
        .remote = s->record.remote,
        .offset = s->record.offset + s->done,
        .length = left < PIECE_BYTES ? left : PIECE_BYTES,
    };
    uint8_t *memory = s->memory + s->done;
    int64_t slot = pending_begin_piece(p, s->slot, get ? memory : NULL, NULL, record.length);
    enum step step;

    if (slot < 0)
        return STEP_WAITS;
    record.lid = (uint64_t)slot;
    step = submit_payload(ctx, s, &record, memory);
    if (step != STEP_ON) {
        pending_cancel_piece(p, (uint32_t)slot);
        return step;
    }
    slot_of(ctx, s)->left++;
    s->done += record.length;
    return STEP_ON;
}

/* The last record of a series, which has the event, signal or message for the target. */
static struct submit_record end_record(const struct series *s)
{
    struct submit_record record = s->record;

    record.flags = (uint16_t)((record.flags & ~(uint32_t)(SUBMIT_NO_LCE | SUBMIT_FENCE)) |
                              (uint32_t)SUBMIT_SLOT);
    record.length = 0;
    if (record.kind == SUBMIT_LONG) {
        record.placed = s->record.length;
    } else if (record.kind != SUBMIT_SIGNAL) {
        record.kind = SUBMIT_VECTOR;
        record.code = s->record.kind;
        record.total = s->record.length;
    }
    return record;
}

/* The last record of a series that has failed: the target gets no event. */
static struct submit_record failed_record(const struct series *s)
{
    return (struct submit_record){
        .kind = SUBMIT_VECTOR,
        .code = s->record.kind == SUBMIT_GET ? SUBMIT_GET : SUBMIT_PUT,
        .flags = SUBMIT_NO_RCE | SUBMIT_SLOT,
        .remote = s->record.remote,
    };
}

static enum step submit_end(struct pwc_ctx *ctx, const struct series *s, bool failed)
{
    struct submit_record record = failed ? failed_record(s) : end_record(s);
    uint8_t *at;

    record.lid = s->slot;
    if (begin(ctx, &record, &at) < 0)
        return STEP_WAITS;
    commit(ctx, s, &record, at);
    return STEP_OVER;
}

static enum step step(struct pwc_ctx *ctx, struct series *s)
{
    struct pending_slot *slot = slot_of(ctx, s);

    if (s->whole)
        return submit_whole(ctx, s);
    if (s->dropped && slot->status == 0)
        slot->status = -ECANCELED;
    if (slot->status < 0)
        return submit_end(ctx, s, true);
    return s->done < s->record.length ? submit_piece(ctx, s) : submit_end(ctx, s, false);
}

/* ---- the queue ------------------------------------------------------------------------------ */

/* Puts `list`, up to its `last`, at the front of the queue. */
static void put_in_front(struct series_queue *q, struct series *list, struct series *last)
{
    if (!last)
        return;
    last->next = q->first;
    if (!q->first)
        q->last = last;
    q->first = list;
}

static void put_behind(struct series_queue *q, struct series *s)
{
    s->next = NULL;
    if (q->first)
        q->last->next = s;
    else
        q->first = s;
    q->last = s;
}

static void leave(struct pwc_ctx *ctx, struct series *s)
{
    if (s->peer != PWC_ANY)
        mark_remotes(ctx, s->peer, &series_pair, NULL);
    s->queued = false;
    s->next = ctx->series.free;
    ctx->series.free = s;
}

unsigned series_go_on(struct pwc_ctx *ctx)
{
    struct series_queue *q = &ctx->series;
    struct series *waiting = NULL, *last = NULL;
    enum step result = STEP_ON;
    unsigned steps = 0;

    if (channel_state(&ctx->channel) < 0)
        return 0;
    while (q->first && result != STEP_FULL) {
        struct series *s = q->first;

        q->first = s->next;
        result = step(ctx, s);
        steps += result == STEP_ON || result == STEP_OVER;
        if (result == STEP_ON) {
            put_behind(q, s);
        } else if (result == STEP_OVER) {
            leave(ctx, s);
        } else {
            if (last)
                last->next = s;
            else
                waiting = s;
            last = s;
        }
    }
    put_in_front(q, waiting, last);
    ctx->channel.neighbours.pieces_due = q->first != NULL;
    return steps;
}

unsigned series_continue(struct pwc_ctx *ctx)
{
    int kept = channel_collect(&ctx->channel);

    return series_go_on(ctx) + (kept > 0 ? (unsigned)kept : 0);
}

uint32_t series_count(const struct pwc_ctx *ctx)
{
    uint32_t count = 0;

    for (const struct series *s = ctx->series.first; s; s = s->next)
        count++;
    return count;
}

void series_give_up(struct pwc_ctx *ctx, uint64_t request_id)
{
    pending_drop_staged(&ctx->channel.pending, request_id);
    for (struct series *s = ctx->series.first; s; s = s->next) {
        struct pending_slot *slot = slot_of(ctx, s);

        if (s->record.kind != SUBMIT_GET || !slot->request || slot->id != request_id)
            continue;
        s->dropped = true;
        slot->destination = NULL;
    }
}

void series_drop(struct pwc_ctx *ctx)
{
    struct series_queue *q = &ctx->series;

    while (q->first) {
        struct series *s = q->first;

        q->first = s->next;
        leave(ctx, s);
    }
    ctx->channel.neighbours.pieces_due = false;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* Before the first series of a context: gets memory for all, and staging. */
static int prepare(struct pwc_ctx *ctx)
{
    struct series_queue *q = &ctx->series;

    if (!q->pool) {
        q->pool = calloc(SERIES_MAX, sizeof(*q->pool));
        if (!q->pool)
            return -ENOMEM;
        for (int i = SERIES_MAX - 1; i >= 0; i--) {
            q->pool[i].next = q->free;
            q->free = &q->pool[i];
        }
    }
    return ctx->staging.taken ? 0 : staging_take(&ctx->staging, ctx->client);
}

/* The errors of any call on this context. */
static int check(const struct pwc_ctx *ctx)
{
    const struct channel *ch = &ctx->channel;
    int rc = channel_state(ch);

    if (rc < 0)
        return rc;
    return ch->submit.open ? -EBUSY : 0;
}

static void keep_id(struct series *s, const struct operation *op)
{
    uint8_t *at = s->id;

    if (op->block) {
        at = channel_append(at, op->block, sizeof(*op->block));
        (void)channel_append(at, op->arguments, 8u * op->block->arguments);
    } else {
        (void)channel_append(at, op->rid, op->record.rid_len);
    }
}

/* Takes the slot for the operation's end: its number, or -EAGAIN. */
static int64_t begin_slot(struct pwc_ctx *ctx, const struct series *s, const pwc_cid *lid,
                          unsigned flags)
{
    struct pending_slots *p = &ctx->channel.pending;
    const struct submit_record *record = &s->record;

    return s->whole ? pending_begin(p, lid, flags, record->kind == SUBMIT_GET ? s->memory : NULL,
                                    NULL, record->length)
                    : pending_begin_vector(p, lid, flags, record->kind, record->length);
}

/* Sets the slot in the record of an operation that is one record. */
static void settle_on_slot(struct series *s)
{
    s->record.flags =
        (uint16_t)((s->record.flags & ~(uint32_t)SUBMIT_NO_LCE) | (uint32_t)SUBMIT_SLOT);
    s->record.lid = s->slot;
}

/* A short get is submitted at once or refused, so that it never holds its peer. */
static int submit_short(struct pwc_ctx *ctx, struct series *s)
{
    if (submit_whole(ctx, s) == STEP_OVER) {
        leave(ctx, s);
        return 0;
    }
    pending_cancel(&ctx->channel.pending, s->slot);
    leave(ctx, s);
    return give_way_refused(&ctx->give_way, -EAGAIN);
}

static int accept(struct pwc_ctx *ctx, const struct operation *op, const pwc_cid *lid,
                  unsigned flags, void *memory)
{
    bool whole = op->record.length <= PIECE_BYTES;
    struct series_queue *q = &ctx->series;
    int rc = check(ctx);
    struct series *s;
    int64_t slot;

    if (rc == 0)
        rc = prepare(ctx);
    if (rc < 0)
        return rc;
    if (!q->free)
        return give_way_refused(&ctx->give_way, -EAGAIN);
    s = q->free;
    s->record = op->record;
    s->record.lid_len = 0;
    s->memory = memory;
    s->done = 0;
    s->peer = PWC_ANY;
    s->whole = whole;
    s->is_short =
        whole && op->record.kind == SUBMIT_GET && op->record.length <= ctx->client->packed_max;
    s->dropped = false;
    slot = begin_slot(ctx, s, lid, flags);
    if (slot < 0)
        return (int)slot;
    q->free = s->next;
    s->slot = (uint32_t)slot;
    s->queued = true;
    keep_id(s, op);
    if (whole)
        settle_on_slot(s);
    if (s->is_short)
        return submit_short(ctx, s);
    put_behind(q, s);
    (void)series_go_on(ctx);
    if (s->queued) {
        s->peer = peer_of(ctx, s->record.remote);
        mark_remotes(ctx, s->peer, NULL, &series_pair);
    }
    return 0;
}

int series_put(struct pwc_ctx *ctx, const struct operation *op, const void *src)
{
    const struct submit_record *record = &op->record;
    const pwc_cid lid =
        record->lid_len > 0 ? pwc_cid_bytes(op->lid, record->lid_len) : pwc_cid_u64(record->lid);

    return accept(ctx, op, &lid, record->flags, (void *)(uintptr_t)src);
}

int series_get(struct pwc_ctx *ctx, const struct operation *op, const pwc_cid *lid, unsigned flags,
               void *dst)
{
    return accept(ctx, op, lid, flags, dst);
}
