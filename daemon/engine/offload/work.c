/* A message under way (work.h). Thread: the progress thread. */
#include "daemon/engine/offload/work.h"

#include <errno.h>
#include <string.h>
#include "daemon/engine/offload/account.h"
#include "daemon/engine/offload/puts/collect.h"
#include "daemon/engine/offload/find.h"
#include "daemon/engine/offload/turns.h"
#include "daemon/engine/session/quarantine.h"
#include "daemon/engine/state/doubt.h"

#define CHARGED_TIMES 4u /* bound of the time charged at once, in units of handler_us */

void work_note(const struct work *m)
{
    struct engine *e = m->e;
    struct handled *to = m->noted;

    if (!to->open || to->sequence != m->h.sequence) {
        set32(e, &to->open, m->h.open);
        set32(e, &to->sequence, m->h.sequence);
        set32(e, &to->offload, m->h.offload);
        set32(e, &to->kind, m->h.kind);
        set32(e, &to->total, m->h.total);
        set64(e, &to->id, m->h.id);
        set64(e, &to->place, m->h.place);
        set32(e, &to->slot, m->h.slot);
        set32(e, &to->generation, m->h.generation);
    }
    set32(e, &to->done, m->h.done);
    set32(e, &to->stage, m->h.stage);
    set32(e, &to->flags, m->h.flags);
    set32(e, (uint32_t *)&to->status, (uint32_t)m->h.status);
    set32(e, &to->dropped, m->h.dropped);
}

/* ---- one handler ----------------------------------------------------------------------------- */

static struct handler_packet packet_of(const struct work *m)
{
    struct handler_packet p = {
        .kind = m->h.kind,
        .flags = (m->offset == 0 ? HANDLER_FIRST : 0) | (m->last ? HANDLER_LAST : 0),
        .source = collect_target_of(m->e, m->origin),
        .peer = m->origin,
        .id = m->h.id,
        .offset = m->offset,
        .total = m->h.total,
        .place = m->h.place + m->offset,
        .dropped = m->h.dropped,
    };

    if (m->h.flags & HANDLED_RERUN)
        p.flags |= HANDLER_RERUN;
    if (m->h.flags & HANDLED_STORED)
        p.flags |= HANDLER_PLACED;
    if (m->h.flags & HANDLED_CUT)
        p.flags |= HANDLER_CUT;
    if (m->h.flags & HANDLED_FAILED)
        p.flags |= HANDLER_FAILED;
    if (m->h.kind == HANDLER_GOT)
        p.flags |= HANDLER_PLACED;
    return p;
}

/* Chooses the next handler, by the return value of the one that has run. */
static void advance(struct work *m, uint32_t returned)
{
    uint32_t next = HANDLER_COMPLETION;

    m->h.flags &= ~(uint32_t)HANDLED_RERUN;
    if (returned & HANDLER_PENDING)
        m->h.flags |= HANDLED_PENDING;
    if (m->h.kind == HANDLER_OBSERVED) { /* the get is done */
        m->h.stage = HANDLER_STAGES;
        return;
    }
    switch (returned & HANDLER_RETURN_MASK) {
    case HANDLER_DROP:
        m->h.dropped += m->bytes.data;
        if (m->h.stage == HANDLER_HEADER)
            m->h.flags |= HANDLED_DROPS;
        else if (!m->last)
            next = HANDLER_PAYLOAD;
        break;
    case HANDLER_SUCCESS:
        if (m->h.stage == HANDLER_PAYLOAD && !m->last)
            next = HANDLER_PAYLOAD; /* on the next packet */
        break;
    case HANDLER_PROCESS_DATA:
        next = HANDLER_PAYLOAD;
        break;
    case HANDLER_PROCEED:
    case HANDLER_DEFER:
        m->h.flags |=
            (returned & HANDLER_RETURN_MASK) == HANDLER_DEFER ? HANDLED_DEFER : HANDLED_PROCEED;
        next = HANDLER_STAGES;
        break;
    case HANDLER_FAIL:
        m->h.flags |= HANDLED_FAILED | HANDLED_DROPS;
        m->h.status = -EREMOTEIO;
        break;
    }
    if (m->h.stage == HANDLER_PAYLOAD || next == HANDLER_COMPLETION)
        m->h.done = m->offset + m->bytes.data;
    if (m->h.stage == HANDLER_COMPLETION)
        next = HANDLER_STAGES;
    m->h.stage = offload_stage(m->e, m->o, next);
}

/* Within a transaction: the handler has ended by a fault, which its offload notes. */
static void fault(struct work *m, const struct run *run)
{
    struct engine *e = m->e;
    bool limit = run->fault == RUN_OUT_OF_UNITS || run->fault == RUN_OUT_OF_TIME;

    account_fault(e, m->o, run);
    if (limit || !(m->o->flags & ENGINE_OFFLOAD_KEEP))
        set32(e, &m->o->state, OFFLOAD_DISABLED);
    m->h.flags |= HANDLED_FAULT;
    m->h.status = -EREMOTEIO;
    m->h.stage = HANDLER_STAGES;
}

/* After the run's rollback: does what the handler has decided, in a transaction of its own. */
static void settle(struct work *m, const struct run *run)
{
    struct engine *e = m->e;
    bool sent = run->fault == RUN_NO_FAULT && run->returned != HANDLER_FAIL;

    set64(e, &m->o->units, m->o->units + run->used);
    if (sent) {
        collect_enter(e);
        if (e->offloads.collected->replied)
            m->h.flags |= HANDLED_REPLIED;
    }
    if (run->fault != RUN_NO_FAULT)
        fault(m, run);
    else
        advance(m, (uint32_t)run->returned);
    work_note(m);
    commit(e);
    if (sent)
        collect_entered(e);
}

void work_memory_gone(struct work *m)
{
    client_quarantine(m->e, m->e->sessions[m->session].client, QUARANTINE_MEMORY);
    m->h.stage = HANDLER_STAGES;
    m->h.status = -EHOSTDOWN;
}

bool work_memory_faulted(const struct work *m)
{
    const struct engine_host *host = m->e->host;

    return host->faulted && host->faulted(host->context, m->e->sessions[m->session].client);
}

int work_run(struct work *m)
{
    struct engine *e = m->e;
    struct packet_bytes bytes = m->bytes;
    struct handler_packet packet;
    struct run run;
    int r;

    collect_begin(
        e, &(struct sender){.offload = m->offload,
                            .inflow = m->inflow,
                            .peer = m->peer,
                            .origin = m->origin,
                            .may_reply = !(m->h.flags & (HANDLED_REPLIED | HANDLED_CUT)) &&
                                         work_wants_reply(m),
                            .held = m->event > WORK_EVENT_SIZE ? m->event : WORK_EVENT_SIZE});
    packet = packet_of(m);
    if (m->h.flags & HANDLED_CUT)
        bytes.data = 0;
    if (m->h.kind == HANDLER_GOT)
        doubt_begin_get(e, m->h.sequence);
    else
        doubt_begin(e, m->inflow, m->h.sequence);
    r = offload_run(e, m->offload, (enum handler_stage)m->h.stage, &packet, &bytes, &run);
    arena_rollback(&e->arena); /* the room; each event gets it again */
    account_run(e, m->offload, run.used);
    if (m->units == 0)
        m->begun = run.begun;
    m->units += run.used;
    m->ran = true;
    m->latest = run.begun;
    doubt_end(e);
    if (r < 0 || work_memory_faulted(m)) {
        work_memory_gone(m);
        commit(e);
        return 0;
    }
    if (run.fault == RUN_NO_FAULT && run.returned == HANDLER_AGAIN) {
        m->h.flags |= HANDLED_RERUN;
        work_note(m);
        commit(e);
        return -ENOSPC;
    }
    settle(m, &run);
    return 0;
}

void work_charge(struct work *m, uint32_t client)
{
    struct engine *e = m->e;
    uint64_t used = m->units, most = CHARGED_TIMES * 1000 * (uint64_t)e->config.handler_us;
    uint64_t units = used;

    m->units = 0;
    if (used == 0 || !handlers_in_turns(e, client))
        return;
    if (e->host->clock) {
        uint64_t took = (e->host->clock(e->host->context) - m->begun) / HANDLER_UNIT_NS;

        took = took < most / HANDLER_UNIT_NS ? took : most / HANDLER_UNIT_NS;
        units = took > units ? took : units;
    }
    e->offloads.spent += units - used;
    handlers_charge(e, client, units);
}

/* ---- between handlers ------------------------------------------------------------------------ */

bool work_client_lives(const struct work *m)
{
    return m->e->clients[m->e->sessions[m->session].client].quarantine == QUARANTINE_NONE;
}

void work_resume(struct work *m)
{
    m->h = *m->noted;
    m->offload = offload_of_handle(m->e, m->session, m->h.offload);
    m->o = m->offload == NONE ? NULL : &m->e->offloads.table[m->offload];
}

bool work_is_untouched(const struct work *m)
{
    if (m->in->in_doubt && m->in->doubt == m->h.sequence)
        return false;
    return m->h.stage == offload_stage(m->e, m->o, HANDLER_HEADER) && m->h.done == 0 &&
           !(m->h.flags & (HANDLED_RERUN | HANDLED_CUT));
}

void work_cut(struct work *m)
{
    m->h.flags |= HANDLED_CUT;
    if (work_in_packets(m)) {
        m->h.dropped += m->h.total - m->h.done;
        m->h.done = m->h.total;
        m->h.status = m->h.status < 0 ? m->h.status : -ECONNABORTED;
    } else {
        m->h.dropped = m->h.total;
    }
    m->h.stage = offload_stage(m->e, m->o, HANDLER_COMPLETION);
}

/* ---- the end --------------------------------------------------------------------------------- */

static enum offload_event event_kind(const struct work *m)
{
    if (m->h.flags & HANDLED_FAULT)
        return OFFLOAD_FAULT;
    return m->h.status < 0 || m->h.flags & HANDLED_CUT ? OFFLOAD_FAILED : OFFLOAD_ENDED;
}

bool work_event_due(const struct work *m)
{
    if (!m->o)
        return false;
    return event_kind(m) != OFFLOAD_ENDED ||
           !(m->o->flags & ENGINE_OFFLOAD_QUIET || m->h.flags & HANDLED_PENDING);
}

/* The id in the event: the first argument, or 0; the id of a put or a get. */
static uint64_t event_id(const struct work *m)
{
    uint64_t id = 0;

    if (m->h.kind != HANDLER_MESSAGE)
        return m->h.id;
    if (m->h.flags & HANDLED_STORED)
        return m->h.argument;
    if (m->a->message.arguments > 0)
        memcpy(&id, m->a->id + sizeof(struct message), sizeof(id));
    return id;
}

void work_post_event(const struct work *m, const struct event_room *where)
{
    bool faulted = m->h.flags & HANDLED_FAULT;
    const struct offload_word word = {
        .cookie = m->o->cookie,
        .id = event_id(m),
        .value = faulted ? m->o->fault_address : m->h.total - m->h.dropped,
        .place = faulted ? m->o->fault_place : 0,
        .stage = faulted ? (uint16_t)m->o->fault_stage : 0,
        .fault = faulted ? (uint16_t)m->o->fault : 0,
    };
    struct event_draft draft = {.head = {.size = WORK_EVENT_SIZE,
                                         .kind = EVENT_OFFLOAD,
                                         .op = (uint8_t)event_kind(m),
                                         .id_len = sizeof(word),
                                         .status = m->h.status,
                                         .origin = m->peer,
                                         .peer = m->origin,
                                         .bytes = m->h.total,
                                         .sequence = m->h.sequence},
                                .rest = (const uint8_t *)&word,
                                .rest_len = sizeof(word),
                                .front = sizeof(struct event_record)};

    session_deliver(m->e, m->session, where, &draft);
}

void work_close(const struct work *m)
{
    if (m->o)
        account_message(m->e, m->o, m->h.total, &m->h);
    set32(m->e, &m->noted->open, 0);
}
