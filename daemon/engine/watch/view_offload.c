/*
 * Rows of offloads for the tools, read from the engine's tables while it runs, as in view.c.
 *
 * Thread: any; the progress thread does nothing for it.
 */
#include "daemon/engine/engine.h"

#include <errno.h>
#include "daemon/engine/state/state.h"
#include "daemon/engine/state/table.h"
#include "daemon/handlers/run.h"

#define PEEK(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)

static_assert(HANDLER_COUNTERS == sizeof(((struct view_offload *)0)->counters) / sizeof(uint64_t),
              "a row has all counters");

/* Counts the sends of a context's handlers that have not ended: `queued` is the number of entries
 * in the flows of these sends, `held` is how many of these flows are held. */
static void fill_sends(const struct engine *e, uint32_t session, struct view_offload *v)
{
    uint32_t at = PEEK(e->sessions[session].first_flow);

    for (uint32_t i = 0; at < e->config.flows_max && i < e->config.flows_max; i++) {
        const struct flow *f = &e->flows[at];
        uint64_t head = __atomic_load_n(&f->ops.head, __ATOMIC_ACQUIRE);
        uint64_t entries = PEEK(f->ops.tail) - head;

        if (PEEK(f->owner) == owner_of(OWNER_OFFLOADS, session)) {
            v->queued += entries <= UINT32_MAX ? entries : 0;
            v->held += entries > 0 && PEEK(f->held) != 0;
        }
        at = PEEK(f->next);
    }
}

/* False: the entry is free, or just being changed. */
static bool fill(const struct engine *e, uint32_t offload, struct view_offload *v)
{
    const struct offload *o = &e->offloads.table[offload];
    const struct histogram *runs = &e->offloads.live[offload].runs;
    uint32_t state = PEEK(o->state), session = PEEK(o->session), program = PEEK(o->program);
    uint32_t takes = PEEK(o->takes), flags = PEEK(o->flags);
    uint64_t faults = PEEK(o->faults);

    if (state == OFFLOAD_FREE || session >= e->config.sessions_max || program >= PROGRAMS_MAX)
        return false;
    *v = (struct view_offload){
        .offload = PEEK(o->generation) << OFFLOADS_SHIFT | offload,
        .client = PEEK(e->sessions[session].client),
        .session = session,
        .takes = takes + (flags & ENGINE_OFFLOAD_PLACED ? 1 : 0) +
                 (flags & ENGINE_OFFLOAD_OBSERVE ? 2 : 0),
        .index = takes == OFFLOAD_PUTS ? 0 : PEEK(o->index),
        .region = takes == OFFLOAD_PUTS ? PEEK(o->host.slot) : 0,
        .program = PEEK(e->programs.table[program].generation) << PROGRAMS_SHIFT | program,
        .state = state,
        .messages = PEEK(o->messages),
        .bytes = PEEK(o->bytes),
        .dropped = PEEK(o->dropped),
        .deferred = PEEK(o->deferred),
        .failed = PEEK(o->failed),
        .faults = faults,
        .units = PEEK(o->units),
        .units_p50 = histogram_quantile(runs, 500000),
        .units_p99 = histogram_quantile(runs, 990000),
        .units_max = PEEK(runs->max),
        .sends = PEEK(o->sends),
        .sends_failed = PEEK(o->sends_failed),
        .gets = PEEK(o->gets),
    };
    if (faults > 0) {
        v->fault = run_fault_text((enum run_fault)PEEK(o->fault));
        v->fault_handler = PEEK(o->fault_stage) + UINT64_C(1);
        v->fault_place = PEEK(o->fault_place);
        v->fault_address = PEEK(o->fault_address);
    }
    for (uint32_t i = 0; i < HANDLER_COUNTERS; i++)
        v->counters[i] = PEEK(o->counters[i]);
    fill_sends(e, session, v);
    return true;
}

int engine_view_offloads(const struct engine *e, uint32_t *from, struct view_offload *rows,
                         int room)
{
    int n = 0;

    for (; *from < OFFLOADS_MAX && n < room; ++*from)
        n += fill(e, *from, &rows[n]);
    return n;
}

int engine_view_offload(const struct engine *e, uint32_t session, uint32_t offload,
                        struct view_offload *row)
{
    return fill(e, offload & (OFFLOADS_MAX - 1), row) && row->offload == offload &&
                   row->session == session
               ? 0
               : -ENOENT;
}

void engine_view_offload_sums(const struct engine *e, struct engine_offloads_view *out)
{
    *out = e->offloads.sums;
    if (table_empty(e, TABLE_OFFLOADS))
        return; /* most nodes have no offloads */
    for (uint32_t i = 0; i < OFFLOADS_MAX; i++) {
        uint32_t state = PEEK(e->offloads.table[i].state);

        out->offloads += state != OFFLOAD_FREE;
        out->disabled += state == OFFLOAD_DISABLED;
    }
}
