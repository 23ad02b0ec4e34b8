/* Looking inside: rows for the tools. Off the hot path. Thread: the progress thread. */
#include "daemon/engine/engine.h"

#include <string.h>
#include "daemon/engine/session/quarantine.h"
#include "shm_ring/doorbell.h"
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ops/op.h"
#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/session/session.h"

int engine_view_clients(struct engine *e, uint32_t *from, struct engine_client_view *rows, int room)
{
    int n = 0;

    for (; *from < e->config.clients_max && n < room; ++*from) {
        const struct client *c = &e->clients[*from];
        struct engine_client_view *v = &rows[n];

        if (c->state == CLIENT_FREE)
            continue;
        *v = (struct engine_client_view){.client = *from,
                                         .uid = c->uid,
                                         .pid = c->pid,
                                         .rank = c->rank,
                                         .size = c->size,
                                         .quarantine = quarantine_text(c->quarantine)};
        memcpy(v->job, c->job, sizeof(v->job));
        for (uint32_t i = 0; i < e->config.sessions_max; i++)
            v->sessions += e->sessions[i].state != SESSION_FREE && e->sessions[i].client == *from;
        for (uint32_t i = 0; i < e->config.segments_max; i++)
            v->segments += e->segments[i].state != SEGMENT_FREE && e->segments[i].client == *from;
        for (uint32_t i = 0; i < e->config.regions_max; i++)
            v->regions += e->regions[i].state != REGION_FREE && e->regions[i].client == *from;
        n++;
    }
    return n;
}

static uint64_t replies_owed(const struct engine *e, const struct session *s)
{
    uint64_t owed = 0;

    for (uint32_t i = s->first_inflow; i != NONE; i = e->inflows[i].next)
        owed += e->inflows[i].owed;
    return owed;
}

int engine_view_sessions(struct engine *e, uint32_t *from, struct engine_session_view *rows,
                         int room)
{
    int n = 0;

    for (; *from < e->config.sessions_max && n < room; ++*from) {
        const struct session *s = &e->sessions[*from];
        struct session_live *live = &e->session_live[*from];
        int64_t local, remote, reply;

        if (s->state == SESSION_FREE || !live->attached)
            continue;
        local = ring_used(&live->local);
        remote = ring_used(&live->remote);
        reply = ring_used(&live->reply_event);
        rows[n++] = (struct engine_session_view){
            .session = *from,
            .client = s->client,
            .rank = e->clients[s->client].rank,
            .context = s->context,
            .sizes = s->sizes,
            .submit_used = live->submit.tail_seen - live->submit.head,
            .local_used = local < 0 ? 0 : (uint64_t)local,
            .remote_used = remote < 0 ? 0 : (uint64_t)remote,
            .submit_high = live->submit_high,
            .local_high = live->local_high,
            .remote_high = live->remote_high,
            .submitted = s->submitted,
            .ended = s->ended,
            .in_flight = s->submitted - s->ended,
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
            .reply_used = reply < 0 ? 0 : (uint64_t)reply,
            .reply_high = live->reply_high,
            .replies_owed = replies_owed(e, s),
            .waits = atomic_load_explicit(&live->shared->event_bell.armed, memory_order_relaxed) !=
                     DOORBELL_AWAKE,
            .replies_expected = s->reply_reserved / event_bytes(e->message_max),
        };
    }
    return n;
}

void engine_view_totals(const struct engine *e, struct engine_totals_view *out)
{
    *out = e->departed;
    for (uint32_t i = 0; i < e->config.sessions_max; i++)
        if (e->sessions[i].state != SESSION_FREE && e->session_live[i].attached)
            session_add_totals(&e->sessions[i], &e->session_live[i], out);
}

/* The states that tools show: 0 none, 1 wanted, 2 up, 3 down. */
static uint32_t peer_state_shown(const struct peer *p, const struct peer_live *live)
{
    if (live->link == LINK_UP)
        return 2;
    if (live->wanted)
        return 1;
    return p->their_id != 0 ? 3 : 0;
}

int engine_view_peers(struct engine *e, uint32_t *from, struct engine_peer_view *rows, int room)
{
    int n = 0;

    for (; *from < e->config.nodes && n < room; ++*from) {
        const struct peer *p = &e->peers[*from];
        const struct peer_live *live = &e->peer_live[*from];

        if (!live->known)
            continue;
        rows[n++] = (struct engine_peer_view){
            .node = *from,
            .state = peer_state_shown(p, live),
            .incarnation = p->their_incarnation,
            .tx_bytes = live->link == LINK_UP ? live->out.size : 0,
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
            .sent_pending = queue_count(&p->sent),
        };
    }
    return n;
}

int engine_view_regions(struct engine *e, uint32_t *from, struct engine_region_view *rows, int room)
{
    int n = 0;

    for (; *from < e->config.regions_max && n < room; ++*from) {
        const struct region *r = &e->regions[*from];
        struct engine_region_view *v = &rows[n];

        if (r->state == REGION_FREE)
            continue;
        *v = (struct engine_region_view){.slot = *from,
                                         .generation = r->generation,
                                         .client = r->client,
                                         .segment = r->segment,
                                         .rights = r->rights,
                                         .state = r->state,
                                         .offset = r->offset,
                                         .length = r->length};
        for (uint32_t i = r->first_grant; i != NONE; i = e->grants[i].next)
            v->grants++;
        n++;
    }
    return n;
}

static bool latency_has_any(const struct latency *l)
{
    for (uint32_t i = 0; i < ENGINE_LATENCIES; i++)
        if (histogram_count(&l->steps[i]) > 0)
            return true;
    return false;
}

/* `*from` counts peers, and behind them what those share that have none of their own. */
int engine_view_latencies(struct engine *e, uint32_t *from, struct engine_latency_view *rows,
                          int room)
{
    int n = 0;

    for (; *from <= e->config.nodes && n < room; ++*from) {
        bool shared = *from == e->config.nodes;
        uint32_t own = shared ? 0 : e->peer_live[*from].latency;

        if ((own == 0 && !shared) || !latency_has_any(&e->latencies[own]))
            continue;
        rows[n].node = shared ? ENGINE_LATENCY_SHARED : *from;
        memcpy(rows[n++].steps, e->latencies[own].steps, sizeof(rows->steps));
    }
    return n;
}

/* The oldest operations of each flow: `*from` counts flows. */
int engine_view_ops(struct engine *e, uint32_t *from, struct engine_op_view *rows, int room)
{
    int n = 0;

    for (; *from < e->config.flows_max && n < room; ++*from) {
        struct flow *f = &e->flows[*from];

        if (f->state == FLOW_FREE || f->session == NONE)
            continue;
        for (uint64_t slot = f->ops.head; slot < f->ops.tail && n < room;) {
            const struct op *op = flow_op(e, f, slot);

            rows[n++] = (struct engine_op_view){
                .session = f->session,
                .client = e->sessions[f->session].client,
                .kind = op_shown_kind(op),
                .state = slot < f->staged    ? 2u
                         : slot < f->started ? 1u
                                             : 0u,
                .flags = op->flags,
                .node = f->node,
                .peer = f->peer,
                .sequence = slot,
                .length = op->length,
                .age_ns = e->now > op->submitted_at ? e->now - op->submitted_at : 0,
            };
            slot += op->span;
        }
    }
    return n;
}
