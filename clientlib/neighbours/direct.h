/*
 * The direct path: puts, gets and active messages of one context to a neighbour, without the
 * daemon. For this the daemon has given the context a pair (pair_abi.h) as its origin, and the
 * pages of the region.
 *
 * A pair has one path at a time, for all remotes of its target: the direct path, or the daemon's,
 * with which it begins. The pair changes to the direct path when the target has mapped the pair and
 * all operations through the daemon have ended; a flag in the first record then makes the target
 * show the daemon's events first. The pair leaves the direct path only when the target has read all
 * records in the ring, and has answered all requests. So events keep their order. Some operations
 * must go through the daemon: operations that will fail, because the daemon knows why; operations
 * on a region whose pages are not mapped; and messages that are too long for the ring, or prepared
 * in the submission ring.
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

/* ---- direct_open.c: opening and closing pairs
 * -------------------------------------------------------- */

/* The part of the daemon's answer to a bind that is about the pair. Descriptors that were taken are
 * -1. */
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
/* Whether the way leads over a pair that the context does not have: the pair came with the answer
 * to a bind that was given up, and that answer's end (late.h) was not yet at the daemon. */
bool direct_way_is_lost(const struct pwc_ctx *ctx, const struct direct_way *way);
/* Opens the way for a new remote, and takes the descriptors of `way`. If this fails, the remote's
 * operations go through the daemon. */
void direct_open(struct pwc_ctx *ctx, struct pwc_remote *remote, struct direct_way *way);
void direct_close(struct pwc_ctx *ctx, struct pwc_remote *remote);
/* Unmaps pairs whose target is gone. */
void direct_check(struct pwc_ctx *ctx);

/* ---- direct.c: paths and operations ---------------------------------------------------------- */

/* The path of an operation over a remote that has a pair, or is not bound (unbound.h); `record`:
 * the operation has a record for its target. 1: the direct path; 0: the daemon's; or an error: the
 * operation cannot be submitted now. */
int direct_choose(struct pwc_ctx *ctx, struct pwc_remote *remote, bool record);
/* Carry out the operation after direct_choose gave 1. As pwc_put and pwc_get. */
int direct_put(struct pwc_ctx *ctx, struct pwc_remote *dst, uint64_t off, const void *src,
               size_t len, const pwc_cid *lid, const pwc_cid *rid, unsigned flags);
int direct_get(struct pwc_ctx *ctx, struct pwc_remote *src, uint64_t off, void *dst, size_t len,
               const pwc_cid *lid, const pwc_cid *rid, unsigned flags);
/* direct_put and direct_get for the pieces of a vector, `total` bytes, whose memory has been
 * checked. */
int direct_putv(struct pwc_ctx *ctx, struct pwc_remote *dst, const struct pieces *pieces,
                size_t total, const pwc_cid *lid, const pwc_cid *rid, unsigned flags);
int direct_getv(struct pwc_ctx *ctx, struct pwc_remote *src, const struct pieces *pieces,
                size_t total, const pwc_cid *lid, const pwc_cid *rid, unsigned flags);

/* direct_put's counterpart for an atomic. -EINVAL also: its region is not aligned. */
int direct_atomic(struct pwc_ctx *ctx, const struct atomic_call *a);
/* direct_put's counterpart for pwc_put_signal, which has no record. -EINVAL: the word is not
 * aligned. */
int direct_signal(struct pwc_ctx *ctx, struct pwc_remote *dst, uint64_t off, const void *src,
                  size_t len, const struct signal *signal, const pwc_cid *lid, unsigned flags);

/* Called before an operation that must go through the daemon, also over a remote without a pair: 0;
 * -EAGAIN: the target has still to read records, or to answer, or the remote is being bound. Binds
 * a late remote. */
int direct_leave(struct pwc_ctx *ctx, struct pwc_remote *remote);
/* Whether the region is withdrawn, or the peer is gone. For a remote that has a way. */
bool direct_has_ended(const struct pwc_ctx *ctx, const struct pwc_remote *remote);
/* Whether everything towards this remote's peer has ended, because it was all direct. */
bool direct_idle(const struct pwc_remote *remote);

/* ---- direct_am.c: active messages ------------------------------------------------------------ */

/* As direct_choose, for a request that has been checked. */
int direct_choose_message(struct pwc_ctx *ctx, const struct am_outgoing *m);
/* Sends the request after direct_choose_message gave 1. */
int direct_request(struct pwc_ctx *ctx, const struct am_outgoing *m);
/* Replies to the neighbour whose request is being handled; there is always room. NULL says that
 * there will be no reply. Returns 0, -EFAULT or -ENOMEM. */
int direct_reply(struct pwc_ctx *ctx, const struct am_outgoing *m);

/* ---- for both files ------------------------------------------------------------------------- */

/* Checks for room in the ring for a record of this many lines: 0; or -EAGAIN, and the next wait
 * ends when there is room. */
static inline int direct_room(struct direct_pair *pair, uint32_t lines)
{
    /* If the neighbour has written a wrong count there, treat the ring as full. */
    if (pair_room(&pair->writer, lines) == 0)
        return 0;
    neighbours_refuse(pair);
    return -EAGAIN;
}

#endif
