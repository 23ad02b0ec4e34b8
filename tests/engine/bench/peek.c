/* Views of the engine's tables, and changes to them (peek.h). Thread: the one that steps the
 * engine. */
#include "tests/engine/bench/peek.h"

#include <stddef.h>
#include "daemon/engine/offload/gets.h"
#include "daemon/engine/offload/turns.h"
#include "daemon/engine/state/held.h"
#include "daemon/engine/state/table.h"
#include "daemon/engine/ledger/notes.h"
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ops/op.h"
#include "daemon/engine/ops/owner.h"
#include "daemon/engine/team/blocks.h"
#include "daemon/engine/team/instance.h"
#include "daemon/handlers/vm.h"

/* ---- entries of tables ----------------------------------------------------------------------- */

struct peek_session peek_session(const struct engine *e, uint32_t session)
{
    const struct session *s = &e->sessions[session];

    return (struct peek_session){.state = s->state,
                                 .spill_bytes = s->spill_bytes,
                                 .ends_due = s->ends_due,
                                 .replied = s->reply_tail > 0,
                                 .reply_dropped = s->reply_released > 0,
                                 .chunks = e->session_live[session].chunks};
}

struct peek_remote peek_remote(const struct engine *e, uint32_t remote)
{
    const struct remote *r = &e->remotes[remote];

    return (struct peek_remote){
        .state = r->state, .asked = r->asked, .revoke_due = r->revoke_due != 0};
}

struct peek_flow peek_flow(const struct engine *e, uint32_t flow)
{
    const struct flow *f = &e->flows[flow];

    return (struct peek_flow){.state = f->state,
                              .peer = f->peer,
                              .started = f->started,
                              .staged = f->staged,
                              .posted = f->posted,
                              .held = f->held != 0,
                              .epoch = f->epoch,
                              .replies_expected = f->replies_expected};
}

struct peek_inflow peek_inflow(const struct engine *e, uint32_t inflow)
{
    const struct inflow *f = &e->inflows[inflow];

    return (struct peek_inflow){.state = f->state,
                                .peer = f->peer,
                                .has_reply_flow = f->reply_flow[REPLIER_CLIENT] != NONE};
}

struct peek_region peek_region(const struct engine *e, uint32_t region)
{
    const struct region *r = &e->regions[region];

    return (struct peek_region){.state = r->state, .client = r->client, .cookie = r->cookie};
}

struct peek_peer peek_peer(const struct engine *e, uint32_t peer)
{
    const struct peer *p = &e->peers[peer];
    const struct peer_live *live = &e->peer_live[peer];
    const struct notes *notes = &p->notes[NOTES_OTHERS];
    struct peek_peer view = {.link = live->link,
                             .staged = p->tx_tail,
                             .posted = live->out.sent,
                             .consumed = p->rx_consumed,
                             .acked = live->in.acked,
                             .runs = live->out.run,
                             .nonces_free = live->out.nonces_free,
                             .voids = live->out.voids,
                             .notes_waiting = notes->queue.tail - notes->staged,
                             .answers_owed = p->answers_owed,
                             .ring_offered = live->in.next_ring != NULL,
                             .drops = live->drops,
                             .pause_ns = live->pause_ns,
                             .payload_bytes = live->bytes,
                             .ledger_bytes = live->in.size + live->out.size};

    view.overtaken =
        live->in.arrived != 0 && !(live->in.arrived >> (live->in.run % RUN_WINDOW) & 1);
    for (uint32_t i = 0; i < PARTING_RINGS; i++)
        view.rings_leaving += live->parting[i].ring != NULL;
    return view;
}

enum segment_state peek_segment(const struct engine *e, uint32_t segment)
{
    return e->segments[segment].state;
}

bool peek_grant_given(const struct engine *e)
{
    return *e->unused[TABLE_GRANTS].fresh > 0 && e->grants[0].region != NONE;
}

bool peek_grant_asked(const struct engine *e)
{
    return e->grants[0].asked != 0;
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* Bounds a walk: the entries that were ever given, and some behind them, where a change that was
 * taken back may have left something. */
static uint32_t walk_bound(const struct engine *e, enum table table)
{
    uint32_t bound = table_bound(e, table) + 8, size = e->unused[table].size;

    return bound < size ? bound : size;
}

static uint32_t flows_bound(const struct engine *e)
{
    uint32_t flows = walk_bound(e, TABLE_FLOWS), inflows = walk_bound(e, TABLE_INFLOWS);

    return flows > inflows ? flows : inflows;
}

/* Counts what a client really holds; with `client` NONE, what a user holds in flows whose context
 * has gone. */
static struct held holdings(const struct engine *e, uint32_t client, uint32_t uid)
{
    struct held h = {0};

    for (uint32_t i = 0; i < flows_bound(e); i++) {
        const struct flow *f = &e->flows[i];
        const struct inflow *in = &e->inflows[i];
        uint32_t session = owner_context(f->owner);
        bool named = client == NONE ? f->owner == OWNER_GONE && f->uid == uid
                                    : session != NONE && e->sessions[session].client == client;

        if (f->state != FLOW_FREE && named) {
            h.flows++;
            h.remotes += e->flow_live[i].remotes;
        }
        h.inflows += in->state != INFLOW_FREE && in->session != NONE &&
                     e->sessions[in->session].client == client;
    }
    return h;
}

/* Checks that the lists of flows' remotes have each remote once. */
static uint32_t listed_remotes(const struct engine *e)
{
    uint32_t listed = 0;

    for (uint32_t i = 0; i < walk_bound(e, TABLE_FLOWS); i++)
        for (uint32_t r = e->flow_live[i].first_remote;
             e->flows[i].state != FLOW_FREE && r != NONE && listed <= e->config.remotes_max;
             r = e->remote_next[r])
            listed += e->remotes[r].state != REMOTE_FREE && e->remotes[r].flow == i;
    return listed;
}

/* Counts flows and inflows that their context's list lacks, or has wrongly. */
static uint32_t unlisted(const struct engine *e)
{
    int64_t flows = 0, inflows = 0;

    for (uint32_t i = 0; i < flows_bound(e); i++) {
        flows += e->flows[i].state != FLOW_FREE && owner_context(e->flows[i].owner) != NONE;
        inflows += e->inflows[i].state != INFLOW_FREE && e->inflows[i].session != NONE;
    }
    for (uint32_t s = 0; s < walk_bound(e, TABLE_SESSIONS); s++) {
        if (e->sessions[s].state == SESSION_FREE)
            continue;
        for (uint32_t i = e->sessions[s].first_flow; i != NONE && flows >= 0; i = e->flows[i].next)
            flows -= e->flows[i].state != FLOW_FREE && owner_context(e->flows[i].owner) == s;
        for (uint32_t i = e->sessions[s].first_inflow; i != NONE && inflows >= 0;
             i = e->inflows[i].next)
            inflows -= e->inflows[i].state != INFLOW_FREE && e->inflows[i].session == s;
    }
    return (flows != 0) + (inflows != 0);
}

/* Whether what an instance waits for is noted correctly: all letters of its round that are not
 * complete. */
static bool waits_right(const struct engine *e, uint32_t team, const struct instance *i)
{
    bool under_way = i->state == INSTANCE_OPEN && i->called && !i->done;
    struct coll_round now;
    struct blocks b;

    if (i->waits == WAITS_NOT || !under_way)
        return i->waits == WAITS_NOT && !under_way && i->lacking == 0;
    b = blocks_of(e, team, i);
    b.algorithm->round(&b.shape, b.me, i->round, &now);
    return i->waits == WAITS_FLOORS ? i->lacking != 0
                                    : i->lacking == instance_missing(e, team, i, &now);
}

/* Counts instances of this team whose wait is noted wrongly. One more for each of these counts that
 * is wrong: what instances lack and letters that are not acknowledged, both summed over the
 * participants, and instances under way. */
static uint32_t miscounted_instances(const struct engine *e, uint32_t team)
{
    const struct team *t = &e->teams.table[team];
    const struct team_live *live = &e->teams.live[team];
    uint32_t wrong = 0, awaited = 0, under_way = 0, unacked = 0;

    if (e->teams.resume || t->reason.status != 0)
        return 0;
    for (uint32_t n = 0; n < t->window; n++) {
        wrong += !waits_right(e, team, &live->instances[n]);
        awaited += (uint32_t)__builtin_popcount(live->instances[n].lacking);
        under_way += live->instances[n].waits != WAITS_NOT;
        unacked += live->instances[n].state == INSTANCE_OPEN ? live->instances[n].unacked : 0;
    }
    for (uint32_t p = 0; p < t->participants; p++) {
        awaited -= live->participants[p].awaited;
        unacked -= live->participants[p].unacked;
    }
    return wrong + (awaited != 0) + (unacked != 0) + (under_way != live->under_way);
}

/* Whether a peer's `awaited` differs from the sum of `awaited` over the participants that are this
 * peer, in all open teams. */
static bool miscounted_awaited(const struct engine *e, uint32_t peer)
{
    uint32_t awaited = 0;

    for (uint32_t team = 0; team < walk_bound(e, TABLE_TEAMS); team++)
        for (uint32_t p = 0;
             e->teams.table[team].state == TEAM_OPEN && p < e->teams.table[team].participants; p++)
            if (e->teams.live[team].participants[p].peer == peer)
                awaited += e->teams.live[team].participants[p].awaited;
    return e->peer_live[peer].awaited != awaited;
}

/* Whether a context's count of the replies that it owes differs from the counts of its inflows. */
static bool miscounted_replies(const struct engine *e, uint32_t session)
{
    uint64_t owed = 0;

    for (uint32_t i = 0; i < walk_bound(e, TABLE_INFLOWS); i++)
        if (e->inflows[i].state != INFLOW_FREE && e->inflows[i].session == session)
            owed += e->inflows[i].owed;
    return e->sessions[session].replies_owed != owed;
}

/* Whether a region's count of its grants, or the length of its list, differs from the number of its
 * grants in the table. */
static bool miscounted_grants(const struct engine *e, uint32_t region)
{
    uint32_t grants = 0, listed = 0;

    for (uint32_t i = 0; i < table_bound(e, TABLE_GRANTS); i++)
        grants += e->grants[i].region == region;
    for (uint32_t i = e->regions[region].first_grant; i != NONE && listed <= grants;
         i = e->grants[i].next)
        listed += e->grants[i].region == region;
    return e->regions[region].grants != grants || listed != grants;
}

static uint32_t miscounted(const struct engine *e, uint32_t remotes)
{
    uint32_t wrong = (listed_remotes(e) != remotes) + unlisted(e);

    for (uint32_t team = 0; team < walk_bound(e, TABLE_TEAMS); team++)
        if (e->teams.table[team].state == TEAM_OPEN)
            wrong += miscounted_instances(e, team);
    for (uint32_t i = 0; i < e->config.peers; i++)
        wrong += miscounted_awaited(e, i);

    for (uint32_t i = 0; i < walk_bound(e, TABLE_CLIENTS); i++) {
        const struct client *c = &e->clients[i];
        struct held h = {0};

        if (c->state != CLIENT_FREE)
            h = holdings(e, i, 0);
        wrong += c->flows != h.flows || c->remotes != h.remotes || c->inflows != h.inflows;
    }
    for (uint32_t i = 0; i < walk_bound(e, TABLE_SESSIONS); i++)
        wrong += e->sessions[i].state != SESSION_FREE && miscounted_replies(e, i);
    for (uint32_t i = 0; i < walk_bound(e, TABLE_REGIONS); i++)
        wrong += e->regions[i].state != REGION_FREE && miscounted_grants(e, i);
    for (uint32_t i = 0; i < e->gone_count; i++) {
        struct held h = holdings(e, NONE, e->gone[i].uid);

        wrong += e->gone[i].flows != h.flows || e->gone[i].remotes != h.remotes;
    }
    return wrong;
}

bool peek_in_use(const struct engine *e)
{
    for (uint32_t t = 0; t < TABLES; t++)
        if (!table_empty(e, t))
            return true;
    return e->pool.state->count > e->pool.state->free;
}

struct peek_census peek_census(const struct engine *e)
{
    struct peek_census c = {.chunks = e->pool.state->count - e->pool.state->free};

    for (uint32_t i = 0; i < walk_bound(e, TABLE_CLIENTS); i++)
        c.clients += e->clients[i].state != CLIENT_FREE;
    for (uint32_t i = 0; i < walk_bound(e, TABLE_SESSIONS); i++)
        c.sessions += e->sessions[i].state != SESSION_FREE;
    for (uint32_t i = 0; i < walk_bound(e, TABLE_SEGMENTS); i++) {
        c.segments += e->segments[i].state != SEGMENT_FREE;
        c.busy += e->segment_live[i].busy;
    }
    for (uint32_t i = 0; i < walk_bound(e, TABLE_REGIONS); i++)
        c.regions += e->regions[i].state != REGION_FREE;
    for (uint32_t i = 0; i < table_bound(e, TABLE_GRANTS); i++)
        c.grants += e->grants[i].region != NONE;
    for (uint32_t i = 0; i < walk_bound(e, TABLE_REMOTES); i++) {
        c.remotes += e->remotes[i].state != REMOTE_FREE;
        c.busy += e->remote_busy[i];
    }
    for (uint32_t i = 0; i < flows_bound(e); i++) {
        c.flows += e->flows[i].state != FLOW_FREE;
        c.inflows += e->inflows[i].state != INFLOW_FREE;
        c.busy += e->flow_live[i].outstanding;
    }
    for (uint32_t i = 0; i < e->config.peers; i++) {
        for (uint32_t k = 0; k < NOTES_QUEUES; k++)
            c.notes += (uint32_t)queue_count(&e->peers[i].notes[k].queue);
        c.sent += (uint32_t)queue_count(&e->peers[i].sent);
        c.letters += e->peer_live[i].letters;
    }
    for (uint32_t i = 0; i < walk_bound(e, TABLE_TEAMS); i++)
        c.teams += e->teams.table[i].state != TEAM_FREE;
    for (uint32_t i = 0; c.teams == 0 && i < e->teams.heap.units; i++)
        c.letters += e->teams.heap.used[i];
    for (uint32_t i = 0; i < walk_bound(e, TABLE_PROGRAMS); i++)
        c.programs += e->programs.table[i].state != PROGRAM_FREE;
    for (uint32_t i = 0; i < e->programs.heap.units; i++)
        c.program_units += e->programs.heap.used[i];
    for (uint32_t i = 0; i < walk_bound(e, TABLE_OFFLOADS); i++)
        c.offloads += e->offloads.table[i].state != OFFLOAD_FREE;
    for (uint32_t i = 0; i < walk_bound(e, TABLE_GETS); i++)
        c.gets += e->offloads.gets.table[i].state != GET_FREE;
    c.lost = TEAMS_MAX + PROGRAMS_MAX + OFFLOADS_MAX + e->config.clients_max +
             e->config.sessions_max + e->config.segments_max + e->config.regions_max +
             2 * e->config.remotes_max + 2 * e->config.flows_max + gets_size(&e->config) -
             (c.clients + c.sessions + c.segments + c.regions + c.grants + c.remotes + c.flows +
              c.inflows + c.teams + c.programs + c.offloads + c.gets);
    for (uint32_t t = 0; t < TABLES; t++)
        c.lost -= *e->unused[t].count + e->unused[t].size - *e->unused[t].fresh;
    c.miscounted = miscounted(e, c.remotes);
    return c;
}

int peek_offload_of(const struct engine *e, uint32_t session, uint32_t index)
{
    for (uint32_t i = 0; i < OFFLOADS_MAX; i++) {
        const struct offload *o = &e->offloads.table[i];

        if (o->state != OFFLOAD_FREE && o->session == session && o->index == index)
            return (int)offload_handle_of(o, i);
    }
    return -1;
}

uint32_t peek_gets_room(const struct engine *e, uint32_t session)
{
    return gets_room(e, session);
}

uint32_t peek_target(const struct engine *e, uint32_t offload, uint32_t target)
{
    return offload_targets(&e->offloads, offload & (OFFLOADS_MAX - 1))[target].remote;
}

uint32_t peek_last_client(const struct engine *e)
{
    return (uint32_t)e->offloads.vm->client - 1;
}

struct offload peek_offload(const struct engine *e, uint32_t offload)
{
    return e->offloads.table[offload & (OFFLOADS_MAX - 1)];
}

uint64_t peek_team_bytes(const struct engine *e, uint32_t team)
{
    return e->teams.table[team & (TEAMS_MAX - 1)].bytes;
}

uint64_t peek_teams_moved(const struct engine *e)
{
    return e->teams.moved;
}

uint64_t peek_team_wanted(const struct engine *e, uint32_t team)
{
    return e->teams.live[team & (TEAMS_MAX - 1)].wanted;
}

uint32_t peek_awaited(const struct engine *e, uint32_t peer)
{
    return e->peer_live[peer].awaited;
}

uint32_t peek_open_sessions(const struct engine *e)
{
    return e->open_count;
}

uint32_t peek_active(const struct engine *e)
{
    return e->active_count;
}

uint32_t peek_flow_ahead(const struct engine *e)
{
    for (uint32_t i = 0; i < e->config.flows_max; i++)
        if (e->flows[i].state != FLOW_FREE && e->flows[i].ops.head > e->flows[i].staged)
            return i;
    return NONE;
}

uint64_t peek_staged_of(const struct engine *e, uint32_t client)
{
    uint64_t entries = 0;

    for (uint32_t i = 0; i < e->config.flows_max; i++)
        if (e->flows[i].state == FLOW_OPEN && owner_client(e, e->flows[i].owner) == client)
            entries += e->flows[i].staged;
    return entries;
}

uint32_t peek_flow_of(const struct engine *e, uint32_t remote)
{
    return e->remotes[remote].flow;
}

uint32_t peek_pieces_posted(struct engine *e, uint32_t remote)
{
    struct flow *f = &e->flows[e->remotes[remote].flow];

    return f->posted > 0 ? op_pieces(e, flow_op(e, f, f->started), f->posted) : 0;
}

uint32_t peek_payloads(const struct engine *e, uint32_t peer, uint32_t nonce)
{
    return e->peer_live[peer].in.payloads[nonce];
}

uint32_t peek_record_max(const struct engine *e)
{
    return e->record_max;
}

bool peek_traced(const struct engine *e)
{
    return e->trace != NULL;
}

void *peek_host_context(const struct engine *e)
{
    return e->host->context;
}

uint32_t peek_remote_of(const struct engine *e, uint64_t owner)
{
    for (uint32_t i = 0; i < e->config.remotes_max; i++)
        if (e->remotes[i].state != REMOTE_FREE && e->remotes[i].owner == owner)
            return i;
    return UINT32_MAX;
}

uint64_t peek_word(const struct engine *e, uint32_t remote)
{
    return e->remotes[remote].cookie;
}

/* ---- records --------------------------------------------------------------------------------- */

const void *peek_record(const struct engine *e, uint32_t peer, uint64_t position)
{
    const struct ledger_out *out = &e->peer_live[peer].out;

    return out->staging + ((position - out->base) & (out->size - 1));
}

static const struct queue *notes_of(const struct engine *e, uint32_t peer, enum notes_queue queue)
{
    return &e->peers[peer].notes[queue].queue;
}

static const struct note *note_at(const struct engine *e, const struct queue *notes, uint64_t i)
{
    return queue_at(&e->pool, notes, i);
}

void peek_last_note(const struct engine *e, uint32_t peer, enum notes_queue queue, void *record)
{
    const struct queue *notes = notes_of(e, peer, queue);
    uint64_t last = notes->head;
    struct wire_record *head = record;

    while (last + note_at(e, notes, last)->span < notes->tail)
        last += note_at(e, notes, last)->span;
    head->kind = note_at(e, notes, last)->kind;
    notes_body(e, notes, last, head + 1);
}

uint32_t peek_note_place(const struct engine *e, uint32_t peer, enum notes_queue queue)
{
    return (uint32_t)(notes_of(e, peer, queue)->tail % (CHUNK_BYTES >> NOTE_SHIFT));
}

uint32_t peek_verdict_growth(const struct engine *e, uint32_t peer)
{
    return queue_growth(notes_of(e, peer, NOTES_VERDICTS), 1);
}

uint32_t peek_spill_growth(const struct engine *e, uint32_t session)
{
    return queue_growth(&e->sessions[session].spill, 1);
}

/* ---- changes --------------------------------------------------------------------------------- */

struct engine_config *poke_config(struct engine *e)
{
    return &e->config;
}

void poke_owner(void *memory, const struct owner_kind *row)
{
    struct engine *e = memory;

    e->owners[OWNER_KINDS - 1] = row;
}

void poke_word(struct engine *e, uint32_t remote, uint64_t word)
{
    set64(e, &e->remotes[remote].cookie, word);
}

uint32_t poke_memory(struct engine *e, uint32_t chunks)
{
    uint32_t free = e->pool.state->free;

    e->pool.state->free = chunks;
    return free;
}

void poke_chunks_keep(struct engine *e, uint32_t chunks)
{
    e->chunks_keep = chunks;
}

void poke_unused(struct engine *e, enum table table, uint32_t entries)
{
    struct free_list *unused = &e->unused[table];

    if (entries < *unused->count)
        *unused->count = entries;
    *unused->fresh = unused->size - (entries - *unused->count);
}

void poke_notes(struct engine *e, uint32_t client, uint32_t chunks)
{
    e->client_notes[client] = chunks << (14 - NOTE_SHIFT);
}

void poke_lists(struct engine *e, uint32_t session)
{
    e->sessions[session].first_flow = e->sessions[session].first_inflow = NONE;
}

void poke_owed(struct engine *e, uint32_t inflow, uint32_t replies)
{
    e->inflows[inflow].owed = replies;
}

void poke_remote_state(struct engine *e, uint32_t remote, enum remote_state state)
{
    e->remotes[remote].state = state;
}

void poke_flow_index(struct engine *e, uint32_t flow, uint64_t index)
{
    struct flow *f = &e->flows[flow];

    f->ops.head = f->ops.tail = index;
    f->reported = f->started = f->staged = index;
}

void poke_remote_length(struct engine *e, uint32_t remote, uint64_t length)
{
    e->remotes[remote].length = length;
}

void poke_revoke_due(struct engine *e, uint32_t remote, bool due)
{
    e->remotes[remote].revoke_due = due;
}

void poke_reserved(struct engine *e, uint32_t session, uint64_t bytes)
{
    e->sessions[session].reserved = bytes;
}

void poke_reply_ring(struct engine *e, uint32_t session, uint32_t bytes)
{
    e->sessions[session].sizes.reply_event = bytes;
}

void poke_unmapped(struct engine *e, uint32_t segment)
{
    e->segment_live[segment].base = NULL;
}

void poke_unregistered(struct engine *e, uint32_t segment)
{
    e->segment_live[segment].registered = false;
}

void poke_other_work(struct engine *e)
{
    handlers_note_work(e, NONE);
}

void poke_handler_debt(struct engine *e, uint32_t client, uint32_t units)
{
    e->offloads.turns.of[client].left = -(int64_t)units;
}

void poke_gets(struct engine *e, uint32_t client, uint32_t gets)
{
    e->clients[client].gets = gets;
}

void poke_uid(struct engine *e, uint32_t client, uint32_t uid)
{
    e->clients[client].uid = uid;
    for (uint32_t i = 0; i < e->config.flows_max; i++)
        if (e->flows[i].owner != OWNER_GONE && e->flows[i].state != FLOW_FREE &&
            owner_client(e, e->flows[i].owner) == client)
            e->flows[i].uid = uid;
}

uint32_t poke_nonces(struct engine *e, uint32_t peer, uint32_t free)
{
    uint32_t before = e->peer_live[peer].out.nonces_free;

    e->peer_live[peer].out.nonces_free = free;
    return before;
}

void poke_switching(struct engine *e, uint32_t peer, bool switching)
{
    e->peer_live[peer].out.switching = switching;
}

void poke_outstanding(struct engine *e, uint32_t peer, uint32_t operations)
{
    e->peer_live[peer].outstanding = operations;
}

void poke_runs_acknowledged(struct engine *e, uint32_t peer)
{
    e->peer_live[peer].in.runs_unacked = 0;
}

void poke_ordered(struct engine *e, uint64_t bytes)
{
    e->ordered_max = bytes;
}

void poke_rails(struct engine *e, uint32_t shift, uint32_t least)
{
    e->rails_shift = shift;
    e->config.stripe_min = least;
}

void poke_sweep(struct engine *e)
{
    e->sweep = true;
}
