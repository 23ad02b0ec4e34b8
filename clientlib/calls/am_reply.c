/*
 * Replies to the request whose handler is running, at most one. A reply goes back the way that the
 * request came: through the reply_submit ring, or a pair. There is always room: channel_route.c and
 * direct_am.c say why.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/calls/am_send.h"
#include "clientlib/binds/bind.h"
#include "clientlib/neighbours/direct.h"

/* 0 when a reply to `token` may be sent now. */
static int check_token(const struct handlers *handlers, uint64_t token)
{
    if (handlers->running == RUNNING_NONE || token != handlers->token)
        return -ESTALE;
    switch (handlers->running) {
    case RUNNING_REQUEST:
        return 0;
    case RUNNING_REPLIED:
        return -EALREADY;
    default:
        return -EPERM;
    }
}

static int send_reply(struct pwc_ctx *ctx, uint64_t token, struct am_outgoing *m)
{
    struct pwc_am_send own;
    int rc = client_is_forked(ctx->client) ? -EOWNERDEAD : check_token(&ctx->handlers, token);

    if (rc == 0 && m->dst && (m->dst->ctx != ctx || m->dst->peer != ctx->handlers.from))
        rc = -EINVAL;
    if (rc == 0 && m->dst && remote_is_unbound(m->dst))
        rc = remote_make_ready(m->dst); /* a late remote gives -EDEADLK, because this is inside a
                                           handler */
    if (rc == -EAGAIN)
        rc = -EINVAL; /* its bind is under way, and a reply never waits */
    am_take_request(ctx, m, &own);
    if (rc == 0)
        rc = am_check(ctx, m, REPLY_FLAGS);
    if (rc < 0)
        return rc;
    rc = ctx->channel.neighbours.answering
             ? direct_reply(ctx, m)
             : am_send(ctx, &ctx->channel.reply_submit, m, (uint32_t)token);
    if (rc == 0)
        ctx->handlers.running = RUNNING_REPLIED;
    return rc;
}

int pwc_am_reply_short(pwc_ctx *ctx, uint64_t token, const struct pwc_am_send *send)
{
    return send_reply(ctx, token, &(struct am_outgoing){.kind = SUBMIT_SHORT, .send = send});
}

int pwc_am_reply_medium(pwc_ctx *ctx, uint64_t token, const struct pwc_am_send *send)
{
    return send_reply(ctx, token, &(struct am_outgoing){.kind = SUBMIT_MEDIUM, .send = send});
}

int pwc_am_reply_long(pwc_ctx *ctx, uint64_t token, pwc_remote *dst, uint64_t off,
                      const struct pwc_am_send *send)
{
    struct am_outgoing m = {.kind = SUBMIT_LONG, .dst = dst, .off = off, .send = send};

    return send_reply(ctx, token, &m);
}
