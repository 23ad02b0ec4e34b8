/* The path through a simulated world (world_path.h). Thread: one. */
#include "tests/engine/world/paths/world_path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "proto/word_abi.h"
#include "clientlib/channel/channel_vector.h"
#include "tests/engine/world/model/model_counts.h"
#include "proto/word_abi.h"

#define TAKEN_ROUNDS_MAX 100000u

/* Ends beyond the clients are second contexts. */
static uint32_t client_of(const struct world_path *p, uint32_t end)
{
    return end < p->clients ? end : end - p->clients;
}

static uint32_t number_of(const struct world_path *p, uint32_t end)
{
    return end < p->clients ? 0 : 1;
}

static struct world_context *context_of(const struct world_path *p, uint32_t end)
{
    return &p->world->clients[client_of(p, end)].contexts[number_of(p, end)];
}

static pwc_peer path_peer(void *context, uint32_t end)
{
    struct world_path *p = context;

    return world_peer_of(p->world, client_of(p, end), number_of(p, end));
}

static uint8_t *path_memory(void *context, uint32_t end, uint64_t *length)
{
    struct world_path *p = context;

    *length = context_of(p, end)->length;
    return context_of(p, end)->memory;
}

static int path_key(void *context, uint32_t end, unsigned rights, struct pwc_key *out)
{
    struct world_path *p = context;
    struct engine_key key = context_of(p, end)->key;
    int rc = 0;

    if (rights == PWC_REMOTE_READ || rights == PWC_REMOTE_WRITE)
        rc = world_region_open(p->world, client_of(p, end), number_of(p, end), rights, &key);
    _Static_assert(sizeof *out == sizeof key, "the library's key is the engine's");
    memcpy(out, &key, sizeof key);
    return rc;
}

static int path_bind(void *context, uint32_t from, uint32_t to, const struct pwc_key *key,
                     uint32_t *remote)
{
    struct world_path *p = context;
    struct engine_key k;
    int request, rc;

    if (key)
        memcpy(&k, key, sizeof k);
    request = world_bind(p->world, client_of(p, from), number_of(p, from), client_of(p, to),
                         number_of(p, to), key ? &k : NULL);
    if (request < 0)
        return request;
    rc = world_await(p->world, request);
    *remote = p->world->requests[request].handle;
    world_request_free(p->world, request);
    return rc;
}

static int path_unbind(void *context, uint32_t from, uint32_t remote)
{
    struct world_path *p = context;

    for (uint32_t i = 0; !world_taken(p->world, client_of(p, from), number_of(p, from)); i++)
        if (!world_round(p->world) || i > TAKEN_ROUNDS_MAX)
            return -ETIMEDOUT;
    return world_unbind(p->world, client_of(p, from), number_of(p, from), remote);
}

/* Does as the library does for gets: the slot's number is the id, and the end is always reported.
 */
static int take_slot(struct channel *ch, struct submit_record *record, const pwc_cid *lid)
{
    int64_t slot = pending_begin(&ch->pending, lid, record->flags & SUBMIT_NO_LCE, NULL, NULL, 0);

    if (slot < 0)
        return (int)slot;
    record->flags = (uint16_t)((record->flags & ~SUBMIT_NO_LCE) | SUBMIT_SLOT);
    record->lid = (uint64_t)slot;
    return 0;
}

/* Adds a short piece of a put as elements that the engine reads: words, or bytes from the last one
 * down. */
static int add_strided(struct channel_vector *v, const struct submit_record *piece)
{
    bool words = piece->length % 8 == 0;
    struct submit_record first = *piece;
    struct submit_strided elements = {
        .offset = piece->offset + (words ? 0 : piece->length - 1),
        .local_stride = words ? 8 : -1,
        .remote_stride = words ? 8 : -1,
        .element = words ? 8 : 1,
        .count = (uint32_t)(words ? piece->length / 8 : piece->length),
    };

    first.local_offset += words ? 0 : piece->length - 1;
    return channel_vector_strided(v, &first, &elements);
}

/* Adds those pieces of a vector that a block takes, or those that no block takes. `strided`: the
 * engine reads the pieces that a block would take. Returns 0 or a negative errno. */
static int add_pieces(const struct world_path *p, struct channel_vector *v,
                      const struct path_op *op, const struct submit_record *record,
                      const uint8_t *source, bool blocks, bool strided)
{
    int rc = 0;

    for (uint32_t i = 0; i < op->pieces && rc == 0; i++) {
        struct submit_record piece = *record;
        uint64_t at = path_piece(op, i, &piece.length);
        bool in_block = op->kind == PATH_PUT &&
                        channel_piece_short(v->block_max, op->remote_offset + at, piece.length);

        piece.offset += at;
        piece.local_offset += at;
        piece.lid = v->slot;
        piece.lid_len = piece.rid_len = 0;
        piece.rid = 0;
        if (piece.length == 0 || in_block != blocks)
            continue;
        if (!in_block)
            rc = channel_vector_long(v, &piece);
        else if (strided && piece.length <= p->path.packed_max)
            rc = add_strided(v, &piece);
        else
            rc = channel_vector_short(v, piece.offset, source + at, (uint32_t)piece.length);
    }
    return rc;
}

/* Submits vectors as the library does. `record` is the whole operation. */
static int submit_vector(struct world_path *p, const struct path_op *op,
                         const struct submit_record *record, const uint8_t *source)
{
    struct channel *ch = &context_of(p, op->from)->channel;
    bool strided = sim_random_below(&p->world->random, 2);
    int64_t slot =
        pending_begin_vector(&ch->pending, &op->lid, op->flags, record->kind, record->length);
    struct channel_vector v;
    int rc;

    if (slot < 0)
        return (int)slot;
    rc = channel_vector_begin(&v, ch, record, (uint32_t)slot, (uint32_t)p->path.packed_max);
    if (rc == 0)
        rc = add_pieces(p, &v, op, record, source, false, strided);
    if (rc == 0)
        rc = add_pieces(p, &v, op, record, source, true, strided);
    if (rc == 0)
        rc = channel_vector_end(&v, op->rid.data);
    if (rc >= 0)
        return world_submitted(p->world, client_of(p, op->from), rc);
    channel_vector_cancel(&v);
    pending_cancel(&ch->pending, (uint32_t)slot);
    return rc;
}

/* Whether the library makes a vector of the operation: two of its pieces have bytes. */
static bool is_vector(const struct path_op *op)
{
    uint64_t first, second;

    if (op->pieces < 2)
        return false;
    (void)path_piece(op, 0, &first);
    (void)path_piece(op, 1, &second);
    return first > 0 && second > 0;
}

static uint8_t kind_of(const struct path_op *op)
{
    return op->kind == PATH_PUT ? SUBMIT_PUT : op->kind == PATH_GET ? SUBMIT_GET : SUBMIT_SIGNAL;
}

static struct signal block_of(const struct path_signal *s)
{
    return (struct signal){.offset = s->offset,
                           .value = s->value,
                           .code = word_code(s->add ? WORD_ADD : WORD_SET, WORD_U64)};
}

static int path_submit(void *context, const struct path_op *op)
{
    struct world_path *p = context;
    struct world_context *x = context_of(p, op->from);
    const uint8_t *source = x->memory + op->local_offset;
    const struct signal signal = block_of(&op->signal);
    const void *rid = op->rid.data;
    struct submit_record record = {
        .kind = kind_of(op),
        .flags = (uint16_t)op->flags,
        .remote = op->remote,
        .offset = op->remote_offset,
        .length = op->length,
        .lid = op->lid.size ? 0 : op->lid.value,
        .rid = op->rid.size ? 0 : op->rid.value,
        .lid_len = (uint16_t)op->lid.size,
        .rid_len = (uint16_t)op->rid.size,
        .segment = p->world->clients[client_of(p, op->from)].segments[WORLD_MAIN].handle,
        .local_offset = x->offset + op->local_offset,
    };
    const uint64_t one = 1;
    int rc = 0;

    if (op->kind == PATH_ATOMIC) {
        record.kind = SUBMIT_ATOMIC;
        record.code = word_code(WORD_ADD, WORD_U64);
        record.flags |= SUBMIT_INLINE | (op->fetch ? SUBMIT_FETCH : 0);
        source = (const uint8_t *)&one;
    }
    if (is_vector(op))
        return submit_vector(p, op, &record, source);
    if (op->kind == PATH_SIGNAL) {
        record.flags &= (uint16_t)~SUBMIT_NO_RCE;
        record.rid = 0;
        record.rid_len = sizeof(signal);
        rid = &signal;
    }
    /* Most short sources are copied into the record, as the library does: the engine makes a batch
     * of such puts in a row. */
    if (op->kind != PATH_GET && op->length && op->length <= p->path.packed_max &&
        sim_random_below(&p->world->random, 8) != 0)
        record.flags |= SUBMIT_INLINE;
    /* Half of the gets with an id by value take a slot. */
    if (op->kind == PATH_GET && record.lid_len == 0 && record.lid % 2 == 0)
        rc = take_slot(&x->channel, &record, &op->lid);
    if (rc == 0)
        rc = world_submit(p->world, client_of(p, op->from), number_of(p, op->from), &record,
                          op->lid.data, rid, source);
    if (rc < 0 && record.flags & SUBMIT_SLOT)
        pending_cancel(&x->channel.pending, (uint32_t)record.lid);
    return rc;
}

static int path_flush(void *context, uint32_t from, uint32_t remote, uint64_t number)
{
    struct world_path *p = context;
    const struct submit_record record = {.kind = SUBMIT_FLUSH, .remote = remote, .lid = number};

    return world_submit(p->world, client_of(p, from), number_of(p, from), &record, NULL, NULL,
                        NULL);
}

static uint64_t path_flushed(void *context, uint32_t from)
{
    struct world_path *p = context;

    return context_of(p, from)->channel.flushed;
}

static int path_probe(void *context, uint32_t end, struct pwc_event *out)
{
    struct world_path *p = context;
    struct world_context *x = context_of(p, end);

    return x->channel_open ? channel_probe(&x->channel, PWC_ANY, PATH_EVENTS, out) : -ESHUTDOWN;
}

static bool path_progress(void *context)
{
    struct world_path *p = context;

    if (p->restore_at && p->world->rounds >= p->restore_at) {
        p->restore_at = 0;
        world_link_restore(p->world, p->cut[0], p->cut[1]);
    }
    return world_round(p->world);
}

static bool path_idle(void *context, uint32_t end)
{
    struct world_path *p = context;

    return channel_idle(&context_of(p, end)->channel);
}

static bool path_counts(void *context, uint32_t end, struct path_counts *out)
{
    struct world_path *p = context;
    const struct world_context *x = context_of(p, end);

    if (!x->channel_open)
        return false;
    *out = model_counts_of(&x->channel);
    return true;
}

static int path_withdraw(void *context, uint32_t end)
{
    struct world_path *p = context;

    p->withdrawal[end] = world_withdraw(p->world, client_of(p, end), number_of(p, end));
    return p->withdrawal[end] < 0 ? p->withdrawal[end] : 0;
}

static bool path_withdrawn(void *context, uint32_t end)
{
    struct world_path *p = context;

    return p->world->requests[p->withdrawal[end]].done;
}

static int path_kill(void *context, uint32_t end)
{
    struct world_path *p = context;

    world_client_close(p->world, client_of(p, end));
    return 0;
}

static int path_close(void *context, uint32_t end)
{
    struct world_path *p = context;

    world_context_close(p->world, client_of(p, end), number_of(p, end));
    return 0;
}

/* Opens the context again: the old one must have gone first; its memory stays. */
static int path_open(void *context, uint32_t end)
{
    struct world_path *p = context;
    struct world_context *x = context_of(p, end);
    int request;

    for (uint32_t i = 0; x->open; i++)
        if (!world_round(p->world) || i > TAKEN_ROUNDS_MAX)
            return -ETIMEDOUT;
    if (x->region_open) {
        request = world_withdraw(p->world, client_of(p, end), number_of(p, end));
        if (request < 0 || world_await(p->world, request) < 0)
            return -EIO;
        world_request_free(p->world, request);
    }
    return world_context_open(p->world, client_of(p, end), number_of(p, end));
}

static void path_betray(void *context, uint32_t end)
{
    struct world_path *p = context;

    p->world->clients[client_of(p, end)].hostile = true;
}

static bool path_betrayed(void *context, uint32_t end)
{
    struct world_path *p = context;

    return p->world->clients[client_of(p, end)].quarantined;
}

static int path_cut(void *context, uint32_t a, uint32_t b, bool for_good)
{
    struct world_path *p = context;
    uint32_t from = p->world->clients[client_of(p, a)].node;
    uint32_t to = p->world->clients[client_of(p, b)].node;

    p->cut[0] = from;
    p->cut[1] = to;
    world_link_cut(p->world, from, to);
    if (for_good)
        world_link_lost(p->world, from, to);
    else
        p->restore_at = p->world->rounds + sim_random_range(&p->world->random, 1, 100);
    return 0;
}

static const char *path_failure(void *context)
{
    struct world_path *p = context;

    return p->world->failed ? p->world->failure : NULL;
}

static const struct path_calls calls = {
    .peer = path_peer,
    .memory = path_memory,
    .key = path_key,
    .bind = path_bind,
    .unbind = path_unbind,
    .submit = path_submit,
    .flush = path_flush,
    .flushed = path_flushed,
    .probe = path_probe,
    .progress = path_progress,
    .idle = path_idle,
    .counts = path_counts,
    .withdraw = path_withdraw,
    .withdrawn = path_withdrawn,
    .kill = path_kill,
    .close = path_close,
    .open = path_open,
    .betray = path_betray,
    .betrayed = path_betrayed,
    .cut = path_cut,
    .failure = path_failure,
};

int world_path_open(struct world_path *p, const struct world_options *options, uint32_t ends,
                    char failure[400])
{
    struct world_options o = *options;
    int rc;

    memset(p, 0, sizeof *p);
    o.nodes = o.nodes ? o.nodes : 2;
    rc = world_open(&o, &p->world);
    if (rc != 0) {
        snprintf(failure, 400, "the world does not open: %s", strerror(-rc));
        return rc;
    }
    p->path = (struct path){
        .calls = &calls,
        .context = p,
        .ends = ends,
        .packed_max = p->world->nodes[0].config.packed_max,
        .message_max = p->world->nodes[0].fabric->traits.message_max,
    };
    p->clients = o.second_contexts ? ends / 2 : ends;
    for (uint32_t i = 0; i < p->clients; i++)
        world_client_open(p->world, i % o.nodes, i, o.second_contexts == WORLD_SECOND_NOW ? 2 : 1);
    if (!world_settle(p->world, 10000)) {
        snprintf(failure, 400, "%s", p->world->failed ? p->world->failure : "never at rest");
        world_path_close(p);
        return -EIO;
    }
    return 0;
}

const char *world_path_leave(struct world_path *p)
{
    if (p->restore_at)
        world_link_restore(p->world, p->cut[0], p->cut[1]);
    world_leave(p->world);
    return p->world->failed ? p->world->failure : NULL;
}

void world_path_close(struct world_path *p)
{
    world_close(p->world);
}
