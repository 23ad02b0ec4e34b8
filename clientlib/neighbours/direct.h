/*
 * The direct path: puts, gets and active messages of one context to a neighbour, without the
 * daemon, which has given this context a pair (pair_abi.h) as its origin, and the pages of the
 * region.
 *
 * A pair has one path at a time, whatever remotes lead to its target: the direct one, or the
 * daemon's, with which it begins. The pair takes the direct path when the target has mapped the
 * pair and all that went through the daemon has ended; a flag in the first record then has the
 * target show first what came through the daemon. The pair leaves the direct path when the target
 * has read all that stands in the ring, and has answered. So events keep their order. These
 * operations must go through the daemon: those that will fail, since the daemon knows why; those to
 * a region whose pages are not mapped; and messages that are too long for the ring, or prepared in
 * the submission ring.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_DIRECT_H
#define PWC_CLIENTLIB_DIRECT_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/control.pb-c.h"
#include "clientlib/neighbours/neighbours.h"
#include "pwc/pwc.h"

struct am_outgoing;
struct atomic_call;
struct pieces;
struct pwc_ctx;
struct pwc_remote;
struct signal;

/* ---- direct_open.c: pairs come and go -------------------------------------------------------- */

/* The daemon's answer to a bind, as far as it is about the pair. Descriptors not taken are -1. */
enum { DIRECT_FDS = 3 };
struct direct_way {
    bool present, fresh, board;
    uint32_t slot; /* on the board */
    uint64_t number;
    uint64_t segment_length;
    uint64_t offset;
    int fds[DIRECT_FDS];
    int fd_count;
};

/* Reads the way out of a reply, and takes its descriptors. */
void direct_way_take(struct direct_way *way, const Pwc__Pair *pair, int *fds, int fd_count);
/* Closes what `way` still holds. */
void direct_way_drop(struct direct_way *way);
/* Opens the way for a new remote. Where that fails, the remote's operations go through the daemon.
 * Takes the descriptors that `way` holds. */
void direct_open(struct pwc_ctx *ctx, struct pwc_remote *remote, struct direct_way *way);
void direct_close(struct pwc_ctx *ctx, struct pwc_remote *remote);
/* Unmaps pairs that lead nowhere any more. */
void direct_check(struct pwc_ctx *ctx);

/* ---- direct.c: paths and operations ---------------------------------------------------------- */

/* The path of an operation over a remote that has a pair, or is not bound (unbound.h); `record`:
 * the operation has a record for its target. 1: the direct one; 0: the daemon's; or an error:
 * neither now. */
int direct_choose(struct pwc_ctx *ctx, struct pwc_remote *remote, bool record);
/* After a 1 of direct_choose: the operation. As pwc_put and pwc_get. */
int direct_put(struct pwc_ctx *ctx, struct pwc_remote *dst, uint64_t off, const void *src,
               size_t len, const pwc_cid *lid, const pwc_cid *rid, unsigned flags);
int direct_get(struct pwc_ctx *ctx, struct pwc_remote *src, uint64_t off, void *dst, size_t len,
               const pwc_cid *lid, const pwc_cid *rid, unsigned flags);
/* Does this for the pieces of a vector, `total` bytes, whose memory has been checked too. */
int direct_putv(struct pwc_ctx *ctx, struct pwc_remote *dst, const struct pieces *pieces,
                size_t total, const pwc_cid *lid, const pwc_cid *rid, unsigned flags);
int direct_getv(struct pwc_ctx *ctx, struct pwc_remote *src, const struct pieces *pieces,
                size_t total, const pwc_cid *lid, const pwc_cid *rid, unsigned flags);

/* Does this for an atomic. -EINVAL also: its region is not aligned. */
int direct_atomic(struct pwc_ctx *ctx, const struct atomic_call *a);
/* Does this for pwc_put_signal, which has no record. -EINVAL: the word is not aligned. */
int direct_signal(struct pwc_ctx *ctx, struct pwc_remote *dst, uint64_t off, const void *src,
                  size_t len, const struct signal *signal, const pwc_cid *lid, unsigned flags);

/* Before an operation that has to go through the daemon: 0; -EAGAIN: the target has still to read
 * what is under way, or to answer. Also for remotes without a pair; binds one that is to be bound
 * at its first use; -EAGAIN also: it is being bound. */
int direct_leave(struct pwc_ctx *ctx, struct pwc_remote *remote);
/* The region is withdrawn, or the peer is gone. For a remote that has a way. */
bool direct_has_ended(const struct pwc_ctx *ctx, const struct pwc_remote *remote);
/* Everything towards this remote's peer has ended, for it went directly. */
bool direct_idle(const struct pwc_remote *remote);

/* ---- direct_am.c: active messages ------------------------------------------------------------ */

/* As direct_choose, for a request that has been checked. */
int direct_choose_message(struct pwc_ctx *ctx, const struct am_outgoing *m);
/* After a 1 of direct_choose_message: the request. */
int direct_request(struct pwc_ctx *ctx, const struct am_outgoing *m);
/* Replies to the neighbour whose request is being handled; there is room for it. NULL reports that
 * there will be no reply. Returns 0, -EFAULT or -ENOMEM. */
int direct_reply(struct pwc_ctx *ctx, const struct am_outgoing *m);

/* ---- between the two ------------------------------------------------------------------------- */

/* Room in the ring for a record of this many lines: 0; or -EAGAIN, and a wait ends when there is
 * room. */
static inline int direct_room(struct direct_pair *pair, uint32_t lines)
{
    /* If a neighbour has written nonsense there, that is no fault of ours: as if full. */
    if (pair_room(&pair->writer, lines) == 0)
        return 0;
    neighbours_refuse(pair);
    return -EAGAIN;
}

#endif
