/*
 * How long operations take, step by step and peer by peer: the hooks of the hot path.
 *
 * Times are those of the engine's clock (engine_host.clock), read after a step has taken records
 * and after the fabric has reported completions: all that happens in between has one time. Thread:
 * the progress thread.
 */
#ifndef PWC_ENGINE_LATENCY_H
#define PWC_ENGINE_LATENCY_H

#include "daemon/engine/ops/op.h"
#include "daemon/engine/state/state.h"

static inline uint64_t latency_since(const struct engine *e, uint64_t then)
{
    return e->now > then ? e->now - then : 0;
}

static inline void latency_record(struct engine *e, uint32_t peer, enum engine_latency what,
                                  uint64_t then, uint32_t times)
{
    struct latency *latency = &e->latencies[e->peer_live[peer].latency];

    histogram_record(&latency->steps[what], latency_since(e, then), times);
}

/* The fabric has the operation's payload or read; or, if the operation has neither, the ledger has
 * its record. Each operation is counted once; if it is sent again, its time on the fabric is that
 * of the last try. */
static inline void latency_posted(struct engine *e, uint32_t peer, struct op *op)
{
    uint64_t after = latency_since(e, op->submitted_at);

    if (op->posted_after == 0)
        latency_record(e, peer, ENGINE_LATENCY_QUEUED, op->submitted_at, op_count(op));
    op->posted_after = after >= UINT32_MAX ? UINT32_MAX : (uint32_t)after + (after == 0);
}

/* The last fabric operation of its payload, or its read, has ended well. */
static inline void latency_fabric(struct engine *e, uint32_t peer, const struct op *op)
{
    if (op->posted_after < UINT32_MAX)
        latency_record(e, peer, ENGINE_LATENCY_FABRIC, op->submitted_at + op->posted_after, 1);
}

/* The operation has ended for its client, with an event or without. */
static inline void latency_local(struct engine *e, uint32_t peer, const struct op *op)
{
    if (op->status == 0 && !op_row(op)->at_head)
        latency_record(e, peer, ENGINE_LATENCY_LOCAL, op->submitted_at, op_count(op));
}

#endif
