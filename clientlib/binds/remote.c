/*
 * The end of remotes: pwc_unbind, and their length. Owns nothing.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include <stdlib.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/calls/flush.h"
#include "clientlib/calls/wait.h"
#include "clientlib/binds/bind_start.h"
#include "clientlib/binds/unbound.h"
#include "clientlib/neighbours/direct.h"
#include "shm_ring/fault.h"

int pwc_unbind(pwc_remote *remote)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Unbind unbind = PWC__UNBIND__INIT;
    struct pwc_ctx *ctx;
    int rc;

    if (!remote)
        return -EINVAL;
    ctx = remote->ctx;
    rc = client_may_ask(ctx->client);
    if (rc < 0)
        return rc;
    if (remote_is(remote, UNBOUND_UNDER_WAY))
        binds_cancel(remote);
    if (remote_is_unbound(remote)) {
        unbound_forget(remote);
        free(remote);
        return 0;
    }
    wait_begin(ctx, SESSION_WAITS_FLUSH);
    rc = flush_peer(ctx, remote, deadline_after_ms(ctx->client->link.timeout_ms));
    wait_end(ctx);
    if (rc == -ETIMEDOUT || rc == -ENOBUFS || rc == -EBUSY || rc == -ENOMEM)
        return rc;
    bound_forget(&ctx->bound, remote);
    direct_close(ctx, remote);
    unbind.session = ctx->session;
    unbind.remote = remote->handle;
    request.body_case = PWC__CLIENT_REQUEST__BODY_UNBIND;
    request.unbind = &unbind;
    /* If this fails, the daemon ends the remote later, at the latest with the client. */
    (void)daemon_end(&ctx->client->link, &request);
    FAULT(UNBOUND);
    free(remote);
    return 0;
}

size_t pwc_remote_len(const pwc_remote *remote)
{
    if (!remote || (remote_is_unbound(remote) && !remote_is(remote, UNBOUND_LATE)))
        return 0;
    return remote->length;
}
