/*
 * The trace: records of the steps of operations, written while a trace runs (engine_trace).
 *
 * Each hook costs one look at a pointer while no trace runs. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_TRACE_H
#define PWC_ENGINE_TRACE_H

#include "daemon/engine/state/state.h"
#include "daemon/engine/watch/trace_ring.h"

static inline bool trace_on(const struct engine *e)
{
    return __builtin_expect(e->trace != NULL, 0);
}

/* A step of an operation at its origin. */
void trace_operation(struct engine *e, enum trace_kind kind, uint32_t flow, uint64_t slot,
                     const struct op *op, uint64_t position);
/* The event of an operation, or of a reply, that came from `peer`. */
void trace_event(struct engine *e, enum trace_kind kind, uint32_t session, uint32_t peer,
                 uint32_t origin_flow, const struct event_record *event, uint32_t count);
/* A handler of the context's offload has run on this many bytes, from `begun` to now. */
struct run;
void trace_handler(struct engine *e, uint32_t session, uint32_t offload, const struct run *run,
                   uint32_t bytes);
/* A run towards a peer, posted or ended. The record names an owner only when all of the run has
 * one. */
void trace_run(struct engine *e, enum trace_kind kind, uint32_t peer, uint16_t run, uint64_t bytes,
               int status);
void trace_peer(struct engine *e, enum trace_kind kind, uint32_t peer);
void trace_client(struct engine *e, enum trace_kind kind, uint32_t client);
/* Records how far clients have read their rings. */
void trace_drained(struct engine *e);

#endif
