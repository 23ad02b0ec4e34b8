/*
 * Owns nothing: binds a remote. Thread: the one that holds the endpoint's lock.
 */
#include "providers/libfabric/bind.h"

int bind_start(pwc_ctx *ctx, pwc_peer peer, const struct pwc_key *key, struct pending *pending,
               pwc_remote **out)
{
#ifdef PROVIDER_BIND_START
    return pwc_bind_start(ctx, peer, key, pwc_cid_u64((uint64_t)(uintptr_t)pending), out);
#else
    int rc = pwc_bind(ctx, peer, key, out);

    return rc < 0 ? rc : 1;
#endif
}
