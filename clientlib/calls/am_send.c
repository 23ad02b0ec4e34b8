/*
 * Owns nothing: checks active messages and submits them. Thread: the one that owns the context.
 */
#include "clientlib/calls/am_send.h"

#include <errno.h>

/* The length of a record is a field of 16 bits, which leaves this many bytes for a Medium's
 * payload. */
enum { MEDIUM_MAX = (UINT16_MAX & ~7) - (int)sizeof(struct message) - 8 * PWC_AM_ARGUMENTS_MAX };

static_assert((int)PWC_AM_ARGUMENTS_MAX == (int)SESSION_ARGUMENTS_MAX &&
                  (int)PWC_AM_HANDLERS == (int)SESSION_HANDLERS,
              "the session has room for what we promise");

size_t pwc_am_max_medium(const pwc_client *client)
{
    return client->packed_max < MEDIUM_MAX ? client->packed_max : MEDIUM_MAX;
}

size_t pwc_am_max_long(const pwc_client *client)
{
    return client->message_max;
}

void am_take_request(struct pwc_ctx *ctx, struct am_outgoing *m, struct pwc_am_send *own)
{
    struct pwc_request *r =
        m->send->lid.size > PWC_CID_MAX ? operation_request(ctx, &m->send->lid) : NULL;

    if (!r)
        return;
    *own = *m->send;
    own->lid = request_cid(r);
    own->flags |= PWC_NO_LCE;
    m->send = own;
    m->request = r;
}

int am_check(const struct pwc_ctx *ctx, const struct am_outgoing *m, unsigned flags_allowed)
{
    int rc = operation_check(ctx, &m->send->lid, m->send->flags, flags_allowed);

    if (rc < 0)
        return rc;
    if (m->send->index >= PWC_AM_HANDLERS || (!m->dst && m->kind == SUBMIT_LONG) ||
        m->send->reserved[0] | m->send->reserved[1] | m->send->reserved[2] ||
        (m->kind == SUBMIT_SHORT && m->send->len > 0))
        return -EINVAL;
    if (m->send->count > PWC_AM_ARGUMENTS_MAX)
        return -E2BIG;
    if (m->kind == SUBMIT_MEDIUM && m->send->len > pwc_am_max_medium(ctx->client))
        return -EMSGSIZE;
    if (m->kind == SUBMIT_LONG)
        return operation_check_range(ctx, m->dst, m->off, m->send->len, PWC_REMOTE_WRITE);
    return 0;
}

struct operation am_operation(struct channel_outbox *outbox, const struct am_outgoing *m,
                              struct message *block)
{
    bool in_block = m->kind == SUBMIT_MEDIUM;
    struct operation op = {
        .outbox = outbox,
        .record =
            {
                .kind = m->kind,
                .flags = (uint16_t)(m->request ? operation_request_flags(m->send->flags)
                                               : m->send->flags),
                .remote = m->dst ? m->dst->handle : 0,
                .offset = m->off,
                .length = m->kind == SUBMIT_LONG ? m->send->len : 0,
            },
        .block = block,
        .arguments = m->send->arguments,
        .payload = m->send->src,
    };

    *block = (struct message){
        .index = (uint16_t)m->send->index,
        .kind = m->kind,
        .arguments = (uint8_t)m->send->count,
        .payload_len = in_block ? (uint32_t)m->send->len : 0,
    };
    op.record.rid_len = am_block_bytes(block);
    operation_set_lid(&op, &m->send->lid);
    return op;
}

int am_send(struct pwc_ctx *ctx, struct channel_outbox *outbox, const struct am_outgoing *m,
            uint32_t token)
{
    struct message block;
    struct operation op = am_operation(outbox, m, &block);
    int rc;

    op.record.rid = token;
    rc = m->kind == SUBMIT_LONG ? operation_submit_payload(ctx, &op, m->send->src)
                                : operation_submit(ctx, &op);
    if (rc == 0 && m->request)
        request_begin(m->request);
    return rc;
}
