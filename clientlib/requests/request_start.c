/*
 * Owns nothing: starts and cancels persistent requests. Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/requests/request.h"

int pwc_start(pwc_request *request)
{
    const struct request_kind *kind = request_kind_of(request);
    struct pwc_ctx *ctx = request_ctx(request);
    int rc;

    if (client_is_forked(ctx->client))
        return -EOWNERDEAD;
    if (!kind->start)
        return -EINVAL;
    if (request->left > 0)
        return -EBUSY;
    rc = channel_start_request(&ctx->channel, request);
    if (rc < 0)
        return rc;
    rc = kind->start(ctx, request);
    if (rc < 0)
        channel_unstart_request(&ctx->channel, request);
    return rc;
}

int pwc_cancel(pwc_request *request)
{
    const struct request_kind *kind = request_kind_of(request);
    struct pwc_ctx *ctx = request_ctx(request);

    if (client_is_forked(ctx->client))
        return -EOWNERDEAD;
    if (!kind->take_back || request->left == 0)
        return -EALREADY;
    kind->take_back(ctx, request);
    channel_end_request(&ctx->channel, request, -ECANCELED);
    return 0;
}
