/* Owns where metrics come from (metrics_read.h). */
#include "daemon/control/watch/metrics_read.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include "daemon/control/clients/client_table.h"
#include "daemon/control/threads/clock.h"
#include "daemon/control/control.h"
#include "daemon/control/clients/pairs.h"
#include "daemon/control/watch/publisher.h"

enum { PEER_WANTED = 1, PEER_UP = 2 }; /* of counters_abi.h */

static uint64_t get(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

static const struct counters_session *session_rows(const struct counters_header *h)
{
    return (const void *)((const char *)h + h->session_offset);
}

static const struct counters_peer *peer_rows(const struct counters_header *h)
{
    return (const void *)((const char *)h + h->peer_offset);
}

static void read_header(struct metrics_node *n, const struct counters_header *h)
{
    n->clients = get(&h->clients);
    n->contexts = get(&h->sessions);
    n->put_ops = get(&h->put_ops);
    n->get_ops = get(&h->get_ops);
    n->am_ops = get(&h->am_ops);
    n->put_bytes = get(&h->put_bytes);
    n->get_bytes = get(&h->get_bytes);
    n->am_bytes = get(&h->am_bytes);
    n->errors = get(&h->errors);
    n->delivered = get(&h->delivered);
    n->spilled = get(&h->spilled);
}

static void add_session(struct metrics_node *n, const struct counters_session *s)
{
    n->in_flight += get(&s->in_flight);
    n->spill_bytes += get(&s->spill_bytes);
    n->replies_expected += get(&s->replies_expected);
    n->replies_owed += get(&s->replies_owed);
    n->submit_used += get(&s->submit_used);
    n->local_used += get(&s->local_used);
    n->remote_used += get(&s->remote_used);
    n->reply_used += get(&s->reply_used);
}

static void read_context(struct metrics_context *c, const struct counters_session *s,
                         const struct client_session *session)
{
    const struct client *client = session->client;
    const struct direct_counts direct = pairs_count(session);

    *c = (struct metrics_context){
        .owner = {.job = client->job,
                  .engine = client->worker->engine,
                  .client = client->number,
                  .rank = client->rank,
                  .context = session->context,
                  .uid = (uint32_t)client->uid},
        .put_ops = get(&s->put_ops),
        .get_ops = get(&s->get_ops),
        .am_ops = get(&s->am_ops),
        .put_bytes = get(&s->put_bytes),
        .get_bytes = get(&s->get_bytes),
        .am_bytes = get(&s->am_bytes),
        .direct_put_ops = direct.put_ops,
        .direct_get_ops = direct.get_ops,
        .direct_am_ops = direct.am_ops,
        .direct_put_bytes = direct.put_bytes,
        .direct_get_bytes = direct.get_bytes,
        .direct_am_bytes = direct.am_bytes,
        .errors = get(&s->errors),
        .delivered = get(&s->delivered),
        .spilled = get(&s->spilled),
        .in_flight = get(&s->in_flight),
        .spill_bytes = get(&s->spill_bytes),
        .submit_used = get(&s->submit_used),
        .local_used = get(&s->local_used),
        .remote_used = get(&s->remote_used),
        .reply_used = get(&s->reply_used),
    };
}

static void read_sessions(struct metrics *m, const struct control *control,
                          const struct counters_header *h)
{
    const struct counters_session *rows = session_rows(h);

    for (uint32_t i = 0; i < h->session_rows; i++) {
        uint64_t name = get(&rows[i].session);
        uint32_t engine = (uint32_t)(name >> 32) % control->worker_count;
        const struct client_session *session;

        if (name == 0)
            continue;
        add_session(&m->node, &rows[i]);
        session = worker_session(&control->workers[engine], (uint32_t)name - 1);
        if (m->has_clients && session)
            read_context(&m->contexts[m->context_count++], &rows[i], session);
    }
}

static void add_peer(struct metrics_peer *p, const struct counters_peer *row)
{
    p->up |= get(&row->state) == PEER_UP;
    p->wanted |= get(&row->state) == PEER_WANTED;
    p->tx_bytes += get(&row->tx_bytes);
    p->rx_bytes += get(&row->rx_bytes);
    p->tx_credit += get(&row->tx_credit);
    p->tx_sent += get(&row->tx_sent);
    p->rx_consumed += get(&row->rx_consumed);
    p->runs_out += get(&row->runs_out);
    p->runs_in += get(&row->runs_in);
    p->records_out += get(&row->records_out);
    p->records_in += get(&row->records_in);
    p->starved += get(&row->starved);
    p->grown += get(&row->grown);
    p->awaited += get(&row->sent_pending);
}

/* Several engines may have ledgers with one node: their rows become one. */
static int read_peers(struct metrics *m, const struct control *control,
                      const struct counters_header *h)
{
    const struct counters_peer *rows = peer_rows(h);
    uint32_t *at = calloc(control->node_count, sizeof(*at)); /* by node: 1 + where its row is */

    if (!at)
        return -ENOMEM;
    for (uint32_t i = 0; i < h->peer_rows; i++) {
        uint64_t name = get(&rows[i].node);
        uint32_t node = ((uint32_t)name - 1) % control->node_count;

        if (name == 0)
            continue;
        if (at[node] == 0) {
            m->peers[m->peer_count++].node = node;
            at[node] = (uint32_t)m->peer_count;
        }
        add_peer(&m->peers[at[node] - 1], &rows[i]);
    }
    free(at);
    return 0;
}

static void read_engines(struct metrics *m, const struct control *control, const bool *responding)
{
    for (uint32_t i = 0; i < control->worker_count; i++) {
        struct counters_totals totals;

        publisher_worker_totals(&control->workers[i], &totals);
        m->engines[m->engine_count++] = (struct metrics_engine){
            .engine = i,
            .responding = responding[i],
            .clients = control->workers[i].clients,
            .cpu_ns = totals.cpu_ns,
            .rounds = totals.heartbeat,
            .work = totals.work,
            .sleeps = totals.sleeps,
            .commands = totals.commands,
        };
        m->node.quarantined += totals.quarantined;
        m->node.refused += totals.refused;
    }
}

static void read_users(struct metrics_node *n, const struct control *control)
{
    for (const struct quota_user *u = control->users; u; u = u->next) {
        n->segments += u->held[QUOTA_SEGMENTS];
        n->regions += u->held[QUOTA_REGIONS];
        n->memory += u->held[QUOTA_MEMORY];
    }
}

static void read_clients(struct metrics *m, const struct control *control)
{
    for (const struct client *c = control->clients; c; c = c->next)
        if (client_is_in_engine(c))
            m->clients[m->client_count++] =
                (struct metrics_client){.owner = {.job = c->job,
                                                  .engine = c->worker->engine,
                                                  .client = c->number,
                                                  .rank = c->rank,
                                                  .uid = (uint32_t)c->uid},
                                        .memory = c->held[QUOTA_MEMORY]};
}

int metrics_read(struct metrics *m, const struct control *control, const bool *responding)
{
    const struct counters_header *h = control->publisher.counters.shared;

    *m = (struct metrics){
        .version = PWC_VERSION,
        .provider = control->provider,
        .node_number = control->node,
        .node = {.nodes = control->node_count, .started_ns = control->started_day_ns},
        .engines = calloc(control->worker_count, sizeof(*m->engines)),
        .peers = calloc(h->peer_rows + 1, sizeof(*m->peers)),
        .contexts = calloc(h->session_rows + 1, sizeof(*m->contexts)),
        .clients = calloc(control->client_count + 1, sizeof(*m->clients)),
        .has_clients = control->config->metrics_clients != 0,
    };
    if (!m->engines || !m->peers || !m->contexts || !m->clients || read_peers(m, control, h) < 0) {
        metrics_free(m);
        return -ENOMEM;
    }
    read_header(&m->node, h);
    read_sessions(m, control, h);
    read_engines(m, control, responding);
    read_users(&m->node, control);
    if (m->has_clients)
        read_clients(m, control);
    return 0;
}

int metrics_add_latencies(struct metrics *m, const struct snapshot_latency *rows, int count)
{
    uint32_t *at = calloc(m->node.nodes, sizeof(*at)); /* by node: 1 + where its row is */

    if (!at)
        return -ENOMEM;
    for (size_t i = 0; i < m->peer_count; i++)
        at[m->peers[i].node] = (uint32_t)i + 1;
    for (int i = 0; i < count; i++) {
        /* A peer is a node's engine; the row is the node's. */
        uint32_t row = rows[i].node == ENGINE_LATENCY_SHARED ? 0 : at[rows[i].node % m->node.nodes];

        for (uint32_t step = 0; row > 0 && step < ENGINE_LATENCIES; step++) {
            m->peers[row - 1].timed[step] += rows[i].count[step];
            m->peers[row - 1].timed_ns[step] += rows[i].sum_ns[step];
        }
    }
    free(at);
    return 0;
}

void metrics_free(struct metrics *m)
{
    free(m->engines);
    free(m->peers);
    free(m->contexts);
    free(m->clients);
    *m = (struct metrics){0};
}
