/* Owns nothing: binds remotes, and waits for that (bind.h). Thread: the one that owns the context.
 */
#include "clientlib/memory/bind.h"

#include <errno.h>
#include <stdlib.h>
#include "clientlib/memory/bind_request.h"
#include "clientlib/memory/bind_start.h"

/* Asks, and waits. What the daemon has answered before, to binds that were started, comes first: a
 * pair is sent with the first answer that leads to it. */
static int ask(struct pwc_remote *remote, struct bind_answer *out)
{
    struct bind_request r;
    int rc;

    bind_request_fill(&r, remote);
    rc = daemon_call(&remote->ctx->client->link, &r.request, PWC__CLIENT_REPLY__BODY_BOUND,
                     bind_accept, out);
    if (rc == 0)
        binds_progress(remote->ctx);
    return rc;
}

int pwc_bind(pwc_ctx *ctx, pwc_peer peer, const struct pwc_key *key, pwc_remote **out)
{
    struct pwc_remote *remote;
    struct bind_answer answer;
    int rc = client_may_ask(ctx->client);

    if (rc == 0)
        rc = bind_check_key(ctx, key);
    if (rc < 0)
        return rc;
    remote = bind_make_remote(ctx, peer, key);
    if (!remote)
        return -ENOMEM;
    rc = ask(remote, &answer);
    if (rc < 0) {
        free(remote);
        return rc;
    }
    bind_adopt(remote, &answer);
    *out = remote;
    return 0;
}

struct pwc_remote *remote_new_late(struct pwc_ctx *ctx, pwc_peer peer, const struct pwc_key *key,
                                   uint64_t length, uint32_t rights)
{
    struct pwc_remote *remote = bind_make_remote(ctx, peer, key);

    if (!remote)
        return NULL;
    remote->length = length;
    remote->rights = rights;
    unbound_set(remote, UNBOUND_LATE);
    unbound_add(remote);
    return remote;
}

static int bind_late(struct pwc_remote *remote)
{
    struct pwc_ctx *ctx = remote->ctx;
    struct bind_answer answer;
    int rc = client_may_ask(ctx->client);

    if (rc < 0)
        return rc;
    do /* a daemon that was started anew may have bound it or not: what it has bound goes later */
        rc = ask(remote, &answer);
    while (rc == -ECONNABORTED);
    if (rc < 0)
        return rc;
    /* The call that needs it has checked its range against these. */
    if (answer.length != remote->length || answer.rights != remote->rights) {
        bind_give_back(ctx, &answer);
        return -EKEYREJECTED;
    }
    unbound_forget(remote);
    bind_adopt(remote, &answer);
    return 0;
}

int remote_make_ready(struct pwc_remote *remote)
{
    if (remote_is(remote, UNBOUND_LATE))
        return bind_late(remote);
    return remote_is(remote, UNBOUND_UNDER_WAY) ? -EAGAIN : remote->error;
}
