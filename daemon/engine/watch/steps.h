/*
 * The steps of an operation, for measurements: each step is counted (latency.h), can be probed from
 * outside (probes.h), and is recorded while a trace runs (trace.h). Thread: the progress thread.
 */
#ifndef PWC_ENGINE_STEPS_H
#define PWC_ENGINE_STEPS_H

#include "daemon/engine/watch/latency.h"
#include "daemon/engine/watch/probes.h"
#include "daemon/engine/ops/owner.h"
#include "daemon/engine/watch/trace.h"

/* ---- at the origin --------------------------------------------------------------------------- */

static inline void step_submitted(struct engine *e, uint32_t flow, uint64_t slot,
                                  const struct op *op)
{
    probe_submit(e->flows[flow].peer, flow, slot, op_count(op), op_shown_length(op));
    if (trace_on(e))
        trace_operation(e, TRACE_SUBMITTED, flow, slot, op, e->flows[flow].endpoint);
}

/* The fabric has the operation's payload or read. */
static inline void step_posted(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    latency_posted(e, e->flows[flow].peer, op);
    probe_post(e->flows[flow].peer, flow, slot, op_shown_length(op));
    if (trace_on(e))
        trace_operation(e, TRACE_POSTED, flow, slot, op, 0);
}

/* The operation's record stands in the ledger. */
static inline void step_staged(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    uint32_t peer = e->flows[flow].peer;

    if (op->posted_after == 0) {
        latency_posted(e, peer, op);
        probe_post(peer, flow, slot, 0);
    }
    if (trace_on(e))
        trace_operation(e, TRACE_STAGED, flow, slot, op, e->peers[peer].tx_tail);
}

/* All fabric operations of the payload, or the read, have ended. */
static inline void step_completed(struct engine *e, uint32_t flow, uint64_t slot,
                                  const struct op *op)
{
    latency_fabric(e, e->flows[flow].peer, op);
    probe_complete(e->flows[flow].peer, flow, slot, op->status);
    if (trace_on(e))
        trace_operation(e, TRACE_COMPLETED, flow, slot, op, 0);
}

/* The target has consumed the operation's record. */
static inline void step_placed(struct engine *e, uint32_t flow, uint64_t slot, const struct op *op)
{
    if (trace_on(e))
        trace_operation(e, TRACE_PLACED, flow, slot, op, 0);
}

/* The tail of the local ring in which the operation has its event; 0: it has none there. */
static inline uint64_t step_local_tail(const struct engine *e, const struct flow *f,
                                       const struct op *op)
{
    uint32_t session = owner_as_session(f->owner);

    return session != NONE && op_reports(op) ? e->session_live[session].local.tail : 0;
}

/* The operation is locally complete: its owner has been notified, if it wants that. */
static inline void step_reported(struct engine *e, uint32_t flow, uint64_t slot,
                                 const struct op *op)
{
    const struct flow *f = &e->flows[flow];

    latency_local(e, f->peer, op);
    probe_local(f->peer, flow, slot, op->status);
    if (trace_on(e))
        trace_operation(e, TRACE_LOCAL, flow, slot, op, step_local_tail(e, f, op));
}

/* ---- at the target --------------------------------------------------------------------------- */

/* The event of `count` operations of one kind, from `peer`; with TRACE_REPLY, of a reply. */
static inline void step_event(struct engine *e, enum trace_kind kind, uint32_t session,
                              uint32_t peer, uint32_t origin_flow, const struct event_record *event,
                              uint32_t count)
{
    probe_event(session, peer, origin_flow, event->sequence, event->bytes);
    if (trace_on(e))
        trace_event(e, kind, session, peer, origin_flow, event, count);
}

/* ---- between peers --------------------------------------------------------------------------- */

static inline void step_run(struct engine *e, uint32_t peer, uint16_t run, uint64_t bytes)
{
    probe_run(peer, run, bytes);
    if (trace_on(e))
        trace_run(e, TRACE_RUN, peer, run, bytes, 0);
}

static inline void step_run_ended(struct engine *e, uint32_t peer, uint16_t run)
{
    latency_record(e, peer, ENGINE_LATENCY_FABRIC,
                   e->peer_live[peer].out.run_posted[run % RUN_WINDOW], 1);
    probe_run_end(peer, run);
    if (trace_on(e))
        trace_run(e, TRACE_RUN_ENDED, peer, run, 0, 0);
}

static inline void step_peer(struct engine *e, uint32_t peer, bool up)
{
    if (up)
        probe_peer_up(peer);
    else
        probe_peer_down(peer);
    if (trace_on(e))
        trace_peer(e, up ? TRACE_PEER_UP : TRACE_PEER_DOWN, peer);
}

/* ---- clients --------------------------------------------------------------------------------- */

static inline void step_attached(struct engine *e, uint32_t client)
{
    const struct client *c = &e->clients[client];

    probe_attach(client, c->uid, c->pid, c->rank);
    if (trace_on(e))
        trace_client(e, TRACE_CLIENT_ATTACHED, client);
}

static inline void step_detached(struct engine *e, uint32_t client)
{
    probe_detach(client);
    if (trace_on(e))
        trace_client(e, TRACE_CLIENT_DETACHED, client);
}

static inline void step_quarantined(struct engine *e, uint32_t client)
{
    probe_quarantine(client, e->clients[client].quarantine);
    if (trace_on(e))
        trace_client(e, TRACE_QUARANTINED, client);
}

#endif
