/* Owns the list of a context's remotes that are not bound (unbound.h). Thread: the one that owns
 * the context. */
#include "clientlib/binds/unbound.h"

const struct direct_pair unbound_pairs[UNBOUND_STATES] = {
    [UNBOUND_LATE] = {.by_daemon = true},
    [UNBOUND_UNDER_WAY] = {.by_daemon = true},
    [UNBOUND_FAILED] = {.by_daemon = true},
};

void unbound_set(struct pwc_remote *remote, enum unbound_state state)
{
    remote->pair = (struct direct_pair *)(uintptr_t)&unbound_pairs[state];
    if (state == UNBOUND_LATE)
        return;
    remote->length = UINT64_MAX;
    remote->rights = UINT32_MAX;
}

void unbound_add(struct pwc_remote *remote)
{
    struct pwc_ctx *ctx = remote->ctx;

    remote->next = ctx->unbound;
    if (ctx->unbound)
        ctx->unbound->previous = remote;
    ctx->unbound = remote;
}

void unbound_forget(struct pwc_remote *remote)
{
    if (remote->previous)
        remote->previous->next = remote->next;
    else
        remote->ctx->unbound = remote->next;
    if (remote->next)
        remote->next->previous = remote->previous;
    remote->next = remote->previous = NULL;
    remote->pair = NULL;
}
