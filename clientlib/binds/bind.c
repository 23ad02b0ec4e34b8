/* Owns nothing: binds remotes, and waits for the answers (bind.h). Thread: the one that owns the
 * context.
 */
#include "clientlib/binds/bind.h"

#include <errno.h>
#include <stdlib.h>
#include "clientlib/binds/bind_request.h"
#include "clientlib/binds/bind_start.h"

/* Sends a bind, and waits for its answer. Then takes the answers to binds that were started before:
 * the daemon sends a pair only once, with the first answer that needs it, so an earlier answer may
 * bring the pair that this bind needs. */
static int ask_once(struct pwc_remote *remote, struct bind_answer *out)
{
    struct bind_request r;
    int rc;

    bind_request_fill(&r, remote);
    rc = daemon_call_again(&remote->ctx->client->link, &r.request, PWC__CLIENT_REPLY__BODY_BOUND,
                           bind_accept, out);
    if (rc == 0)
        binds_progress(remote->ctx);
    return rc;
}

static int ask(struct pwc_remote *remote, struct bind_answer *out)
{
    int rc = ask_once(remote, out);

    return rc == 0 && bind_is_to_be_asked_again(remote->ctx, out) ? ask_once(remote, out) : rc;
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
    rc = ask(remote, &answer);
    if (rc < 0)
        return rc;
    /* The operation was checked against the length and rights of the late remote. */
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
