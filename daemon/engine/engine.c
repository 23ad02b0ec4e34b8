/*
 * The engine: opening, one step, sleeping.
 * Thread: the progress thread.
 */
#include "daemon/engine/engine.h"

#include <errno.h>
#include <string.h>
#include "daemon/engine/session/client.h"
#include "shm_ring/doorbell.h"
#include "shm_ring/fault.h"
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/peer/region.h"
#include "daemon/engine/peer/keepalive.h"
#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/ledger/notes.h"
#include "daemon/engine/offload/find.h"
#include "daemon/engine/offload/gets.h"
#include "daemon/engine/offload/got.h"
#include "daemon/engine/offload/program.h"
#include "daemon/engine/offload/table.h"
#include "daemon/engine/state/notice.h"
#include "daemon/engine/peer/peer.h"
#include "daemon/engine/ops/owner.h"
#include "daemon/engine/session/session.h"
#include "daemon/engine/watch/trace.h"
#include "daemon/engine/ops/turn.h"
#include "daemon/engine/session/quarantine.h"
#include "daemon/engine/peer/marks.h"
#include "daemon/engine/peer/remote.h"
#include "daemon/engine/peer/rings.h"
#include "daemon/engine/sweep.h"
#include "daemon/engine/state/held.h"
#include "daemon/engine/state/lists.h"
#include "daemon/engine/state/doubt.h"
#include "daemon/engine/state/table.h"
#include "daemon/engine/layout.h"
#include "daemon/engine/team/progress.h"
#include "daemon/engine/team/team.h"

#define FABRIC_BATCH 64
/* Caps the length up to which a fabric keeps writes in order; longer than any write. */
#define ORDERED_MOST (UINT64_C(1) << 48)
/* The time between looks at how far clients with spilled events have read, and at the rings of
 * clients that may have missed that the daemon sleeps. */
#define LOOK_NS 1000000u

/* ---- opening --------------------------------------------------------------------------------- */

static void arena_fill(struct engine *e)
{
    *e->own_flows = NONE;
    e->arena.header->pairs = e->config.flows_max;
    e->arena.header->binds = e->config.remotes_max;
    chunk_pool_init(&e->pool, e->config.chunks_max);
    atomic_signal_fence(memory_order_seq_cst);
    *(volatile uint64_t *)&e->arena.header->magic = ARENA_MAGIC;
}

/* Sets those fields of the arena that mean nothing in a new process to "nothing is under way". */
static void arena_inherit(struct engine *e)
{
    const struct engine_config *c = &e->config;
    const uint32_t flows = table_bound(e, TABLE_FLOWS);

    for (uint32_t i = 0; i < flows; i++)
        flow_live_init(e, i);
    for (uint32_t i = 0; i < flows; i++) {
        struct flow *f = &e->flows[i];

        if (f->state == FLOW_FREE)
            continue;
        set64(e, &f->started, f->staged);
        commit(e);
        f->posted = 0;
        if (f->owner != OWNER_GONE)
            lists_inherit_flow(e, i);
        if (f->owner != OWNER_GONE && owner_row(e, f->owner)->inherit)
            owner_row(e, f->owner)->inherit(e, owner_handle(f->owner), &f->ops);
        for (uint64_t slot = f->ops.head; slot < f->ops.tail;) {
            struct op *op = flow_op(e, f, slot);

            op->pending = 0;
            op->nonce = UINT16_MAX;
            slot += op->span;
        }
    }
    for (uint32_t i = 0; i < table_bound(e, TABLE_REMOTES); i++)
        if (e->remotes[i].state != REMOTE_FREE)
            remote_joins(e, i);
    for (uint32_t i = 0; i < flows; i++)
        if (e->flows[i].state != FLOW_FREE)
            flow_enters(e, i);
    for (uint32_t i = 0; i < table_bound(e, TABLE_INFLOWS); i++)
        if (e->inflows[i].state != INFLOW_FREE) {
            inflow_enters(e, i);
            if (e->inflows[i].session != NONE)
                lists_inherit_inflow(e, i);
        }
    grants_inherit(e);
    held_inherit(e);
    programs_inherit(e);
    for (uint32_t i = 0; i < c->sessions_max; i++) {
        if (e->sessions[i].state == SESSION_FREE)
            continue;
        e->open_sessions[e->open_count++] = i;
        session_enters(e, i);
        e->spilling += e->sessions[i].spill_bytes > 0;
    }
    /* A REVOKE that was requested is among the notes; notes and sent records wait for the links. */
    for (uint32_t i = 0; i < c->peers; i++)
        if (e->peers[i].link_id != 0)
            peer_know(e, i);
    for (uint32_t i = 0; i < c->peers; i++)
        if (e->peer_live[i].known)
            notes_inherit(e, i);
    teams_inherit(e);
    for (uint32_t i = 0; i < c->peers; i++) {
        if (!e->peer_live[i].known)
            continue;
        if (e->peers[i].discarding)
            peer_activate(e, i);
        else if (peer_pending(e, i) || (e->peers[i].their_id != 0 && i != c->self))
            peer_want(e, i); /* a peer that remembers us may have records for us */
    }
    for (uint32_t i = 0; i < flows; i++) {
        if (e->flows[i].state != FLOW_FREE && e->flows[i].owner != OWNER_GONE)
            turn_join(e, i, owner_client(e, e->flows[i].owner));
        flow_ready(e, i);
        /* A held flow has nothing to send, but waits for its GO. */
        if (e->flows[i].state != FLOW_FREE && queue_count(&e->flows[i].ops) > 0)
            peer_want(e, e->flows[i].peer);
    }
    offloads_inherit(e);
    doubt_inherit(e);
    client_inherit(e);
    for (uint32_t t = 0; t < TABLES; t++)
        for (uint32_t i = 0; i < table_bound(e, t); i++)
            table_leaves(e, t,
                         i); /* the first sweep takes entries that do not leave off the list */
}

bool engine_arena_fits(const struct engine_config *config, const void *arena)
{
    struct engine_config checked = *config;

    return engine_config_check(&checked) == 0 &&
           arena_fits(arena, engine_arena_bytes(&checked), layout_fingerprint(&checked));
}

int engine_arena_sizes(const void *arena, uint32_t *pairs, uint32_t *binds)
{
    const struct arena_header *h = arena;

    if (h->magic != ARENA_MAGIC || h->version != ARENA_VERSION)
        return -EUCLEAN;
    *pairs = h->pairs;
    *binds = h->binds;
    return 0;
}

int engine_open(const struct engine_config *config, void *arena, void *memory,
                struct fabric *fabric, const struct engine_host *host, uint64_t now,
                struct engine **out)
{
    struct engine *e = memory;
    int r;

    e->config = *config;
    r = engine_config_check(&e->config);
    if (r < 0)
        return r;
    e->fabric = fabric;
    e->host = host;
    e->owners[OWNER_SESSION] = &owner_session;
    e->owners[OWNER_OFFLOADS] = &owner_offloads;
    e->now = now;
    arena_layout(e, &e->config, arena);
    private_layout(e, &e->config, memory);
    e->free_turns = NONE;
    handlers_open(e);
    gets_open(e);
    e->teams.call.team = NONE;
    e->offloads.cut_turns.next = NONE;
    e->latency_count = 1;
    e->chunks_keep = e->config.chunks_max / 8;
    e->message_max = message_longest(&e->config);
    keepalive_open(e);
    if (fabric->traits.ordered_write_max >= record_longest(&e->config))
        e->ordered_max = fabric->traits.ordered_write_max < ORDERED_MOST
                             ? fabric->traits.ordered_write_max
                             : ORDERED_MOST;
    for (uint32_t rails = fabric->traits.rails; rails > 1 && 1u << e->rails_shift < RAILS_MAX;
         rails /= 2)
        e->rails_shift++;
    e->piece_shift = (uint32_t)__builtin_ctz(e->config.piece_bytes);
    e->pool.arena = &e->arena;
    r = arena_open(&e->arena, arena, engine_arena_bytes(&e->config),
                   layout_fingerprint(&e->config));
    if (r < 0)
        return r;
    if (r == 1)
        arena_fill(e);
    peer_know(e, e->config.self);
    if (r == 0)
        arena_inherit(e);
    e->arena.header->incarnation++;
    if (host->fence)
        e->arena.header->fenced = 1;
    else
        e->unfenced = e->arena.header->fenced;
    r = fabric_mem_add(fabric, e->heap.base, e->config.ledger_bytes, FABRIC_LOCAL,
                       cookie_of(COOKIE_HEAP, 0));
    if (r < 0)
        return r;
    *out = e;
    return 0;
}

/* ---- the clock ------------------------------------------------------------------------------- */

/* Brings e->now up to date after something has happened, for what follows from it. */
static void look_at_clock(struct engine *e)
{
    uint64_t now = e->host->clock ? e->host->clock(e->host->context) : 0;

    if (now > e->now)
        e->now = now;
}

/* Ends a part of the step, and notes which one was the slowest. */
static void part_ends(struct engine *e, enum engine_part part)
{
    uint64_t took;

    look_at_clock(e);
    took = e->now - e->part_at;
    e->part_at = e->now;
    e->part = part;
    if (took <= e->slowest_ns)
        return;
    e->slowest_ns = took;
    e->slowest = part;
}

enum engine_part engine_slowest(const struct engine *e, uint64_t now, uint64_t *ns)
{
    uint64_t rest = now > e->part_at ? now - e->part_at : 0;

    *ns = rest > e->slowest_ns ? rest : e->slowest_ns;
    if (rest <= e->slowest_ns)
        return e->slowest;
    /* After a poll with events, peers work on these; a step without events ends with its poll. */
    return e->part == ENGINE_POLL ? ENGINE_PEERS : ENGINE_POLL;
}

/* ---- fabric events --------------------------------------------------------------------------- */

static void heap_added(struct engine *e, const struct fabric_event *event)
{
    if (event->status < 0) {
        notice_push(
            e, &(struct engine_notice){.kind = ENGINE_LEDGERS_FAILED, .status = event->status});
        return;
    }
    e->heap_memory = event->memory;
    e->heap_registered = true;
}

static void completed(struct engine *e, const struct fabric_event *event)
{
    uint64_t value = event->cookie & ((UINT64_C(1) << 60) - 1), low;
    uint32_t flow;

    switch (event->cookie >> 60) {
    case COOKIE_OP:
        low = cookie_op(event->cookie, &flow);
        flow_fabric_done(e, flow, low, event->status);
        break;
    case COOKIE_RUN:
        ledger_written(e, (uint32_t)(value >> 16), (uint16_t)value, event->status);
        break;
    case COOKIE_HEAP:
        heap_added(e, event);
        break;
    case COOKIE_RING:
    case COOKIE_NEXT:
        ring_added(e, (uint32_t)value, event->cookie >> 60 == COOKIE_NEXT, event->status,
                   &event->memory);
        break;
    case COOKIE_PARTING:
        ring_dropped(e, (uint32_t)(value / PARTING_RINGS), value % PARTING_RINGS, event->status);
        break;
    case COOKIE_SEGMENT:
        if (event->kind == FABRIC_ADDED)
            segment_added(e, (uint32_t)value, event->status, &event->memory);
        else
            segment_dropped(e, (uint32_t)value, event->status);
        break;
    }
}

/* An announced write has been placed. Its immediate data names the writer; where the fabric knows
 * the writer, both must agree. */
static void arrived(struct engine *e, const struct fabric_event *event)
{
    uint32_t peer = wire_immediate_node(event->immediate);
    int r;

    if (event->peer != FABRIC_UNKNOWN && event->peer != peer) {
        peer = event->peer;
        r = -EPROTO;
    } else {
        r = ledger_arrived(e, event->immediate);
    }
    if (r < 0 && peer < e->config.peers)
        peer_broken(e, peer, r);
}

static int fabric_step(struct engine *e)
{
    struct fabric_event events[FABRIC_BATCH];
    int n = fabric_poll(e->fabric, events, FABRIC_BATCH);

    if (n > 0)
        part_ends(e, ENGINE_POLL);
    for (int i = 0; i < n; i++) {
        const struct fabric_event *event = &events[i];

        if (event->kind == FABRIC_ARRIVED) {
            arrived(e, event);
        } else if (event->kind == FABRIC_BROKEN) {
            if (event->peer < e->config.peers)
                peer_broken(e, event->peer, event->status);
        } else {
            completed(e, event);
        }
    }
    if (n >= 0)
        return n;
    if (!e->fabric_failed)
        notice_push(e, &(struct engine_notice){.kind = ENGINE_FABRIC_FAILED, .status = n});
    e->fabric_failed = true;
    return 0;
}

/* ---- one step -------------------------------------------------------------------------------- */

static void publish(struct engine *e)
{
    if (e->dirty_count == 0)
        return;
    e->published = true;
    /* Events are shown before the counts of ended operations: a thread that sees the end of an
     * operation then finds its event, even in another context. */
    sessions_show(e);
    FAULT(EVENTS_SHOWN);
    while (e->dirty_count > 0)
        session_publish(e, e->dirty[--e->dirty_count]);
}

/* Quarantines clients whose memory has faulted. The fabric, the intake of a ring, or a packed put
 * may have touched the memory, so all clients are looked at, and all teams. */
static void faults_step(struct engine *e)
{
    if (!e->host->any_faulted || !e->host->any_faulted(e->host->context))
        return;
    for (uint32_t i = 0; i < e->config.clients_max; i++)
        if (e->host->faulted(e->host->context, i))
            client_quarantine(e, i, QUARANTINE_MEMORY);
    teams_find_faults(e);
}

/*
 * A step's budget grows with the number of contexts: a client that gets many events at a time is
 * woken seldom, and waking is the main cost when many clients share few processors. The budget is
 * bounded, because a record that comes alone waits until the step before it has ended.
 */
#define TAKE_BUDGETS 4  /* for the records of one context in a step; as many for its replies */
#define STEP_BUDGETS 32 /* for the records of all contexts in a step */
#define MUCH_WORK    16 /* records and operations after which a look at the clock is no cost */
#define PEER_BUDGETS 16 /* for all peers, one for each context; a peer gets at least one */

/* Takes a bounded share from each context. Where the budget ends, the next step resumes (round
 * robin). */
static int sessions_step(struct engine *e, int budget)
{
    int work = 0;

    if (e->take_first >= e->open_count)
        e->take_first = 0;
    for (uint32_t left = e->open_count; left > 0 && work < STEP_BUDGETS * budget; left--) {
        work += session_take(e, e->open_sessions[e->take_first], TAKE_BUDGETS * budget);
        e->take_first = e->take_first + 1 < e->open_count ? e->take_first + 1 : 0;
    }
    return work;
}

/* Advances the active peers; there must be at least one. */
static int peers_step(struct engine *e, int budget, uint64_t *deadline)
{
    uint32_t count = e->active_count;
    uint32_t budgets = e->open_count < PEER_BUDGETS ? e->open_count : PEER_BUDGETS;
    int work = 0;

    if (budgets > count)
        budget = budget * (int)budgets / (int)count;
    /* Peers that stay active are put after `count`, then moved to the front. */
    for (uint32_t i = 0; i < count; i++) {
        uint32_t peer = e->active[i];

        e->peer_live[peer].active = false;
        work += peer_step(e, peer, budget, deadline);
    }
    e->active_count -= count;
    if (e->active_count > 0)
        memmove(e->active, e->active + count, e->active_count * sizeof(e->active[0]));
    return work;
}

/* Activates the peers whose time has come. */
static void peers_wake(struct engine *e)
{
    while (due_next(&e->resting) <= e->now)
        peer_activate(e, due_take(&e->resting));
}

int engine_step(struct engine *e, uint64_t now, int budget, uint64_t *deadline)
{
    uint64_t received = e->fabric->received;
    int work, n;

    e->now = e->part_at = now;
    e->slowest_ns = e->part = 0;
    e->slowest = ENGINE_POLL;
    e->published = false;
    e->offloads.spent = e->offloads.spent_on_cuts = 0;
    e->steps++;
    *deadline = UINT64_MAX;
    /* New submissions leave before the fabric is looked at, which costs system calls. Arrivals from
     * the fabric are shown to clients before anything else is sent. */
    work = sessions_step(e, budget);
    if (work > 0)
        part_ends(e, ENGINE_INTAKE);
    peers_wake(e);
    n = e->active_count > 0 ? peers_step(e, budget, deadline) : 0;
    work += n;
    if (n > MUCH_WORK)
        part_ends(e, ENGINE_PEERS);
    n = fabric_step(e);
    if (n > 0) {
        publish(e);
        *deadline = UINT64_MAX;
        work += n;
        if (e->active_count > 0)
            work += peers_step(e, budget, deadline);
    } else if (e->fabric->received != received) {
        work++; /* a peer's read was served, which brings no event: the next one may follow */
    }
    if (due_next(&e->resting) < *deadline)
        *deadline = due_next(&e->resting);
    keepalive_step(e, deadline);
    if (e->spilling > 0) {
        for (uint32_t i = 0; i < e->open_count; i++)
            work += session_drain_spill(e, e->open_sessions[i]);
        if (e->spilling > 0 && now + LOOK_NS < *deadline)
            *deadline = now + LOOK_NS;
    }
    offload_try_again(e, deadline);
    handlers_go_on(e, deadline);
    work += got_step(e); /* a turn that was given just now serves gets first */
    publish(e);
    if (trace_on(e))
        trace_drained(e);
    faults_step(e);
    if (e->drop_at > 0 && e->now >= e->drop_at) {
        e->drop_at = 0;
        e->sweep = true;
    }
    if (e->drop_at > 0 && e->drop_at < *deadline)
        *deadline = e->drop_at;
    if (e->unfenced && now + LOOK_NS < *deadline)
        *deadline = now + LOOK_NS;
    if (e->sweep || e->sweeping) {
        part_ends(e, e->part == ENGINE_POLL ? ENGINE_PEERS : ENGINE_POLL);
        sweep(e);
        publish(e);
        part_ends(e, ENGINE_SWEEP);
        work++;
    }
    return work;
}

void engine_hasten(struct engine *e, bool hasten)
{
    e->hasten = hasten;
}

bool engine_published(const struct engine *e)
{
    return e->published;
}

/* Whether all clients whose bells were announced just now fence for themselves. Otherwise a system
 * call fences for them, which interrupts every processor that runs a client, and takes 1 to 60 us,
 * by the machine. */
static bool announced_to_fenced(struct engine *e)
{
    bool all = true;

    doorbell_fence(); /* S */
    for (uint32_t i = 0; i < e->open_count; i++) {
        struct session_live *live = &e->session_live[e->open_sessions[i]];

        if (live->announced && !doorbell_is_fenced(&live->shared->waits.fenced))
            all = false;
        live->announced = false;
    }
    return all;
}

/* Arms the doorbells that are not armed. Where the process that opened a session could not fence,
 * its client fences for itself, which does no harm here. In the opposite case clients rely on
 * fences that this process cannot give: then e->unfenced makes the thread look at the rings from
 * time to time. */
static int announce(struct engine *e)
{
    bool announced = false;

    e->armed = true;
    for (uint32_t i = 0; i < e->open_count; i++) {
        struct session_live *live = &e->session_live[e->open_sessions[i]];

        if (!live->attached || doorbell_stands(&live->shared->submit_bell, DOORBELL_FD))
            continue;
        if (!e->host->fence) {
            doorbell_arm(&live->shared->submit_bell, DOORBELL_FD);
            continue;
        }
        doorbell_announce(&live->shared->submit_bell, DOORBELL_FD);
        live->announced = announced = true;
    }
    return announced && !announced_to_fenced(e) ? e->host->fence(e->host->context) : 0;
}

int engine_arm(struct engine *e)
{
    if (announce(e) < 0) {
        engine_disarm(e);
        return -EAGAIN;
    }
    for (uint32_t i = 0; i < e->open_count; i++) {
        struct session_live *live = &e->session_live[e->open_sessions[i]];
        const struct session *s = &e->sessions[e->open_sessions[i]];

        if (live->attached && s->state == SESSION_OPEN &&
            e->clients[s->client].quarantine == QUARANTINE_NONE &&
            ((!live->stalled && ring_pending(&live->submit)) ||
             (!live->answer_stalled && ring_pending(&live->reply_submit)))) {
            engine_disarm(e);
            return -EAGAIN;
        }
    }
    return 0;
}

void engine_disarm(struct engine *e)
{
    if (!e->armed)
        return;
    e->armed = false;
    for (uint32_t i = 0; i < e->open_count; i++)
        if (e->session_live[e->open_sessions[i]].attached)
            doorbell_disarm(&e->session_live[e->open_sessions[i]].shared->submit_bell);
}
