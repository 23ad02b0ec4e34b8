/*
 * Looking inside: rows for the tools, read from the engine's tables while it runs (engine.h).
 *
 * The tables that are read here may change meanwhile. So a word that decides something is read once
 * (PEEK), an index is checked before it is followed, and a list is followed only so far as it can
 * be long.
 *
 * Thread: any; the progress thread does nothing for it, except for `departures`.
 */
#include "daemon/engine/coll/table.h"
#include "daemon/engine/engine.h"

#include <string.h>
#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/ops/op.h"
#include "daemon/engine/session/quarantine.h"
#include "daemon/engine/session/session.h"
#include "daemon/engine/state/table.h"
#include "proto/handler_abi.h"
#include "shm_ring/doorbell.h"

#define PEEK(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)

int engine_view_clients(const struct engine *e, uint32_t *from, struct view_client *rows, int room)
{
    int n = 0;

    for (; *from < e->config.clients_max && n < room; ++*from) {
        const struct client *c = &e->clients[*from];
        struct view_client *v = &rows[n];

        if (PEEK(c->state) == CLIENT_FREE)
            continue;
        *v = (struct view_client){.client = *from,
                                  .uid = c->uid,
                                  .pid = c->pid,
                                  .rank = c->rank,
                                  .size = c->size,
                                  .quarantine = quarantine_text(PEEK(c->quarantine))};
        memcpy(v->job, c->job, sizeof(v->job));
        v->job[sizeof(v->job) - 1] = '\0';
        n++;
    }
    return n;
}

/* From `head` to `tail`, at most `most`. The head is read first, so the tail is never before it. */
static uint64_t between(const uint64_t *head, const uint64_t *tail, uint64_t most)
{
    uint64_t from = __atomic_load_n(head, __ATOMIC_ACQUIRE);
    uint64_t used = PEEK(*tail) - from;

    return used < most ? used : most;
}

/* Bytes of a ring that its client has not taken yet. */
static uint64_t ring_fill(uint64_t tail, const struct ring_control *shared, uint64_t size)
{
    uint64_t used = tail - atomic_load_explicit(&shared->head, memory_order_relaxed);

    return used <= size ? used : 0;
}

/* How the client's thread waits, by its own account. A context that has armed its bell for a
 * descriptor waits for an event too, outside of the library, and its time there is not known. */
static void fill_waits(const struct session_shared *shared, uint64_t now,
                       struct counters_session *v)
{
    const struct session_waits *w = &shared->waits;
    uint64_t asleep = atomic_load_explicit(&w->asleep_ns, memory_order_acquire);
    uint64_t since = atomic_load_explicit(&w->asleep_since, memory_order_acquire), nap = 0;
    uint32_t call = atomic_load_explicit(&w->call, memory_order_relaxed);
    uint32_t armed = atomic_load_explicit(&shared->event_bell.armed, memory_order_relaxed);

    v->waited_ns = atomic_load_explicit(&w->waited_ns, memory_order_relaxed);
    v->asleep_ns = atomic_load_explicit(&w->asleep_ns, memory_order_relaxed);
    if (v->asleep_ns == asleep && since != 0 && since < now) /* the client still sleeps */
        nap = now - since;
    v->waited_ns += nap;
    v->asleep_ns += nap;
    v->waits = call < SESSION_WAIT_KINDS ? call : SESSION_WAITS_NOT;
    if (v->waits == SESSION_WAITS_NOT && armed != DOORBELL_AWAKE)
        v->waits = SESSION_WAITS_EVENT;
}

/* The counts of the context: the engine's part, and the client's own. */
static void fill_counts(const struct session *s, const struct session_shared *shared,
                        struct counters_session *v)
{
    const struct session_counts *own = &shared->client.counts;

    v->ops_ended =
        v->ended - PEEK(s->uncounted) + atomic_load_explicit(&own->ended, memory_order_relaxed);
    v->ops_failed = PEEK(s->failed) + atomic_load_explicit(&own->failed, memory_order_relaxed);
    v->ops_arrived = PEEK(s->arrived) + atomic_load_explicit(&own->arrived, memory_order_relaxed);
}

static void fill_session(const struct engine *e, uint32_t session,
                         const struct session_shared *shared, uint64_t now,
                         struct counters_session *v)
{
    const struct session *s = &e->sessions[session];
    const struct session_live *live = &e->session_live[session];
    uint64_t submitted, ended = PEEK(s->ended);
    uint32_t client = PEEK(s->client);

    submitted = PEEK(s->submitted);
    *v = (struct counters_session){
        .session = session + UINT64_C(1),
        .client = client,
        .rank = client < e->config.clients_max ? e->clients[client].rank : 0,
        .context = s->context,
        .submit_size = s->sizes.submit,
        .local_size = s->sizes.local,
        .remote_size = s->sizes.remote,
        .reply_size = s->sizes.reply_event,
        .submit_used = between(&live->submit.head, &live->submit.tail_seen, s->sizes.submit),
        .local_used = ring_fill(PEEK(live->local.tail), &shared->local, s->sizes.local),
        .remote_used = ring_fill(PEEK(live->remote.tail), &shared->remote, s->sizes.remote),
        .submit_high = live->submit_high,
        .local_high = live->local_high,
        .remote_high = live->remote_high,
        .submitted = submitted,
        .ended = ended,
        .in_flight = submitted - ended,
        .delivered = s->delivered,
        .put_ops = live->ops[OP_COUNT_PUT],
        .get_ops = live->ops[OP_COUNT_GET],
        .put_bytes = live->bytes[OP_COUNT_PUT],
        .get_bytes = live->bytes[OP_COUNT_GET],
        .errors = live->errors,
        .spilled = live->spilled,
        .spill_bytes = s->spill_bytes,
        .am_ops = live->ops[OP_COUNT_MESSAGE],
        .am_bytes = live->bytes[OP_COUNT_MESSAGE],
        .atomic_ops = live->ops[OP_COUNT_ATOMIC],
        .atomic_bytes = live->bytes[OP_COUNT_ATOMIC],
        .reply_used =
            ring_fill(PEEK(live->reply_event.tail), &shared->reply_event, s->sizes.reply_event),
        .reply_high = live->reply_high,
        .replies_owed = PEEK(s->replies_owed),
        .replies_expected = s->reply_reserved / event_bytes(e->message_max),
        .handler_units = PEEK(live->handler_units),
        .requests_started = atomic_load_explicit(&shared->notices.started, memory_order_relaxed),
        .notices_unexpected =
            atomic_load_explicit(&shared->notices.unexpected, memory_order_relaxed),
        .notices_matched = atomic_load_explicit(&shared->notices.matched, memory_order_relaxed),
    };
    fill_waits(shared, now, v);
    fill_counts(s, shared, v);
}

int engine_view_sessions(const struct engine *e, uint64_t now, uint32_t *from,
                         struct counters_session *rows, int room)
{
    int n = 0;

    for (; *from < e->config.sessions_max && n < room; ++*from) {
        const struct session_live *live = &e->session_live[*from];
        bool attached = __atomic_load_n(&live->attached, __ATOMIC_ACQUIRE);
        const struct session_shared *shared = PEEK(live->shared);

        if (PEEK(e->sessions[*from].state) != SESSION_FREE && attached && shared)
            fill_session(e, *from, shared, now, &rows[n++]);
    }
    return n;
}

/* A context that ends moves its share into `departed`, and a share must count exactly once: the
 * result is true only if no share has moved meanwhile. */
bool engine_view_totals(const struct engine *e, struct engine_totals_view *out)
{
    uint32_t before = __atomic_load_n(&e->departures, __ATOMIC_ACQUIRE);

    *out = e->departed;
    for (uint32_t i = 0; i < e->config.sessions_max; i++)
        if (PEEK(e->sessions[i].state) != SESSION_FREE && PEEK(e->session_live[i].attached))
            session_add_totals(&e->sessions[i], &e->session_live[i], out);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return before % 2 == 0 && PEEK(e->departures) == before;
}

/* The states that tools show: 0 none, 1 wanted, 2 up, 3 down. */
static uint32_t peer_state_shown(const struct peer *p, const struct peer_live *live)
{
    if (PEEK(live->link) == LINK_UP)
        return 2;
    if (live->wanted)
        return 1;
    return p->their_id != 0 ? 3 : 0;
}

/* Peers that share an entry of latencies have no times. */
static void fill_times(const struct engine *e, uint32_t peer, struct counters_peer *v)
{
    uint32_t own = PEEK(e->peer_live[peer].latency);
    const struct histogram *steps = e->latencies[own < LATENCIES_MAX ? own : 0].steps;

    if (own == 0)
        return;
    v->queued_count = steps[ENGINE_LATENCY_QUEUED].count;
    v->queued_ns = steps[ENGINE_LATENCY_QUEUED].sum;
    v->fabric_count = steps[ENGINE_LATENCY_FABRIC].count;
    v->fabric_ns = steps[ENGINE_LATENCY_FABRIC].sum;
    v->local_count = steps[ENGINE_LATENCY_LOCAL].count;
    v->local_ns = steps[ENGINE_LATENCY_LOCAL].sum;
}

int engine_view_peers(const struct engine *e, uint32_t *from, struct counters_peer *rows, int room)
{
    int n = 0;

    for (; *from < e->config.peers && n < room; ++*from) {
        const struct peer *p = &e->peers[*from];
        const struct peer_live *live = &e->peer_live[*from];

        /* All machines are shown, whether or not their peers have been named. */
        if (!PEEK(live->known)) {
            if (*from < e->config.stride)
                rows[n++] = (struct counters_peer){.node = *from + UINT64_C(1)};
            continue;
        }
        rows[n] = (struct counters_peer){
            .node = *from + UINT64_C(1),
            .state = peer_state_shown(p, live),
            .incarnation = p->their_incarnation,
            .tx_bytes = PEEK(live->link) == LINK_UP ? live->out.size : 0,
            .rx_bytes = live->in.ring ? live->in.size : 0,
            .tx_tail = p->tx_tail,
            .tx_sent = live->out.sent,
            .tx_consumed = p->tx_acked,
            .tx_credit = ledger_credit(e, *from),
            .rx_consumed = p->rx_consumed,
            .rx_acked = live->in.acked,
            .runs_out = live->runs_out,
            .runs_in = live->runs_in,
            .records_out = live->records_out,
            .records_in = live->records_in,
            .starved = live->starved,
            .grown = live->grown,
            .sent_pending = between(&p->sent.head, &p->sent.tail, UINT32_MAX),
            .bytes_out = live->bytes_out,
            .bytes_in = live->bytes_in,
            .paused = live->pauses,
        };
        fill_times(e, *from, &rows[n++]);
    }
    return n;
}

int engine_view_regions(const struct engine *e, uint32_t *from, struct view_region *rows, int room)
{
    int n = 0;

    for (; *from < table_bound(e, TABLE_REGIONS) && n < room; ++*from) {
        const struct region *r = &e->regions[*from];
        uint32_t state = PEEK(r->state);

        if (state == REGION_FREE)
            continue;
        rows[n++] = (struct view_region){.slot = *from,
                                         .generation = r->generation,
                                         .client = r->client,
                                         .segment = r->segment,
                                         .rights = r->rights,
                                         .state = state,
                                         .offset = r->offset,
                                         .length = r->length,
                                         .grants = PEEK(r->grants)};
    }
    return n;
}

/* The bytes of a program's image that lie within the memory for programs; NULL: it is just being
 * changed. */
static const struct handler_image *image_of(const struct engine *e, const struct program *p,
                                            uint32_t *bytes)
{
    uint64_t place = (uint64_t)PEEK(p->place) * ENGINE_PROGRAM_UNIT;

    *bytes = PEEK(p->bytes);
    if (PEEK(p->state) != PROGRAM_LOADED || *bytes < sizeof(struct handler_image) ||
        place + *bytes > e->config.program_bytes)
        return NULL;
    return (const void *)(e->programs.memory + place);
}

static uint32_t program_handle(uint32_t generation, uint32_t program)
{
    return generation << PROGRAMS_SHIFT | program;
}

int engine_view_programs(const struct engine *e, uint32_t *from, struct view_program *rows,
                         int room)
{
    int n = 0;

    for (; *from < PROGRAMS_MAX && n < room; ++*from) {
        const struct program *p = &e->programs.table[*from];
        uint32_t bytes;
        const struct handler_image *image = image_of(e, p, &bytes);

        if (!image)
            continue;
        rows[n++] = (struct view_program){.program = program_handle(PEEK(p->generation), *from),
                                          .client = PEEK(p->client),
                                          .instructions = PEEK(image->instructions),
                                          .constants = PEEK(image->constants),
                                          .bytes = engine_program_room(bytes),
                                          .offloads = PEEK(p->holds)};
    }
    return n;
}

int engine_view_image(const struct engine *e, uint32_t program, void *to, uint32_t size,
                      uint32_t *client)
{
    const struct program *p = &e->programs.table[program & (PROGRAMS_MAX - 1)];
    uint32_t bytes, now;
    const struct handler_image *image = image_of(e, p, &bytes);

    if (!image || PEEK(p->generation) != program >> PROGRAMS_SHIFT || bytes > size)
        return -ENOENT;
    *client = PEEK(p->client);
    memcpy(to, image, bytes);
    /* The room may have been given to another program meanwhile. */
    atomic_thread_fence(memory_order_acquire);
    if (image_of(e, p, &now) != image || PEEK(p->generation) != program >> PROGRAMS_SHIFT)
        return -ENOENT;
    return (int)bytes;
}

/* Whether teams that open now use this row. Teams that opened before may use others. */
static bool in_force(const struct engine *e, uint32_t number)
{
    uint8_t chosen = e->config.collectives.by_kind[coll_row(number)->kind];

    return chosen == 0 || chosen == number + 1;
}

int engine_view_collectives(const struct engine *e, uint32_t *from, struct view_collective *rows,
                            int room)
{
    int n = 0;

    for (; *from < COLL_ROWS && n < room; ++*from) {
        const struct team_sums *sums = &e->teams.sums[*from];
        const struct coll_row *row = coll_row(*from);
        bool chosen = e->config.collectives.by_kind[row->kind] == *from + 1;

        if (!in_force(e, *from) && PEEK(sums->calls) + PEEK(sums->letters) == 0)
            continue;
        rows[n++] = (struct view_collective){
            .kind = team_kind_name(row->kind),
            .algorithm = row->algorithm->name,
            .from = chosen ? 0 : row->bytes_least,
            .least = chosen || row->participants_least == 1 ? 0 : row->participants_least,
            .most =
                chosen || row->participants_most == COLL_PARTICIPANTS ? 0 : row->participants_most,
            .calls = PEEK(sums->calls),
            .bytes = PEEK(sums->bytes),
            .letters = PEEK(sums->letters),
            .letter_bytes = PEEK(sums->letter_bytes)};
    }
    return n;
}

#define NS_PER_MS 1000000u

/* The age of a team's oldest call; ms wrap around in 49 days. */
static uint64_t oldest_of(const struct engine *e, uint32_t team, uint64_t now)
{
    const struct team_live *live = &e->teams.live[team];
    uint32_t called = PEEK(live->oldest_ms);
    int32_t age = (int32_t)((uint32_t)(now / NS_PER_MS) - called);

    return PEEK(live->under_way) > 0 && called != 0 && age > 0 ? (uint64_t)age * NS_PER_MS : 0;
}

uint64_t engine_view_oldest_call(const struct engine *e, uint32_t team, uint64_t now)
{
    return oldest_of(e, team & (TEAMS_MAX - 1), now);
}

void engine_view_teams(const struct engine *e, uint64_t now, struct engine_teams_view *out)
{
    *out = (struct engine_teams_view){.teams = PEEK(e->teams.open),
                                      .broken = PEEK(e->teams.broken),
                                      .failed = PEEK(e->teams.failed),
                                      .under_way = PEEK(e->teams.under_way)};
    for (uint32_t row = 0; row < COLL_ROWS; row++) {
        out->calls += PEEK(e->teams.sums[row].calls);
        out->bytes += PEEK(e->teams.sums[row].bytes);
    }
    for (uint32_t team = 0; out->under_way > 0 && team < TEAMS_MAX; team++) {
        uint64_t age = oldest_of(e, team, now);

        out->oldest_ns = age > out->oldest_ns ? age : out->oldest_ns;
    }
}

/* `*from` counts peers, and after them the one entry that is shared. */
int engine_view_latencies(const struct engine *e, uint32_t *from, struct engine_latency_view *rows,
                          int room)
{
    int n = 0;

    for (; *from <= e->config.peers && n < room; ++*from) {
        bool shared = *from == e->config.peers;
        uint32_t own = shared ? 0 : PEEK(e->peer_live[*from].latency);
        const struct histogram *steps = e->latencies[own < LATENCIES_MAX ? own : 0].steps;
        bool any = false;

        for (uint32_t i = 0; i < ENGINE_LATENCIES; i++)
            any |= steps[i].count > 0;
        if ((own == 0 && !shared) || !any)
            continue;
        rows[n++] = (struct engine_latency_view){
            .peer = shared ? ENGINE_LATENCY_SHARED : *from,
            .steps = steps,
        };
    }
    return n;
}

/* The operation, as queue_at gives it. NULL: its chunk is being taken away. */
static const struct op *op_at(const struct engine *e, const struct queue *q, uint64_t slot)
{
    uint32_t per_chunk = 14 - OP_SHIFT, chunk = PEEK(q->first);
    const uint32_t *links;

    if (chunk >= e->pool.state->count)
        return NULL;
    links = (const void *)(e->pool.chunks + (uint64_t)chunk * CHUNK_BYTES);
    if (!queue_one_chunk(q, PEEK(q->head), PEEK(q->tail) - 1))
        chunk = PEEK(links[(slot >> per_chunk) & (CHUNK_LINKS - 1)]);
    if (chunk >= e->pool.state->count)
        return NULL;
    return (const struct op *)(const void *)(e->pool.chunks + (uint64_t)chunk * CHUNK_BYTES) +
           (slot & ((UINT64_C(1) << per_chunk) - 1));
}

static int fill_ops(const struct engine *e, const struct flow *f, uint64_t *from,
                    struct view_op *rows, int room)
{
    uint64_t tail = PEEK(f->ops.tail), head = PEEK(f->ops.head), slot = *from > head ? *from : head;
    uint32_t session = owner_as_session(PEEK(f->owner));
    int n = 0;

    if (PEEK(f->state) == FLOW_FREE || session >= e->config.sessions_max)
        return 0;
    while (slot < tail && n < room) {
        const struct op *op = op_at(e, &f->ops, slot);
        uint16_t span = op ? PEEK(op->span) : 0;
        const char *kind;

        if (span == 0)
            break;
        kind = submit_kind_name(op_shown_kind(op));
        rows[n++] = (struct view_op){
            .session = session,
            .client = e->sessions[session].client,
            .kind = kind ? kind : "unknown",
            .state = slot < f->staged    ? 2u
                     : slot < f->started ? 1u
                                         : 0u,
            .flags = op->flags,
            .node = f->peer,
            .rank = (uint32_t)f->endpoint,
            .context = f->endpoint >> 32,
            .sequence = slot,
            .length = op_shown_length(op),
            .age_ns = e->now > op->submitted_at ? e->now - op->submitted_at : 0,
        };
        slot += span;
    }
    *from = slot;
    return n;
}

int engine_view_ops(const struct engine *e, struct engine_ops_at *at, struct view_op *rows,
                    int room)
{
    for (; at->flow < table_bound(e, TABLE_FLOWS);
         *at = (struct engine_ops_at){.flow = at->flow + 1}) {
        int n = fill_ops(e, &e->flows[at->flow], &at->slot, rows, room);

        if (n > 0)
            return n;
    }
    return 0;
}
