/*
 * Direct: puts and gets of one context to a neighbour's memory, without the daemon. The daemon has
 * given us the pair (pair_abi.h) of which we are the origin, and the pages of the region.
 *
 * A pair has one path at a time. It leaves the direct one when its target has read all that stands
 * in the ring, and comes back when all that went through the daemon has ended, with a flag in the
 * first record that has the target show first what came by the daemon. So its events keep their
 * order. What must go through the daemon: active messages, and what will fail there, since the
 * daemon knows why.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_DIRECT_H
#define PWC_CLIENTLIB_DIRECT_H

#include <stdbool.h>
#include <stdint.h>
#include "control.pb-c.h"
#include "mapping.h"
#include "pair.h"
#include "pwc/pwc.h"

struct pwc_ctx;
struct pwc_remote;

struct direct_pair {
    struct direct_pair *next; /* of the context */
    uint64_t number;          /* the daemon's */
    struct mapping ring;
    struct pair_writer writer;
    uint32_t remotes; /* that lead to it */
    bool by_daemon;   /* the path now */
    bool after;       /* the next record is the first behind what went by the daemon */
    bool wake_due;    /* the target sleeps, and the daemon could not be asked yet */
    uint64_t put_ops, put_bytes, get_ops, get_bytes;
};

/* What the daemon sent with a bind. Descriptors not taken are -1. */
enum { DIRECT_FDS = 2 };
struct direct_way {
    bool present, fresh;
    uint64_t number;
    uint64_t segment_length;
    uint64_t offset;
    int fds[DIRECT_FDS];
    int fd_count;
};

/* Out of a reply; takes its descriptors. */
void direct_way_take(struct direct_way *way, const Pwc__Pair *pair, int *fds, int fd_count);
/* Opens the way for a new remote. Where it cannot, the remote's operations go through the daemon.
 * Takes what `way` holds. */
void direct_open(struct pwc_ctx *ctx, struct pwc_remote *remote, struct direct_way *way);
void direct_close(struct pwc_ctx *ctx, struct pwc_remote *remote);
/* Unmaps pairs that lead nowhere any more. */
void direct_check(struct pwc_ctx *ctx);
/* Unmaps all pairs. */
void direct_destroy(struct pwc_ctx *ctx);

/* How an operation goes, of a remote that has a pair: 1: directly; 0: through the daemon; or why
 * not at all. */
int direct_choose(struct pwc_ctx *ctx, struct pwc_remote *remote);
/* Then, where directly, the operation, checked but for its memory: as pwc_put and pwc_get. */
int direct_put(struct pwc_ctx *ctx, struct pwc_remote *dst, uint64_t off, const void *src,
               size_t len, const pwc_cid *lid, const pwc_cid *rid, unsigned flags);
int direct_get(struct pwc_ctx *ctx, struct pwc_remote *src, uint64_t off, void *dst, size_t len,
               const pwc_cid *lid, const pwc_cid *rid, unsigned flags);

/* Before an operation that has to go through the daemon: 0; -EAGAIN: the target has still to read
 * what is under way. Also of remotes without a pair. */
int direct_leave(const struct pwc_remote *remote);
/* Everything towards this remote's peer has ended, for it went directly. */
bool direct_idle(const struct pwc_remote *remote);
/* Asks for wake-ups that are due. */
void direct_retry_wakes(struct pwc_ctx *ctx);

#endif
