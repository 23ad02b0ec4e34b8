/*
 * Inspect: one JSON document about the daemon, from the engine's views and what control knows.
 *
 * The views are copied on the progress threads. Where one does not answer within a second the
 * document says so, and holds what the others and control know. With one thread a document says
 * nothing of engines; with several each row says whose it is.
 *
 * Root, our own user and members of an inspect group see all; others see the rows of their own
 * clients, and sums.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/control/clients/client.h"
#include "daemon/control/threads/clock.h"
#include "daemon/control/clients/pairs.h"
#include "daemon/control/nodes/peers.h"
#include "daemon/control/watch/publisher.h"
#include "daemon/control/watch/request_config.h"
#include "daemon/control/watch/scrape.h"
#include "daemon/control/threads/snapshot.h"
#include "daemon/control/clients/client_stream.h"
#include "daemon/control/clients/client_table.h"
#include "daemon/control/clients/client_calls.h"
#include "daemon/control/clients/reply.h"
#include "daemon/control/watch/request_inspect.h"
#include "proto/session_abi.h"

enum { ANSWER_MS = 1000 };

/* One question under way. The timer's callback and the call's may come in either order. */
struct inspection {
    struct client *client;
    uint32_t request;
    const struct topic *topic;
    struct snapshot *snapshots[NODES_ENGINES_MAX]; /* by engine: lent to it, then what it saw */
    bool viewed[NODES_ENGINES_MAX];
    uint32_t calls; /* not back yet */
    uv_timer_t timer;
    bool answered;
    bool timer_closed;
};

struct topic {
    const char *name;
    unsigned parts;
    const char *rows[2]; /* arrays of the document that engines fill */
    void (*fill)(json_t *document, const struct worker *w, const struct snapshot *s);
    /* What does not come from engines, before and behind those rows; or NULL. */
    void (*before)(json_t *document, struct control *control);
    void (*behind)(json_t *document, struct control *control);
};

static void put(json_t *object, const char *key, uint64_t value)
{
    json_object_set_new(object, key, json_integer((json_int_t)value));
}

static void text(json_t *object, const char *key, const char *value)
{
    json_object_set_new(object, key, value ? json_string(value) : json_null());
}

static json_t *row_in(json_t *array)
{
    json_t *row = json_object();

    json_array_append_new(array, row);
    return row;
}

static json_t *array_in(json_t *document, const char *key)
{
    json_t *array = json_object_get(document, key);

    if (!array) {
        array = json_array();
        json_object_set_new(document, key, array);
    }
    return array;
}

/* A row of an engine. */
static json_t *row_of(json_t *array, const struct worker *w)
{
    json_t *row = row_in(array);

    if (w->control->worker_count > 1)
        put(row, "engine", w->engine);
    return row;
}

/* A peer's node, and which of its engines where it has several. */
static void put_peer(json_t *row, const struct worker *w, uint32_t number)
{
    put(row, "node", number % w->control->node_count);
    if (w->control->worker_count > 1 || number >= w->control->node_count)
        put(row, "peer_engine", number / w->control->node_count);
}

/* ---- topics ---------------------------------------------------------------------------------- */

static void put_engines(json_t *document, struct control *control)
{
    json_t *engines = array_in(document, "engines");

    for (uint32_t i = 0; i < control->worker_count; i++) {
        const struct worker *w = &control->workers[i];
        struct counters_totals totals;
        json_t *row = row_in(engines);

        publisher_worker_totals(w, &totals);
        put(row, "engine", i);
        put(row, "clients", w->clients);
        put(row, "heartbeat", totals.heartbeat);
        put(row, "work", totals.work);
        put(row, "sleeps", totals.sleeps);
        put(row, "progress_cpu_ns", totals.cpu_ns);
    }
}

static void put_status(json_t *document, struct control *control)
{
    struct counters_totals totals;
    uint64_t age = clock_ns() - control->started_ns, clients = 0;

    for (uint32_t i = 0; i < control->worker_count; i++)
        clients += control->workers[i].clients;
    publisher_totals(control, &totals);
    text(document, "version", PWC_VERSION);
    put(document, "session_version", SESSION_VERSION);
    put(document, "pid", (uint64_t)getpid());
    put(document, "node", control->node);
    put(document, "nodes", control->node_count);
    text(document, "provider", control->provider);
    put(document, "rails", control->identity.rails ? control->identity.rails : 1);
    text(document, "socket", control->socket.path);
    text(document, "metrics", scrape_address(control));
    json_object_set_new(document, "uptime_s", json_real((double)age / 1e9));
    put(document, "clients", clients);
    put(document, "connections", control->client_count);
    put(document, "heartbeat", totals.heartbeat);
    put(document, "work", totals.work);
    put(document, "sleeps", totals.sleeps);
    put(document, "quarantined", totals.quarantined);
    put(document, "refused", totals.refused);
    put(document, "progress_cpu_ns", totals.cpu_ns);
    json_object_set_new(document, "progress_cpu_percent",
                        json_real(age ? 100.0 * (double)totals.cpu_ns / (double)age : 0));
    if (control->worker_count > 1)
        put_engines(document, control);
}

static const char *engine_link(uint32_t state)
{
    static const char *const names[] = {"none", "wanted", "up", "down"};

    return state < sizeof(names) / sizeof(names[0]) ? names[state] : names[0];
}

static void put_nodes(json_t *document, struct control *control)
{
    json_t *nodes = array_in(document, "nodes");

    for (uint32_t i = 0; i < control->node_count && i < SNAPSHOT_PEERS_MAX; i++) {
        const char *reason, *state = peers_state(control, i, &reason);
        char address[NODE_HOST_MAX + 8] = "";
        json_t *row = row_in(nodes);

        if (control->nodes.count > 0)
            snprintf(address, sizeof(address), "%s:%s", control->nodes.nodes[i].host,
                     control->nodes.nodes[i].port);
        put(row, "node", i);
        text(row, "address", address);
        text(row, "state", state);
        text(row, "ledgers", engine_link(0));
        put(row, "incarnation", 0);
        put(row, "runs_out", 0);
        put(row, "runs_in", 0);
        text(row, "reason", *reason ? reason : NULL);
    }
}

static void grow(json_t *row, const char *key, uint64_t value)
{
    put(row, key, (uint64_t)json_integer_value(json_object_get(row, key)) + value);
}

/* All links with a node, as one: up where one is. */
static void fill_nodes(json_t *document, const struct worker *w, const struct snapshot *s)
{
    json_t *nodes = array_in(document, "nodes");

    for (int i = 0; i < s->peer_count; i++) {
        const struct engine_peer_view *v = &s->peers[i];
        json_t *row = json_array_get(nodes, v->node % w->control->node_count);
        const char *before = row ? json_string_value(json_object_get(row, "ledgers")) : NULL;

        if (!before)
            continue;
        if (v->state != 0 && strcmp(before, "up") != 0)
            text(row, "ledgers", engine_link(v->state));
        if (v->incarnation > 0)
            put(row, "incarnation", v->incarnation);
        grow(row, "runs_out", v->runs_out);
        grow(row, "runs_in", v->runs_in);
    }
}

static void fill_clients(json_t *document, const struct worker *w, const struct snapshot *s)
{
    json_t *clients = array_in(document, "clients");

    for (int i = 0; i < s->client_count; i++) {
        const struct engine_client_view *v = &s->clients[i];
        const struct client *c = worker_client(w, v->client);
        json_t *row = row_of(clients, w);

        put(row, "client", v->client);
        text(row, "job", v->job);
        put(row, "rank", v->rank);
        put(row, "size", v->size);
        put(row, "uid", v->uid);
        put(row, "pid", v->pid);
        put(row, "sessions", v->sessions);
        put(row, "segments", v->segments);
        put(row, "regions", v->regions);
        put(row, "bytes", c ? c->held[QUOTA_MEMORY] : 0);
        text(row, "quarantine", v->quarantine);
    }
}

/* What each user holds, what is on its way out included. */
static void put_users(json_t *document, const struct control *control)
{
    json_t *users = array_in(document, "users");

    for (const struct quota_user *u = control->users; u; u = u->next) {
        json_t *row = row_in(users);

        put(row, "uid", u->uid);
        put(row, "connections", u->connections);
        put(row, "clients", u->held[QUOTA_CLIENTS]);
        put(row, "contexts", u->held[QUOTA_CONTEXTS]);
        put(row, "segments", u->held[QUOTA_SEGMENTS]);
        put(row, "regions", u->held[QUOTA_REGIONS]);
        put(row, "bytes", u->held[QUOTA_MEMORY]);
        put(row, "refused", u->refused);
    }
}

static void put_users_and_gone(json_t *document, struct control *control)
{
    json_t *gone = array_in(document, "quarantined");
    uint32_t kept =
        control->history_count < QUARANTINE_HISTORY ? control->history_count : QUARANTINE_HISTORY;

    for (uint32_t i = 0; i < kept; i++) {
        const struct quarantined *q =
            &control->history[(control->history_count - kept + i) % QUARANTINE_HISTORY];
        json_t *row = row_of(gone, &control->workers[q->engine]);

        put(row, "client", q->client);
        text(row, "job", q->job);
        put(row, "rank", q->rank);
        put(row, "uid", q->uid);
        put(row, "pid", q->pid);
        text(row, "quarantine", q->reason);
        put(row, "age_ns", clock_ns() - q->at_ns);
    }
    put_users(document, control);
}

/* What it has done without us, as it says; NULL: it has gone meanwhile. */
static void put_direct(json_t *row, const struct client_session *s)
{
    const struct direct_counts none = {0};
    const struct direct_counts counts = s ? pairs_count(s) : none;

    put(row, "pairs", s ? s->pairs : 0);
    put(row, "direct_put_ops", counts.put_ops);
    put(row, "direct_put_bytes", counts.put_bytes);
    put(row, "direct_get_ops", counts.get_ops);
    put(row, "direct_get_bytes", counts.get_bytes);
    put(row, "direct_am_ops", counts.am_ops);
    put(row, "direct_am_bytes", counts.am_bytes);
}

static void fill_queues(json_t *document, const struct worker *w, const struct snapshot *s)
{
    json_t *queues = array_in(document, "queues");

    for (int i = 0; i < s->session_count; i++) {
        const struct engine_session_view *v = &s->sessions[i];
        json_t *row = row_of(queues, w);

        put(row, "session", v->session);
        put(row, "client", v->client);
        put(row, "rank", v->rank);
        put(row, "context", v->context);
        json_object_set_new(row, "waits", json_boolean(v->waits));
        put(row, "submit_size", v->sizes.submit);
        put(row, "submit_used", v->submit_used);
        put(row, "submit_high", v->submit_high);
        put(row, "local_size", v->sizes.local);
        put(row, "local_used", v->local_used);
        put(row, "local_high", v->local_high);
        put(row, "remote_size", v->sizes.remote);
        put(row, "remote_used", v->remote_used);
        put(row, "remote_high", v->remote_high);
        put(row, "submitted", v->submitted);
        put(row, "ended", v->ended);
        put(row, "in_flight", v->in_flight);
        put(row, "delivered", v->delivered);
        put(row, "put_ops", v->put_ops);
        put(row, "put_bytes", v->put_bytes);
        put(row, "get_ops", v->get_ops);
        put(row, "get_bytes", v->get_bytes);
        put(row, "errors", v->errors);
        put(row, "spilled", v->spilled);
        put(row, "spill_bytes", v->spill_bytes);
        put(row, "reply_size", v->sizes.reply_event);
        put(row, "am_ops", v->am_ops);
        put(row, "am_bytes", v->am_bytes);
        put(row, "reply_used", v->reply_used);
        put(row, "reply_high", v->reply_high);
        put(row, "replies_expected", v->replies_expected);
        put(row, "replies_owed", v->replies_owed);
        put_direct(row, worker_session(w, v->session));
    }
}

static void fill_ledgers(json_t *document, const struct worker *w, const struct snapshot *s)
{
    json_t *ledgers = array_in(document, "ledgers");

    for (int i = 0; i < s->peer_count; i++) {
        const struct engine_peer_view *v = &s->peers[i];
        json_t *row = row_of(ledgers, w);

        put_peer(row, w, v->node);
        text(row, "state", engine_link(v->state));
        put(row, "tx_bytes", v->tx_bytes);
        put(row, "tx_tail", v->tx_tail);
        put(row, "tx_sent", v->tx_sent);
        put(row, "tx_consumed", v->tx_consumed);
        put(row, "tx_credit", v->tx_credit);
        put(row, "rx_bytes", v->rx_bytes);
        put(row, "rx_consumed", v->rx_consumed);
        put(row, "rx_acked", v->rx_acked);
        put(row, "runs_out", v->runs_out);
        put(row, "runs_in", v->runs_in);
        put(row, "records_out", v->records_out);
        put(row, "records_in", v->records_in);
        put(row, "starved", v->starved);
        put(row, "grown", v->grown);
        put(row, "sent_pending", v->sent_pending);
    }
}

static void fill_regions(json_t *document, const struct worker *w, const struct snapshot *s)
{
    static const char *const rights[] = {"none", "write", "read", "read, write"};
    static const char *const states[] = {"free", "open", "revoking"};
    json_t *regions = array_in(document, "regions");

    for (int i = 0; i < s->region_count; i++) {
        const struct engine_region_view *v = &s->regions[i];
        json_t *row = row_of(regions, w);

        put(row, "slot", v->slot);
        put(row, "generation", v->generation);
        put(row, "client", v->client);
        put(row, "segment", v->segment);
        put(row, "offset", v->offset);
        put(row, "length", v->length);
        text(row, "rights", rights[v->rights & 3]);
        text(row, "state", v->state < 3 ? states[v->state] : "unknown");
        put(row, "grants", v->grants);
    }
}

static void fill_ops(json_t *document, const struct worker *w, const struct snapshot *s)
{
    static const char *const states[] = {"queued", "ready", "placed"};
    json_t *ops = array_in(document, "ops");

    for (int i = 0; i < s->op_count; i++) {
        const struct engine_op_view *v = &s->ops[i];
        const char *kind = submit_kind_name(v->kind);
        json_t *row = row_of(ops, w);

        put(row, "client", v->client);
        put(row, "session", v->session);
        put(row, "sequence", v->sequence);
        text(row, "kind", kind ? kind : "unknown");
        text(row, "state", v->state < 3 ? states[v->state] : "unknown");
        put(row, "flags", v->flags);
        put_peer(row, w, v->node);
        put(row, "rank", (uint32_t)v->peer);
        put(row, "context", v->peer >> 32);
        put(row, "length", v->length);
        put(row, "age_ns", v->age_ns);
    }
}

/* A row for each peer and step; times are of operations that have succeeded. */
static void fill_latency(json_t *document, const struct worker *w, const struct snapshot *s)
{
    static const char *const steps[ENGINE_LATENCIES] = {"queued", "fabric", "local"};
    static const struct {
        const char *key;
        uint32_t per_million;
    } quantiles[] = {
        {"p50_ns", 500000}, {"p90_ns", 900000}, {"p99_ns", 990000}, {"p999_ns", 999000}};
    json_t *latency = array_in(document, "latency");

    for (int i = 0; i < s->latency_count * ENGINE_LATENCIES; i++) {
        const struct engine_latency_view *v = &s->latencies[i / ENGINE_LATENCIES];
        const struct histogram *h = &v->steps[i % ENGINE_LATENCIES];
        json_t *row = row_of(latency, w);

        if (v->node == ENGINE_LATENCY_SHARED)
            text(row, "node", NULL);
        else
            put_peer(row, w, v->node);
        text(row, "step", steps[i % ENGINE_LATENCIES]);
        put(row, "count", histogram_count(h));
        put(row, "sum_ns", h->sum);
        for (size_t q = 0; q < sizeof(quantiles) / sizeof(quantiles[0]); q++)
            put(row, quantiles[q].key, histogram_quantile(h, quantiles[q].per_million));
        put(row, "max_ns", h->max);
    }
}

/* As the counters file has it, for those who cannot map it. */
static void fill_counters(json_t *document, const struct worker *w, const struct snapshot *s)
{
    fill_queues(document, w, s);
    fill_ledgers(document, w, s);
}

static const struct topic topics[] = {
    {"status", SNAPSHOT_NONE, {NULL}, NULL, put_status, NULL},
    {"nodes", SNAPSHOT_PEERS, {"nodes"}, fill_nodes, put_nodes, NULL},
    {"clients", SNAPSHOT_CLIENTS, {"clients"}, fill_clients, NULL, put_users_and_gone},
    {"queues", SNAPSHOT_SESSIONS, {"queues"}, fill_queues, NULL, NULL},
    {"ledgers", SNAPSHOT_PEERS, {"ledgers"}, fill_ledgers, NULL, NULL},
    {"regions", SNAPSHOT_REGIONS, {"regions"}, fill_regions, NULL, NULL},
    {"ops", SNAPSHOT_OPS, {"ops"}, fill_ops, NULL, NULL},
    {"counters",
     SNAPSHOT_SESSIONS | SNAPSHOT_PEERS,
     {"queues", "ledgers"},
     fill_counters,
     put_status,
     NULL},
    {"latency", SNAPSHOT_LATENCIES, {"latency"}, fill_latency, NULL, NULL},
    {"config", SNAPSHOT_NONE, {"config"}, NULL, request_config_put, NULL},
};

static const struct topic *topic_find(const char *name)
{
    for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++)
        if (strcmp(topics[i].name, name) == 0)
            return &topics[i];
    return NULL;
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Whether all engines have answered; which have not, where there are several. */
static void put_progress(json_t *document, const struct inspection *i,
                         const struct control *control)
{
    json_t *stuck = json_array();

    for (uint32_t e = 0; e < control->worker_count; e++)
        if (!i->viewed[e])
            json_array_append_new(stuck, json_integer(e));
    text(document, "progress", json_array_size(stuck) == 0 ? "running" : "stuck");
    if (json_array_size(stuck) > 0 && control->worker_count > 1)
        json_object_set(document, "stuck_engines", stuck);
    json_decref(stuck);
}

static json_t *document_of(const struct inspection *i, struct control *control)
{
    const struct topic *topic = i->topic;
    json_t *document = json_object();
    bool truncated = false;

    text(document, "what", topic->name);
    put_progress(document, i, control);
    for (uint32_t e = 0; e < control->worker_count; e++)
        truncated |= i->viewed[e] && i->snapshots[e]->truncated;
    if (truncated)
        json_object_set_new(document, "truncated", json_true());
    if (topic->before)
        topic->before(document, control);
    for (int r = 0; r < 2 && topic->rows[r]; r++)
        (void)array_in(document, topic->rows[r]);
    for (uint32_t e = 0; topic->fill && e < control->worker_count; e++)
        if (i->viewed[e])
            topic->fill(document, &control->workers[e], i->snapshots[e]);
    if (topic->behind)
        topic->behind(document, control);
    return document;
}

/* Whoever asks is no more than a user: rows of others go. */
static void keep_own(json_t *document, uid_t uid)
{
    const char *key;
    json_t *rows;

    json_object_foreach(document, key, rows) for (size_t i = json_array_size(rows); i-- > 0;)
    {
        const json_t *owner = json_object_get(json_array_get(rows, i), "uid");

        if (owner && json_integer_value(owner) != (json_int_t)uid)
            json_array_remove(rows, i);
    }
}

/* With what has been seen by now. */
static void answer(struct inspection *i)
{
    struct client *c = i->client;
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Inspected inspected = PWC__INSPECTED__INIT;
    json_t *document = document_of(i, c->control);
    char *json;

    if (!c->sees_all)
        keep_own(document, c->uid);
    json = json_dumps(document, JSON_COMPACT | JSON_PRESERVE_ORDER);
    i->answered = true;
    json_decref(document);
    if (!json || strlen(json) > CLIENT_REPLY_MAX - 64) {
        reply_error(c, i->request, -EMSGSIZE, "%s: the answer does not fit a reply",
                    i->topic->name);
    } else {
        inspected.json = json;
        reply.id = i->request;
        reply.body_case = PWC__CLIENT_REPLY__BODY_INSPECTED;
        reply.inspected = &inspected;
        client_reply(c, &reply, NULL, 0);
    }
    free(json);
}

static void inspection_free(struct inspection *i)
{
    for (uint32_t e = 0; e < NODES_ENGINES_MAX; e++)
        snapshot_free(i->snapshots[e]);
    free(i);
}

static void release(struct inspection *i)
{
    if (i->calls == 0 && i->timer_closed)
        inspection_free(i);
}

static void timer_closed(uv_handle_t *handle)
{
    struct inspection *i = handle->data;

    i->timer_closed = true;
    release(i);
}

static void too_late(uv_timer_t *timer)
{
    struct inspection *i = timer->data;

    if (i->client->state != CLIENT_ENDING)
        answer(i);
    uv_close((uv_handle_t *)timer, timer_closed);
}

/* Who looks, and at which engine's clients. */
struct onlooker {
    uid_t uid;
    const struct worker *worker;
};

static bool is_own(void *context, uint32_t handle)
{
    const struct onlooker *onlooker = context;
    const struct client *c = worker_client(onlooker->worker, handle);

    return c && c->uid == onlooker->uid;
}

/* At once: a handle may be another client's soon. */
static void see(struct inspection *i, uint32_t engine)
{
    const struct client *c = i->client;
    struct onlooker onlooker = {.uid = c->uid, .worker = &c->control->workers[engine]};

    i->viewed[engine] = true;
    if (!c->sees_all)
        snapshot_keep(i->snapshots[engine], is_own, &onlooker);
}

static void viewed(struct call *call)
{
    struct inspection *i = (struct inspection *)(uintptr_t)call->cookie;
    struct client *c = call->owner;

    for (uint32_t e = 0; e < c->control->worker_count; e++)
        if (i->snapshots[e] == call->view)
            see(i, e);
    if (--i->calls == 0) {
        if (!i->answered && c->state != CLIENT_ENDING)
            answer(i);
        if (!uv_is_closing((uv_handle_t *)&i->timer))
            uv_close((uv_handle_t *)&i->timer, timer_closed);
        release(i);
    }
}

static struct inspection *inspection_new(uint32_t engines, const struct topic *topic)
{
    struct inspection *i = calloc(1, sizeof(*i));
    bool whole = i != NULL;

    for (uint32_t e = 0; whole && e < engines; e++) {
        i->snapshots[e] = snapshot_new(topic->parts, engines);
        whole = i->snapshots[e] != NULL;
    }
    if (whole)
        i->topic = topic;
    else if (i)
        inspection_free(i);
    return whole ? i : NULL;
}

void request_inspect(struct client *c, uint32_t request, const Pwc__Inspect *inspect)
{
    const struct topic *topic = topic_find(inspect->what);
    struct control *control = c->control;
    struct inspection *i;

    if (!topic) {
        reply_error(c, request, -EINVAL,
                    "nothing is called \"%.32s\": ask for status, nodes, clients, queues, ledgers, "
                    "regions, ops, latency, counters or config",
                    inspect->what);
        return;
    }
    if (c->state == CLIENT_STRANGER && !client_may_look(c, request))
        return;
    if (c->state == CLIENT_LOOKING)
        client_await_question(c);
    i = inspection_new(control->worker_count, topic);
    if (!i) {
        reply_error(c, request, -ENOMEM, "this daemon is out of memory");
        return;
    }
    i->client = c;
    i->request = request;
    i->timer.data = i;
    uv_timer_init(&control->loop, &i->timer);
    uv_timer_start(&i->timer, too_late, ANSWER_MS, 0);
    for (uint32_t e = 0; e < control->worker_count; e++) {
        struct call *call = client_call_to(c, &control->workers[e], CALL_VIEW, viewed);

        if (!call)
            continue; /* what it would see is missing, as of one that is stuck */
        call->cookie = (uintptr_t)i;
        call->view = i->snapshots[e];
        i->calls++;
        call_post(control->workers[e].progress, call);
    }
    if (i->calls == 0) { /* nothing keeps the client */
        i->answered = true;
        uv_close((uv_handle_t *)&i->timer, timer_closed);
        reply_error(c, request, -ENOMEM, "this daemon is out of memory");
    }
}
