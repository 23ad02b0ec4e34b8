/*
 * The request Bind and its answer: the common part of all ways of binding.
 *
 * Thread: the one that owns the context; bind_accept runs on the thread that reads the socket.
 */
#ifndef PWC_CLIENTLIB_BIND_REQUEST_H
#define PWC_CLIENTLIB_BIND_REQUEST_H

#include "clientlib/attach/context.h"
#include "clientlib/neighbours/direct.h"

struct bind_answer {
    uint32_t handle, rights;
    uint64_t length;
    struct direct_way way;
};

/* Has pointers into itself and to the remote's key, so it must not be copied. */
struct bind_request {
    Pwc__ClientRequest request;
    Pwc__Bind bind;
    Pwc__Key key;
};

/* Makes a remote that is not bound, and in no list; `key` may be NULL. Returns NULL: no memory. */
struct pwc_remote *bind_make_remote(struct pwc_ctx *ctx, pwc_peer peer, const struct pwc_key *key);
/* 0, or -EINVAL with its text: `key` is no key. `key` may be NULL. */
int bind_check_key(struct pwc_ctx *ctx, const struct pwc_key *key);

void bind_request_fill(struct bind_request *request, const struct pwc_remote *remote);
/* Takes PWC__CLIENT_REPLY__BODY_BOUND into a struct bind_answer: a daemon_accept. */
int bind_accept(void *answer, const Pwc__ClientReply *reply, int *fds, int fd_count);

/* Called when the daemon has bound the remote, which is in no list: adds it to its context. */
void bind_adopt(struct pwc_remote *remote, struct bind_answer *answer);
/* Ends a remote at the daemon that is not needed. Blocks. */
void bind_give_back(struct pwc_ctx *ctx, struct bind_answer *answer);
/* Whether the answer names a pair that is lost (direct_way_is_lost); if so, has given the remote
 * back. The next answer comes from a daemon that knows so, and brings a new pair. Never blocks. */
bool bind_is_to_be_asked_again(struct pwc_ctx *ctx, struct bind_answer *answer);

#endif
