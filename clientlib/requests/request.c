/*
 * Owns nothing: makes, frees and tests requests. Thread: the one that owns the
 * context.
 */
#include "clientlib/requests/request.h"

#include <errno.h>
#include "clientlib/calls/wait.h"
#include "clientlib/teams/teams.h"

int pwc_request_create(pwc_ctx *ctx, pwc_request **out)
{
    if (client_is_forked(ctx->client))
        return -EOWNERDEAD;
    return request_pool_take(&ctx->channel.requests, REQUEST_PLAIN, out);
}

int pwc_request_free(pwc_request *request)
{
    const struct request_kind *kind = request_kind_of(request);
    struct pwc_ctx *ctx = request_ctx(request);
    uint32_t number = request_number(request);
    int rc;

    if (client_is_forked(ctx->client))
        return -EOWNERDEAD;
    rc = request_pool_give(request);
    if (rc == 0 && kind->forget)
        kind->forget(ctx, number);
    return rc;
}

/* Ends all requests that are under way. */
static void end_all(struct pwc_ctx *ctx)
{
    const struct request_pool *pool = &ctx->channel.requests;

    teams_over(ctx);
    for (uint32_t i = 0; i < pool->chunk_count * REQUESTS_A_CHUNK; i++) {
        struct pwc_request *r = request_at(pool, i);

        if (!r || r->left == 0)
            continue;
        if (request_kind_of(r)->take_back)
            request_kind_of(r)->take_back(ctx, r);
        request_renew(r);
        channel_end_request(&ctx->channel, r, -ESHUTDOWN);
    }
}

/* The session is over: takes ends and messages that have arrived before. 1: there may be more; 0:
 * nothing is left, or the rings make no sense; -ENOBUFS, -ENOMEM: the program must take events
 * first. */
static int take_rest(struct pwc_ctx *ctx)
{
    struct channel *ch = &ctx->channel;
    uint64_t before = channel_position(ch);
    int rc = channel_collect(ch);

    if (rc >= 0)
        rc = channel_run(ch);
    if (rc == -ENOBUFS || rc == -ENOMEM)
        return rc;
    return rc == 0 && channel_position(ch) != before;
}

int request_progress(struct pwc_ctx *ctx, unsigned ended_by)
{
    int rc = wait_collect(ctx, ended_by);

    if (channel_state(&ctx->channel) == 0 || rc == -ENOBUFS || rc == -ENOMEM)
        return rc == 0 && ended_by == PWC_NOTIFICATION && channel_is_full(&ctx->channel) ? -ENOBUFS
                                                                                         : rc;
    rc = take_rest(ctx);
    if (rc == 0)
        end_all(ctx);
    return rc < 0 ? rc : 0;
}

int pwc_test(pwc_request *request, struct pwc_status *out)
{
    struct pwc_ctx *ctx = request_ctx(request);
    int rc = client_may_block(ctx->client);

    if (rc == -EOWNERDEAD)
        return rc;
    if (request->left > 0 && rc == 0) {
        rc = request_progress(ctx, request_kind_of(request)->ended_by);
        if (rc < 0 && request->left > 0)
            return rc;
    }
    if (request->left > 0)
        return 0;
    request_report(request, out);
    return 1;
}
