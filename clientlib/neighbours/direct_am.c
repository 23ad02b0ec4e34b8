/*
 * Owns nothing: requests to a neighbour, and replies to one, without the daemon (direct.h).
 *
 * A request that may be replied to is only submitted while the ring of answers has room for one
 * more answer of the longest kind. So a handler never waits for room for its reply, and no answer
 * waits for a request.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include <string.h>
#include "clientlib/attach/wake.h"
#include "clientlib/calls/am_send.h"
#include "clientlib/binds/bind.h"
#include "clientlib/neighbours/direct.h"
#include "shm_ring/fault.h"
#include "proto/wire_abi.h"

static struct message block_of(const struct am_outgoing *m)
{
    return (struct message){
        .index = (uint16_t)m->send->index,
        .kind = m->kind,
        .arguments = (uint8_t)m->send->count,
        .slot = m->kind == SUBMIT_LONG ? m->dst->slot : 0,
        .offset = m->kind == SUBMIT_LONG ? m->off : 0,
        .generation = m->kind == SUBMIT_LONG ? m->dst->generation : 0,
        .token = m->send->flags & PWC_AM_NO_REPLY ? WIRE_NONE : 0,
        .payload_len = m->kind == SUBMIT_MEDIUM ? (uint32_t)m->send->len : 0,
    };
}

/* Writes the message and shows it. */
static void write_message(struct pair_writer *to, struct pair_record *record,
                          const struct message *block, const struct am_outgoing *m)
{
    struct pair_id id = pair_id_begin(to);

    pair_id_add(&id, block, sizeof(*block));
    pair_id_add(&id, m->send->arguments, 8u * block->arguments);
    pair_id_add(&id, m->send->src, block->payload_len);
    record->kind = PAIR_MESSAGE;
    record->id_len = am_block_bytes(block);
    record->lines = pair_lines(record->id_len);
    record->bytes = m->kind == SUBMIT_LONG ? m->send->len : 0;
    pair_show(to, record);
}

/* Copies a Long's payload to its place in the mapped region. */
static void place(const struct am_outgoing *m)
{
    if (m->kind == SUBMIT_LONG && m->send->len > 0)
        memcpy(m->dst->memory + m->off, m->send->src, m->send->len);
    FAULT(DIRECT_COPIED);
}

/* A reply's source must be in a region, or be packed. This holds on the direct path, too, because a
 * program does not choose the path. */
static int check_source(struct pwc_ctx *ctx, const struct am_outgoing *m)
{
    if (m->kind != SUBMIT_LONG || m->send->len <= ctx->client->packed_max)
        return 0;
    return operation_check_memory(ctx, m->send->src, m->send->len);
}

/* Adds the message's local event, if one is wanted or the message has failed; or notes the end in
 * its request. */
static void report_end(struct pwc_ctx *ctx, const struct am_outgoing *m, uint64_t peer, int status)
{
    uint64_t bytes = m->kind == SUBMIT_LONG && status == 0 ? m->send->len : 0;

    if (m->request)
        request_end_at_once(m->request, status, peer, bytes);
    else if (status < 0 || !(m->send->flags & PWC_NO_LCE))
        channel_own(&ctx->channel, m->kind, peer, bytes, &m->send->lid, status);
    channel_count_end(&ctx->channel, status);
}

static void count(struct pair_counts *counts, uint64_t *ops, uint64_t *bytes, uint64_t len)
{
    *bytes += len;
    atomic_store_explicit(&counts->am_ops, ++*ops, memory_order_relaxed);
    atomic_store_explicit(&counts->am_bytes, *bytes, memory_order_relaxed);
}

/* ---- requests ------------------------------------------------------------------------------- */

static bool is_answered(const struct am_outgoing *m)
{
    return !(m->send->flags & PWC_AM_NO_REPLY);
}

/* Whether the pair can carry the message. */
static bool fits(const struct pwc_ctx *ctx, const struct am_outgoing *m)
{
    const struct direct_pair *pair = m->dst->pair;
    const struct message block = block_of(m);

    return neighbours_handles(&pair->writer.shared->target, m->send->index) &&
           pair_lines(am_block_bytes(&block)) <= PAIR_RECORD_MAX &&
           (!is_answered(m) || (ctx->channel.neighbours.answer_max > 0 && !pair->broken));
}

int direct_choose_message(struct pwc_ctx *ctx, const struct am_outgoing *m)
{
    int rc = remote_is_unbound(m->dst) ? remote_make_ready(m->dst) : 0;

    if (rc < 0 || !m->dst->pair)
        return rc;
    return fits(ctx, m) ? direct_choose(ctx, m->dst, true) : direct_leave(ctx, m->dst);
}

/* Checks for room for the record, its answer and its local event. */
static int request_room(struct pwc_ctx *ctx, const struct am_outgoing *m, uint32_t lines)
{
    struct direct_pair *pair = m->dst->pair;
    uint32_t answer = ctx->channel.neighbours.answer_max;

    if (is_answered(m) && (pair->awaited + 1) * answer > PAIR_LINES)
        return -EAGAIN;
    if (direct_room(pair, lines) < 0)
        return -EAGAIN;
    return m->send->flags & PWC_NO_LCE
               ? 0
               : channel_own_room(&ctx->channel,
                                  (uint32_t)m->send->lid.size + ctx->channel.set_aside);
}

int direct_request(struct pwc_ctx *ctx, const struct am_outgoing *m)
{
    struct direct_pair *pair = m->dst->pair;
    const struct message block = block_of(m);
    struct pair_record record = {.flags = pair->after ? PAIR_AFTER : 0};
    int rc = request_room(ctx, m, pair_lines(am_block_bytes(&block)));

    if (rc < 0)
        return rc;
    place(m);
    if (is_answered(m)) {
        pair->awaited++;
        ctx->channel.neighbours.awaited++;
    }
    pair->after = false;
    write_message(&pair->writer, &record, &block, m);
    FAULT(PAIR_SHOWN);
    if (pair_reader_sleeps(&pair->writer))
        wake_target(ctx, pair);
    report_end(ctx, m, pair->peer, 0);
    count(&pair->writer.shared->origin.counts, &pair->am_ops, &pair->am_bytes, m->send->len);
    return 0;
}

/* ---- replies -------------------------------------------------------------------------------- */

/* The status that the daemon would give this reply. */
static int reply_status(const struct pwc_ctx *ctx, const struct neighbour *to,
                        const struct am_outgoing *m)
{
    const struct pair_shared *shared = to->answers.shared;

    if (atomic_load_explicit(&shared->gone, memory_order_relaxed) & PAIR_ORIGIN_GONE)
        return -EHOSTDOWN;
    /* The request came without the daemon, so the daemon cannot carry its reply. */
    if (m->kind == SUBMIT_LONG && !m->dst->way)
        return -EHOSTUNREACH;
    if (m->kind == SUBMIT_LONG && direct_has_ended(ctx, m->dst))
        return -EKEYREJECTED;
    return neighbours_handles(&shared->origin, m->send->index) ? 0 : -ENOSYS;
}

int direct_reply(struct pwc_ctx *ctx, const struct am_outgoing *m)
{
    struct neighbours *n = &ctx->channel.neighbours;
    struct neighbour *to = n->answering;
    struct pair_record record = {.kind = PAIR_UNANSWERED, .lines = 1};
    int rc = m ? check_source(ctx, m) : 0;
    int status = m ? reply_status(ctx, to, m) : 0;

    if (rc < 0)
        return rc;
    if (m && status == 0) {
        const struct message block = block_of(m);

        place(m);
        write_message(&to->answers, &record, &block, m);
    } else {
        pair_show(&to->answers, &record);
    }
    if (pair_reader_sleeps(&to->answers))
        n->wakes_due = to->wake_due = true;
    if (m) {
        report_end(ctx, m, to->peer, status);
        count(&to->answers.shared->target.counts, &to->am_ops, &to->am_bytes, m->send->len);
    }
    return 0;
}
