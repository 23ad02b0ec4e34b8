/*
 * Counts of the work of handlers, for views: the counts of each offload, in the arena, which change
 * in the caller's transaction; and in private memory the units of each run, and sums over all
 * offloads, those that are gone included. Views read the counts from another thread
 * (view_offload.c). Thread: the progress thread.
 */
#ifndef PWC_ENGINE_OFFLOAD_ACCOUNT_H
#define PWC_ENGINE_OFFLOAD_ACCOUNT_H

#include "daemon/engine/state/state.h"
#include "daemon/handlers/run.h"

/* Begins the counts of a new offload in this entry. */
static inline void account_begin(struct engine *e, uint32_t offload)
{
    e->offloads.live[offload] = (struct offload_live){.in_time = OFFLOAD_IN_TIME};
}

/* Counts a run. The caller adds the units to the offload's own in the run's transaction. */
static inline void account_run(struct engine *e, uint32_t offload, uint64_t units)
{
    uint32_t session = e->offloads.table[offload].session;

    e->offloads.spent += units;
    e->offloads.sums.runs++;
    e->offloads.sums.units += units;
    e->session_live[session].handler_units += units;
    histogram_record(&e->offloads.live[offload].runs, units, 1);
}

/* Within a transaction: counts a message of `bytes` bytes that has ended. */
static inline void account_message(struct engine *e, struct offload *o, uint32_t bytes,
                                   const struct handled *h)
{
    struct engine_offloads_view *sums = &e->offloads.sums;
    bool deferred = h->flags & HANDLED_DEFER, failed = h->status < 0;

    set64(e, &o->messages, o->messages + 1);
    set64(e, &o->bytes, o->bytes + bytes);
    if (h->dropped > 0)
        set64(e, &o->dropped, o->dropped + h->dropped);
    if (deferred)
        set64(e, &o->deferred, o->deferred + 1);
    if (failed)
        set64(e, &o->failed, o->failed + 1);
    sums->messages++;
    sums->bytes += bytes;
    sums->dropped += h->dropped;
    sums->deferred += deferred;
    sums->failed += failed;
}

/* Within a transaction: counts and notes a fault that has ended a run. */
static inline void account_fault(struct engine *e, struct offload *o, const struct run *run)
{
    set64(e, &o->faults, o->faults + 1);
    set32(e, &o->fault, run->fault);
    set32(e, &o->fault_stage, run->stage);
    set32(e, &o->fault_place, run->fault_place);
    set64(e, &o->fault_address, run->fault_address);
    e->offloads.sums.faults++;
}

/* Within a transaction: counts sends of a handler that enter their flows. */
static inline void account_sends(struct engine *e, struct offload *o, uint32_t sends)
{
    set64(e, &o->sends, o->sends + sends);
    e->offloads.sums.sends += sends;
}

/* Within a transaction: counts a send that has failed. */
static inline void account_send_failed(struct engine *e, struct offload *o)
{
    set64(e, &o->sends_failed, o->sends_failed + 1);
    e->offloads.sums.sends_failed++;
}

#endif
