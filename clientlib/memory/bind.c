/* Owns nothing: binds remotes (bind.h). Thread: the one that owns the context. */
#include "clientlib/memory/bind.h"

#include <errno.h>
#include <stdlib.h>
#include "clientlib/calls/series.h"
#include "clientlib/neighbours/direct.h"
#include "shm_ring/fault.h"

const struct direct_pair remote_late_pair = {.by_daemon = true};

/* The contents of a reply to Bind. */
struct binding {
    uint32_t handle, rights;
    uint64_t length;
    struct direct_way way;
};

static int accept_bound(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count)
{
    struct binding *b = context;

    b->handle = reply->bound->remote;
    b->length = reply->bound->length;
    b->rights = reply->bound->rights;
    direct_way_take(&b->way, reply->bound->pair, fds, fd_count);
    return 1;
}

static int ask(struct pwc_ctx *ctx, pwc_peer peer, const struct pwc_key *key, struct binding *out)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Bind bind = PWC__BIND__INIT;
    Pwc__Key key_message = PWC__KEY__INIT;

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
    return daemon_call(&ctx->client->link, &request, PWC__CLIENT_REPLY__BODY_BOUND, accept_bound,
                       out);
}

/* The daemon has bound it: it is one of its context's from now on. */
static void adopt(struct pwc_remote *remote, struct binding *b)
{
    struct pwc_ctx *ctx = remote->ctx;

    FAULT(BIND_ANSWERED);
    remote->handle = b->handle;
    remote->length = b->length;
    remote->rights = b->rights;
    channel_peer_is_back(&ctx->channel, remote->peer);
    direct_open(ctx, remote, &b->way);
    FAULT(BIND_MAPPED);
    remote->next = ctx->remotes;
    ctx->remotes = remote;
    series_adopt(ctx, remote);
}

static struct pwc_remote *make(struct pwc_ctx *ctx, pwc_peer peer, const struct pwc_key *key)
{
    struct pwc_remote *remote = calloc(1, sizeof(*remote));

    if (!remote)
        return NULL;
    remote->ctx = ctx;
    remote->peer = peer;
    remote->slot = key ? key->slot : 0;
    remote->generation = key ? key->generation : 0;
    return remote;
}

int pwc_bind(pwc_ctx *ctx, pwc_peer peer, const struct pwc_key *key, pwc_remote **out)
{
    struct pwc_remote *remote;
    struct binding binding;
    int rc = client_may_ask(ctx->client);

    if (rc < 0)
        return rc;
    if (key && key->reserved != 0)
        return daemon_link_refuse(&ctx->client->link, -EINVAL,
                                  "the reserved word of struct pwc_key is not 0: it is no key");
    remote = make(ctx, peer, key);
    if (!remote)
        return -ENOMEM;
    rc = ask(ctx, peer, key, &binding);
    if (rc < 0) {
        free(remote);
        return rc;
    }
    adopt(remote, &binding);
    *out = remote;
    return 0;
}

struct pwc_remote *remote_new_late(struct pwc_ctx *ctx, pwc_peer peer, const struct pwc_key *key,
                                   uint64_t length, uint32_t rights)
{
    struct pwc_remote *remote = make(ctx, peer, key);

    if (!remote)
        return NULL;
    remote->keyed = key != NULL;
    if (key)
        remote->key = *key;
    remote->length = length;
    remote->rights = rights;
    remote->pair = (struct direct_pair *)(uintptr_t)&remote_late_pair; /* never written */
    remote->next = ctx->late;
    if (ctx->late)
        ctx->late->previous = remote;
    ctx->late = remote;
    return remote;
}

void remote_forget_late(struct pwc_remote *remote)
{
    if (remote->previous)
        remote->previous->next = remote->next;
    else
        remote->ctx->late = remote->next;
    if (remote->next)
        remote->next->previous = remote->previous;
    remote->next = remote->previous = NULL;
    remote->pair = NULL;
}

/* The remote that the daemon has bound is not wanted. */
static void give_back(struct pwc_ctx *ctx, struct binding *b)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Unbind unbind = PWC__UNBIND__INIT;

    direct_way_drop(&b->way);
    unbind.session = ctx->session;
    unbind.remote = b->handle;
    request.body_case = PWC__CLIENT_REQUEST__BODY_UNBIND;
    request.unbind = &unbind;
    (void)daemon_end(&ctx->client->link, &request);
}

int remote_bind_late(struct pwc_remote *remote)
{
    struct pwc_ctx *ctx = remote->ctx;
    struct binding binding;
    int rc = client_may_ask(ctx->client);

    if (rc < 0)
        return rc;
    do /* a daemon that was started anew may have bound it or not: what it has bound goes later */
        rc = ask(ctx, remote->peer, remote->keyed ? &remote->key : NULL, &binding);
    while (rc == -ECONNABORTED);
    if (rc < 0)
        return rc;
    /* The call that needs it has checked its range against these. */
    if (binding.length != remote->length || binding.rights != remote->rights) {
        give_back(ctx, &binding);
        return -EKEYREJECTED;
    }
    remote_forget_late(remote);
    adopt(remote, &binding);
    return 0;
}
