/*
 * Operations over loose memory: their source or destination is in no region, so the daemon does not
 * reach it, and the payload passes through staging (memory/staging.h).
 *
 *     up to 64 KiB      one record, with its payload in staging
 *     longer            a series of records (session_abi.h): pieces, which are puts or gets of
 *                       64 KiB without events, then the end, which carries the event, the signal
 *                       or the message and no payload
 *
 * The operation is accepted at once and queued. Its records are submitted as staging and rings have
 * room: some in the call, the others by series_continue in later calls. Series take turns, a piece
 * each; a series that waits for staging is served before those after it in the queue. An operation
 * that is not wholly submitted holds its peer: no other operation may be submitted to that peer
 * meanwhile, because the daemon would take it for a part of the series. So the peer's remotes
 * without a pair get series_pair, which makes each call leave its fast way (direct_choose,
 * direct_leave).
 *
 * Each record has an end of its own; one slot counts these ends (channel/pending.h) and keeps the
 * first error. When a piece has failed, an empty record without an event ends the series: the
 * daemon fails all records of the series until its last one.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_SERIES_H
#define PWC_CLIENTLIB_SERIES_H

#include "clientlib/attach/context.h"
#include "clientlib/calls/operation.h"

extern const struct direct_pair series_pair;

/*
 * Accepts an operation whose payload of record.length bytes (more than 0) is in loose memory: a
 * put, a signal or a Long with its source, or a get with its destination. `flags` (enum
 * submit_flags) are the caller's. 0; -EAGAIN: too many are under way; else as channel_submit and
 * staging_take, which blocks.
 */
int series_put(struct pwc_ctx *ctx, const struct operation *op, const void *src);
int series_get(struct pwc_ctx *ctx, const struct operation *op, const pwc_cid *lid, unsigned flags,
               void *dst);

/* Submits as many records as there is room for. Returns their number. */
unsigned series_go_on(struct pwc_ctx *ctx);
/* Keeps the local events that are there, among them the ends of pieces, then calls series_go_on.
 * Returns how much it has done. */
unsigned series_continue(struct pwc_ctx *ctx);

/* Whether the peer is held. */
bool series_holds_any(const struct pwc_ctx *ctx, pwc_peer peer);
static inline bool series_holds(const struct pwc_ctx *ctx, pwc_peer peer)
{
    return ctx->series.first && series_holds_any(ctx, peer);
}
/* Called when a remote has been bound, perhaps to a held peer. */
void series_adopt(struct pwc_ctx *ctx, struct pwc_remote *remote);

/* How many operations are not wholly submitted. */
uint32_t series_count(const struct pwc_ctx *ctx);
/* From now on the destination of a get with this request is not filled any more. */
void series_give_up(struct pwc_ctx *ctx, uint64_t request_id);
/* Gives up all operations, because their context ends: no further record is submitted. */
void series_drop(struct pwc_ctx *ctx);

#endif
