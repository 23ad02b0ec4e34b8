/*
 * Requests: pwc_am_short, pwc_am_medium, pwc_am_long, and a Medium whose payload the caller writes
 * into the submission ring itself. Owns nothing.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include <string.h>
#include "clientlib/calls/am_send.h"
#include "clientlib/calls/give_way.h"
#include "clientlib/calls/room.h"
#include "clientlib/neighbours/direct.h"

static int send_now(struct am_outgoing *m)
{
    struct pwc_am_send own;
    struct pwc_ctx *ctx;
    int rc;

    if (!m->dst)
        return -EINVAL;
    ctx = m->dst->ctx;
    am_take_request(ctx, m, &own);
    rc = am_check(ctx, m, REQUEST_FLAGS);
    if (rc == 0 && m->dst->pair) {
        rc = direct_choose_message(ctx, m);
        if (rc == 1)
            return direct_request(ctx, m);
    }
    return rc < 0 ? rc : am_send(ctx, &ctx->channel.submit, m, 0);
}

static int send_waiting(const struct am_outgoing *m)
{
    struct pwc_am_send send = *m->send;
    struct room room;
    int rc = m->dst ? room_begin(&room, m->dst, &send.lid, send.flags) : -EINVAL;

    if (rc < 0)
        return rc;
    send.flags &= ~(unsigned)PWC_WAIT;
    do {
        struct am_outgoing again = *m;

        again.send = &send;
        rc = send_now(&again);
    } while (room_wait(&room, &rc));
    return rc;
}

static int send_request(struct am_outgoing *m)
{
    return m->send->flags & PWC_WAIT ? send_waiting(m) : send_now(m);
}

int pwc_am_short(pwc_remote *dst, const struct pwc_am_send *send)
{
    return send_request(&(struct am_outgoing){.kind = SUBMIT_SHORT, .dst = dst, .send = send});
}

int pwc_am_medium(pwc_remote *dst, const struct pwc_am_send *send)
{
    return send_request(&(struct am_outgoing){.kind = SUBMIT_MEDIUM, .dst = dst, .send = send});
}

int pwc_am_long(pwc_remote *dst, uint64_t off, const struct pwc_am_send *send)
{
    struct am_outgoing m = {.kind = SUBMIT_LONG, .dst = dst, .off = off, .send = send};

    return send_request(&m);
}

/* ---- the payload written in place ----------------------------------------------------------- */

int pwc_am_prepare(pwc_remote *dst, size_t len, unsigned count, pwc_cid lid, unsigned flags,
                   void **payload)
{
    const struct pwc_am_send send = {.count = count, .len = len, .lid = lid, .flags = flags};
    struct am_outgoing m = {.kind = SUBMIT_MEDIUM, .dst = dst, .send = &send};
    struct pwc_am_send own;
    struct pwc_ctx *ctx;
    struct message block;
    struct operation op;
    uint8_t *at;
    int rc;

    if (!dst)
        return -EINVAL;
    ctx = dst->ctx;
    am_take_request(ctx, &m, &own);
    rc = am_check(ctx, &m, REQUEST_FLAGS);
    if (rc == 0)
        rc = direct_leave(ctx, dst);
    if (rc < 0)
        return rc;
    op = am_operation(&ctx->channel.submit, &m, &block);
    rc = give_way_refused(&ctx->give_way, channel_begin(&ctx->channel, op.outbox, &op.record, &at));
    if (rc < 0)
        return rc;
    ctx->prepared.block = block;
    ctx->prepared.request = m.request;
    if (m.request)
        request_hold(m.request);
    ctx->prepared.at = channel_append(at, op.lid, op.record.lid_len);
    *payload = ctx->prepared.at + sizeof(block) + 8u * count;
    return 0;
}

int pwc_am_commit(pwc_ctx *ctx, unsigned index, size_t len, const uint64_t *arguments)
{
    struct channel_outbox *outbox = &ctx->channel.submit;
    struct message *block = &ctx->prepared.block;
    struct submit_record *record = outbox->open;
    uint8_t *at = ctx->prepared.at;
    int rc;

    if (client_is_forked(ctx->client))
        return -EOWNERDEAD;
    if (!record || index >= PWC_AM_HANDLERS)
        return -EINVAL;
    if (len > block->payload_len)
        return -EMSGSIZE;
    rc = channel_state(&ctx->channel);
    if (rc < 0)
        return rc;
    block->index = (uint16_t)index;
    block->payload_len = (uint32_t)len;
    record->rid_len = am_block_bytes(block);
    record->size = (uint32_t)channel_record_bytes(record);
    at = channel_append(at, block, sizeof(*block));
    at = channel_append(at, arguments, 8u * block->arguments);
    memset(at + len, 0, abi_pad8((uint32_t)len) - len);
    if (ctx->prepared.request)
        request_renew(ctx->prepared.request);
    operation_commit(ctx, outbox);
    return 0;
}

int pwc_am_cancel(pwc_ctx *ctx)
{
    if (client_is_forked(ctx->client))
        return -EOWNERDEAD;
    if (!ctx->channel.submit.open)
        return -EINVAL;
    channel_cancel(&ctx->channel, &ctx->channel.submit);
    if (ctx->prepared.request)
        request_let_go(ctx->prepared.request);
    return 0;
}
