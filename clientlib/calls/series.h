/*
 * Operations over loose memory: their source or destination stands in no region, so the daemon does
 * not reach it, and the payload goes through staging (memory/staging.h).
 *
 *     up to 64 KiB      one record, with its payload in staging
 *     longer            a series of records (session_abi.h): pieces, which are puts or gets of 64
 * KiB without events, then the end, which carries the event, the signal or the message and no
 * payload
 *
 * The operation is accepted at once and queued; its records are submitted as staging and rings have
 * room, some of them in the call, the others by series_continue in calls that come later. Series
 * take turns, a piece each; one that waits for staging is served before those behind it. An
 * operation that is not wholly submitted holds its peer: nothing else may go there until it is, or
 * the daemon would take the other for a part of the series. So the remotes of that peer get
 * series_pair in the place of a pair, which leads each call off its fast way (direct_choose,
 * direct_leave).
 *
 * Each record has an end of its own, counted in one slot (channel/pending.h), which keeps the first
 * error. When a piece has failed, an empty record without an event ends the series: the daemon
 * fails what belongs to a series until its last record has come.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_SERIES_H
#define PWC_CLIENTLIB_SERIES_H

#include "clientlib/attach/context.h"
#include "clientlib/calls/operation.h"

extern const struct direct_pair series_pair;

/*
 * Accepts an operation whose payload of record.length bytes, more than 0, is loose: a put, a signal
 * or a Long with its source, or a get with its destination. `flags` (enum submit_flags) are those
 * that the caller asked for. 0; -EAGAIN: too many are under way; -EFAULT: a Long of more than 64
 * KiB, which this daemon does not know; else as channel_submit and staging_take, which blocks.
 */
int series_put(struct pwc_ctx *ctx, const struct operation *op, const void *src);
int series_get(struct pwc_ctx *ctx, const struct operation *op, const pwc_cid *lid, unsigned flags,
               void *dst);

/* Submits what there is room for: how many records. */
unsigned series_go_on(struct pwc_ctx *ctx);
/* Does so after it has kept the local events that are there, among which are the ends of pieces.
 * How much it has done. */
unsigned series_continue(struct pwc_ctx *ctx);

/* The peer is held. */
bool series_holds_any(const struct pwc_ctx *ctx, pwc_peer peer);
static inline bool series_holds(const struct pwc_ctx *ctx, pwc_peer peer)
{
    return ctx->series.first && series_holds_any(ctx, peer);
}
/* A remote has been bound, perhaps to a peer that is held. */
void series_adopt(struct pwc_ctx *ctx, struct pwc_remote *remote);

/* How many are not wholly submitted. */
uint32_t series_count(const struct pwc_ctx *ctx);
/* The memory of the operation that was given the request with this id is not filled any more. */
void series_give_up(struct pwc_ctx *ctx, uint64_t request_id);
/* Gives up all, with their context: no more of them is submitted. */
void series_drop(struct pwc_ctx *ctx);

#endif
