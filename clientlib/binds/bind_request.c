/* Owns nothing: makes requests for binds, and takes their answers (bind_request.h). Thread: the one
 * that owns the context. */
#include "clientlib/binds/bind_request.h"

#include <errno.h>
#include <stdlib.h>
#include "clientlib/calls/series.h"
#include "shm_ring/fault.h"

struct pwc_remote *bind_make_remote(struct pwc_ctx *ctx, pwc_peer peer, const struct pwc_key *key)
{
    struct pwc_remote *remote = calloc(1, sizeof(*remote));

    if (!remote)
        return NULL;
    remote->ctx = ctx;
    remote->peer = peer;
    remote->keyed = key != NULL;
    if (key) {
        remote->key = *key;
        remote->slot = key->slot;
        remote->generation = key->generation;
    }
    return remote;
}

int bind_check_key(struct pwc_ctx *ctx, const struct pwc_key *key)
{
    return key && key->reserved != 0
               ? daemon_link_refuse(&ctx->client->link, -EINVAL,
                                    "the reserved word of struct pwc_key is not 0: it is no key")
               : 0;
}

void bind_request_fill(struct bind_request *r, const struct pwc_remote *remote)
{
    pwc__client_request__init(&r->request);
    pwc__bind__init(&r->bind);
    pwc__key__init(&r->key);
    r->bind.session = remote->ctx->session;
    r->bind.peer = remote->peer;
    if (remote->keyed) {
        r->key.node = remote->key.node;
        r->key.slot = remote->key.slot;
        r->key.generation = remote->key.generation;
        r->key.secret.len = sizeof(remote->key.secret);
        r->key.secret.data = (uint8_t *)(uintptr_t)remote->key.secret;
        r->bind.key = &r->key;
    }
    r->request.body_case = PWC__CLIENT_REQUEST__BODY_BIND;
    r->request.bind = &r->bind;
}

int bind_accept(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count)
{
    struct bind_answer *answer = context;

    answer->handle = reply->bound->remote;
    answer->length = reply->bound->length;
    answer->rights = reply->bound->rights;
    direct_way_take(&answer->way, reply->bound->pair, fds, fd_count);
    return 1;
}

void bind_adopt(struct pwc_remote *remote, struct bind_answer *answer)
{
    struct pwc_ctx *ctx = remote->ctx;

    FAULT(BIND_ANSWERED);
    remote->handle = answer->handle;
    remote->length = answer->length;
    remote->rights = answer->rights;
    channel_peer_is_back(&ctx->channel, remote->peer);
    direct_open(ctx, remote, &answer->way);
    FAULT(BIND_MAPPED);
    bound_add(&ctx->bound, remote);
    series_adopt(ctx, remote);
}

/* The request that ends a bound remote, which points into `unbind`. */
static Pwc__ClientRequest end_of(const struct pwc_ctx *ctx, const struct bind_answer *answer,
                                 Pwc__Unbind *unbind)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;

    pwc__unbind__init(unbind);
    unbind->pair = answer->way.fresh ? answer->way.number : 0;
    unbind->session = ctx->session;
    unbind->remote = answer->handle;
    request.body_case = PWC__CLIENT_REQUEST__BODY_UNBIND;
    request.unbind = unbind;
    return request;
}

void bind_give_back(struct pwc_ctx *ctx, struct bind_answer *answer)
{
    Pwc__Unbind unbind;
    Pwc__ClientRequest request = end_of(ctx, answer, &unbind);

    direct_way_drop(&answer->way);
    (void)daemon_end(&ctx->client->link, &request);
}

bool bind_is_to_be_asked_again(struct pwc_ctx *ctx, struct bind_answer *answer)
{
    Pwc__Unbind unbind;
    Pwc__ClientRequest request = end_of(ctx, answer, &unbind);

    if (!direct_way_is_lost(ctx, &answer->way) ||
        daemon_try_to_send(&ctx->client->link, &request) < 0)
        return false;
    direct_way_drop(&answer->way);
    return true;
}
