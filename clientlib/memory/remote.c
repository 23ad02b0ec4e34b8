/*
 * Remotes: peers, and regions of theirs, that a context has resolved.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include <stdlib.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/calls/flush.h"
#include "clientlib/neighbours/direct.h"
#include "shm_ring/fault.h"

/* The contents of a reply to Bind. */
struct binding {
    struct pwc_remote *remote;
    struct direct_way way;
};

static int accept_bound(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count)
{
    struct binding *b = context;

    b->remote->handle = reply->bound->remote;
    b->remote->length = reply->bound->length;
    b->remote->rights = reply->bound->rights;
    direct_way_take(&b->way, reply->bound->pair, fds, fd_count);
    return 1;
}

int pwc_bind(pwc_ctx *ctx, pwc_peer peer, const struct pwc_key *key, pwc_remote **out)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Bind bind = PWC__BIND__INIT;
    Pwc__Key key_message = PWC__KEY__INIT;
    struct binding binding;
    struct pwc_remote *remote;
    int rc = client_may_block(ctx->client);

    if (rc < 0)
        return rc;
    if (key && key->reserved != 0)
        return daemon_link_refuse(&ctx->client->link, -EINVAL,
                                  "the reserved word of struct pwc_key is not 0: it is no key");
    remote = calloc(1, sizeof(*remote));
    if (!remote)
        return -ENOMEM;
    binding.remote = remote;
    remote->ctx = ctx;
    remote->peer = peer;
    remote->slot = key ? key->slot : 0;
    remote->generation = key ? key->generation : 0;
    bind.session = ctx->session;
    bind.peer = peer;
    if (key) {
        key_message.node = key->node;
        key_message.slot = key->slot;
        key_message.generation = key->generation;
        key_message.secret.len = sizeof(key->secret);
        key_message.secret.data = (uint8_t *)(uintptr_t)key->secret;
        bind.key = &key_message;
    }
    request.body_case = PWC__CLIENT_REQUEST__BODY_BIND;
    request.bind = &bind;
    rc = daemon_call(&ctx->client->link, &request, PWC__CLIENT_REPLY__BODY_BOUND, accept_bound,
                     &binding);
    if (rc < 0) {
        free(remote);
        return rc;
    }
    FAULT(BIND_ANSWERED);
    direct_open(ctx, remote, &binding.way);
    FAULT(BIND_MAPPED);
    remote->next = ctx->remotes;
    ctx->remotes = remote;
    *out = remote;
    return 0;
}

int pwc_unbind(pwc_remote *remote)
{
    struct pwc_ctx *ctx = remote->ctx;
    struct pwc_remote **at = &ctx->remotes;
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Unbind unbind = PWC__UNBIND__INIT;
    int rc = client_may_block(ctx->client);

    if (rc < 0)
        return rc;
    rc = flush_peer(ctx, remote, deadline_after_ms(ctx->client->link.timeout_ms));
    if (rc == -ETIMEDOUT || rc == -ENOBUFS || rc == -EBUSY || rc == -ENOMEM)
        return rc;
    while (*at != remote)
        at = &(*at)->next;
    *at = remote->next;
    direct_close(ctx, remote);
    unbind.session = ctx->session;
    unbind.remote = remote->handle;
    request.body_case = PWC__CLIENT_REQUEST__BODY_UNBIND;
    request.unbind = &unbind;
    /* If it fails, as in pwc_ctx_destroy. */
    (void)daemon_end(&ctx->client->link, &request);
    FAULT(UNBOUND);
    free(remote);
    return 0;
}

size_t pwc_remote_len(const pwc_remote *remote)
{
    return remote->length;
}
