/* One run (run.h). Thread: the progress thread. */
#include "daemon/engine/offload/run.h"

#include <errno.h>
#include <string.h>
#include "daemon/engine/offload/puts/collect.h"
#include "daemon/engine/offload/program.h"
#include "daemon/engine/peer/region.h"
#include "daemon/engine/watch/probes.h"
#include "daemon/engine/watch/trace.h"
#include "daemon/handlers/vm.h"

/* The client's number in runs; 0 is no client. */
static uint64_t run_client(uint32_t client)
{
    return (uint64_t)client + 1;
}

void offload_new_client(struct engine *e, uint32_t client)
{
    memset(e->offloads.stacks + (uint64_t)client * HANDLER_STACK_BYTES, 0, HANDLER_STACK_BYTES);
    if (e->offloads.vm->client == run_client(client))
        e->offloads.vm->client = 0;
}

uint32_t offload_stage(const struct engine *e, const struct offload *o, uint32_t stage)
{
    const struct handler_image *image = program_image(e, o->program);

    while (stage < HANDLER_STAGES && image->entry[stage] == HANDLER_NONE)
        stage++;
    return stage;
}

uint8_t *offload_memory(const struct engine *e, uint32_t session, const struct engine_range *range)
{
    uint64_t length;
    uint8_t *base;

    if (region_memory(e, session, range->slot, range->generation, 0, &base, &length) < 0)
        return NULL;
    return range->offset <= length && range->length <= length - range->offset ? base + range->offset
                                                                              : NULL;
}

/* ---- the interpreter's host ------------------------------------------------------------------ */

static uint64_t host_clock(void *engine)
{
    const struct engine *e = engine;

    return e->host->clock(e->host->context);
}

static uint64_t host_switches(void *engine)
{
    const struct engine *e = engine;

    return e->host->switches ? e->host->switches(e->host->context) : 0;
}

static uint64_t host_now(void *engine)
{
    return ((const struct engine *)engine)->now;
}

/* For probes only: the trace has no row for a handler's own numbers. */
static void host_trace(void *engine, uint64_t a, uint64_t b)
{
    const struct engine *e = engine;

    probe_handler_trace(e->offloads.table[e->offloads.collected->sender.offload].session, a, b);
}

static const struct run_host timed = {.clock = host_clock,
                                      .switches = host_switches,
                                      .now = host_now,
                                      .send = collect_send,
                                      .target_of = collect_target_of,
                                      .counter = collect_counter,
                                      .counter_set = collect_counter_set,
                                      .trace = host_trace};
static const struct run_host untimed = {.now = host_now,
                                        .send = collect_send,
                                        .target_of = collect_target_of,
                                        .counter = collect_counter,
                                        .counter_set = collect_counter_set,
                                        .trace = host_trace};

/* ---- windows --------------------------------------------------------------------------------- */

/* Sets the window, unless the range is empty. False: its memory is not there. */
static bool window_of(const struct engine *e, uint32_t session, const struct engine_range *range,
                      enum handler_window window, struct windows *w)
{
    uint8_t *at;

    if (range->length == 0)
        return true;
    at = offload_memory(e, session, range);
    if (!at)
        return false;
    window_set(w, window, at, range->length);
    return true;
}

static bool windows_of(const struct engine *e, const struct offload *o,
                       const struct handler_packet *packet, const struct packet_bytes *bytes,
                       struct windows *w)
{
    uint32_t client = e->sessions[o->session].client;

    windows_clear(w);
    window_set(w, HANDLER_STACK, e->offloads.stacks + (uint64_t)client * HANDLER_STACK_BYTES,
               HANDLER_STACK_BYTES);
    window_set_constant(w, HANDLER_CONTEXT, packet, sizeof(*packet));
    window_set_constant(w, HANDLER_PACKET, bytes->at,
                        bytes->data_at + (packet->flags & HANDLER_PLACED ? 0 : bytes->data));
    return window_of(e, o->session, &o->state_memory, HANDLER_STATE, w) &&
           window_of(e, o->session, &o->host, HANDLER_HOST, w) &&
           window_of(e, o->session, &o->scratch, HANDLER_SCRATCH, w);
}

/* How many more times the offload's next run may use its full time. */
static uint32_t again_of(const struct offload_live *live)
{
    return live->in_time < OFFLOAD_IN_TIME ? OFFLOAD_AGAIN : OFFLOAD_AGAIN_MOST;
}

/* Notes how a run has used its time: it might use that `again` more times, and did not use `left`
 * of them. */
static void note_time(struct offload_live *live, uint32_t again, uint32_t left)
{
    if (again - left > OFFLOAD_AGAIN)
        live->in_time = 0;
    else if (live->in_time < OFFLOAD_IN_TIME)
        live->in_time++;
}

int offload_run(struct engine *e, uint32_t offload, enum handler_stage stage,
                struct handler_packet *packet, const struct packet_bytes *bytes, struct run *run)
{
    const struct offload *o = &e->offloads.table[offload];
    struct offload_live *live = &e->offloads.live[offload];
    uint32_t again = again_of(live);

    packet->header = handler_address(HANDLER_PACKET, 0);
    packet->header_length = bytes->header;
    packet->data = packet->flags & HANDLER_PLACED ? handler_address(HANDLER_HOST, packet->place)
                                                  : handler_address(HANDLER_PACKET, bytes->data_at);
    packet->length = bytes->data;
    if (packet->kind == HANDLER_GOT)
        packet->length = packet->total - packet->dropped;
    *run = (struct run){.image = program_image(e, o->program),
                        .stage = stage,
                        .host = e->host->clock ? &timed : &untimed,
                        .self = e,
                        .client = run_client(e->sessions[o->session].client),
                        .units = e->config.handler_units,
                        .time = UINT64_C(1000) * e->config.handler_us,
                        .again = again,
                        .targets = o->targets};
    if (!windows_of(e, o, packet, bytes, &run->windows))
        return -EHOSTDOWN;
    probe_handler_begin(o->session, offload_handle_of(o, offload), stage);
    vm_run(e->offloads.vm, run);
    run->used += o->targets / RUN_TARGETS; /* the search for the packet's source */
    note_time(live, again, run->again);
    probe_handler_end(o->session, offload_handle_of(o, offload), stage, run->used, run->fault);
    if (trace_on(e))
        trace_handler(e, o->session, offload_handle_of(o, offload), run, packet->length);
    return 0;
}
