/*
 * Inspect: one JSON document about the daemon, from the engine's views and what control knows.
 *
 * The views are copied on the progress thread. Where that does not answer within a second the
 * document says so, and holds what control knows alone.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "client.h"
#include "clock.h"
#include "pairs.h"
#include "peers.h"
#include "publisher.h"
#include "snapshot.h"

enum { ANSWER_MS = 1000 };

/* One question under way. The timer's callback and the call's may come in either order. */
struct inspection {
    struct client *client;
    uint32_t request;
    const struct topic *topic;
    struct snapshot *snapshot;
    uv_timer_t timer;
    bool answered;
    bool call_back;
    bool timer_closed;
};

struct topic {
    const char *name;
    unsigned parts;
    void (*fill)(json_t *document, struct control *control, const struct snapshot *s);
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
    json_t *array = json_array();

    json_object_set_new(document, key, array);
    return array;
}

/* ---- topics ---------------------------------------------------------------------------------- */

static void fill_status(json_t *document, struct control *control, const struct snapshot *s)
{
    struct counters_totals totals;
    uint64_t age = clock_ns() - control->started_ns;

    publisher_totals(control, &totals);
    text(document, "version", PWC_VERSION);
    put(document, "pid", (uint64_t)getpid());
    put(document, "node", control->engine.node);
    put(document, "nodes", control->engine.nodes);
    text(document, "provider", control->provider);
    put(document, "rails", control->identity.rails ? control->identity.rails : 1);
    text(document, "socket", control->place.socket);
    json_object_set_new(document, "uptime_s", json_real((double)age / 1e9));
    put(document, "clients", control->client_count);
    put(document, "heartbeat", totals.heartbeat);
    put(document, "work", totals.work);
    put(document, "sleeps", totals.sleeps);
    put(document, "quarantined", totals.quarantined);
    put(document, "progress_cpu_ns", totals.cpu_ns);
    json_object_set_new(document, "progress_cpu_percent",
                        json_real(age ? 100.0 * (double)totals.cpu_ns / (double)age : 0));
}

static const struct engine_peer_view *peer_row(const struct snapshot *s, uint32_t node)
{
    for (int i = 0; s && i < s->peer_count; i++)
        if (s->peers[i].node == node)
            return &s->peers[i];
    return NULL;
}

static const char *engine_link(const struct engine_peer_view *v)
{
    static const char *const names[] = {"none", "wanted", "up", "down"};

    return v && v->state < sizeof(names) / sizeof(names[0]) ? names[v->state] : names[0];
}

static void fill_nodes(json_t *document, struct control *control, const struct snapshot *s)
{
    json_t *nodes = array_in(document, "nodes");

    for (uint32_t i = 0; i < control->engine.nodes && i < SNAPSHOT_PEERS_MAX; i++) {
        const struct engine_peer_view *v = peer_row(s, i);
        const char *reason, *state = peers_state(control, i, &reason);
        char address[NODE_HOST_MAX + 8] = "";
        json_t *row = row_in(nodes);

        if (control->nodes.count > 0)
            snprintf(address, sizeof(address), "%s:%s", control->nodes.nodes[i].host,
                     control->nodes.nodes[i].port);
        put(row, "node", i);
        text(row, "address", address);
        text(row, "state", state);
        text(row, "ledgers", engine_link(v));
        put(row, "incarnation", v ? v->incarnation : 0);
        put(row, "runs_out", v ? v->runs_out : 0);
        put(row, "runs_in", v ? v->runs_in : 0);
        text(row, "reason", *reason ? reason : NULL);
    }
}

static void fill_clients(json_t *document, struct control *control, const struct snapshot *s)
{
    json_t *clients = array_in(document, "clients");
    uint32_t kept =
        control->history_count < QUARANTINE_HISTORY ? control->history_count : QUARANTINE_HISTORY;

    for (int i = 0; s && i < s->client_count; i++) {
        const struct engine_client_view *v = &s->clients[i];
        json_t *row = row_in(clients);

        put(row, "client", v->client);
        text(row, "job", v->job);
        put(row, "rank", v->rank);
        put(row, "size", v->size);
        put(row, "uid", v->uid);
        put(row, "pid", v->pid);
        put(row, "sessions", v->sessions);
        put(row, "segments", v->segments);
        put(row, "regions", v->regions);
        put(row, "bytes",
            control->by_handle[v->client] ? control->by_handle[v->client]->memory : 0);
        text(row, "quarantine", v->quarantine);
    }
    json_t *gone = array_in(document, "quarantined");
    for (uint32_t i = 0; i < kept; i++) {
        const struct quarantined *q =
            &control->history[(control->history_count - kept + i) % QUARANTINE_HISTORY];
        json_t *row = row_in(gone);

        put(row, "client", q->client);
        text(row, "job", q->job);
        put(row, "rank", q->rank);
        put(row, "uid", q->uid);
        put(row, "pid", q->pid);
        text(row, "quarantine", q->reason);
        put(row, "age_ns", clock_ns() - q->at_ns);
    }
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

static void fill_queues(json_t *document, struct control *control, const struct snapshot *s)
{
    json_t *queues = array_in(document, "queues");

    for (int i = 0; s && i < s->session_count; i++) {
        const struct engine_session_view *v = &s->sessions[i];
        json_t *row = row_in(queues);

        put(row, "session", v->session);
        put(row, "client", v->client);
        put(row, "rank", v->rank);
        put(row, "context", v->context);
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
        put(row, "reply_size", v->sizes.reply);
        put(row, "am_ops", v->am_ops);
        put(row, "am_bytes", v->am_bytes);
        put(row, "reply_used", v->reply_used);
        put(row, "reply_high", v->reply_high);
        put(row, "replies_expected", v->replies_expected);
        put(row, "replies_owed", v->replies_owed);
        put_direct(row, control->sessions[v->session]);
    }
}

static void fill_ledgers(json_t *document, struct control *control, const struct snapshot *s)
{
    json_t *ledgers = array_in(document, "ledgers");

    for (int i = 0; s && i < s->peer_count; i++) {
        const struct engine_peer_view *v = &s->peers[i];
        json_t *row = row_in(ledgers);

        put(row, "node", v->node);
        text(row, "state", engine_link(v));
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

static void fill_regions(json_t *document, struct control *control, const struct snapshot *s)
{
    static const char *const rights[] = {"none", "write", "read", "read, write"};
    static const char *const states[] = {"free", "open", "revoking"};
    json_t *regions = array_in(document, "regions");

    for (int i = 0; s && i < s->region_count; i++) {
        const struct engine_region_view *v = &s->regions[i];
        json_t *row = row_in(regions);

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

static void fill_ops(json_t *document, struct control *control, const struct snapshot *s)
{
    static const char *const kinds[] = {"none", "put", "get", "flush", "short", "medium", "long"};
    static const char *const states[] = {"queued", "ready", "placed"};
    json_t *ops = array_in(document, "ops");

    for (int i = 0; s && i < s->op_count; i++) {
        const struct engine_op_view *v = &s->ops[i];
        json_t *row = row_in(ops);

        put(row, "client", v->client);
        put(row, "session", v->session);
        put(row, "sequence", v->sequence);
        text(row, "kind", v->kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[v->kind] : "unknown");
        text(row, "state", v->state < 3 ? states[v->state] : "unknown");
        put(row, "flags", v->flags);
        put(row, "node", v->node);
        put(row, "rank", (uint32_t)v->peer);
        put(row, "context", v->peer >> 32);
        put(row, "length", v->length);
        put(row, "age_ns", v->age_ns);
    }
}

/* As the counters file has it, for those who cannot map it. */
static void fill_counters(json_t *document, struct control *control, const struct snapshot *s)
{
    fill_status(document, control, s);
    fill_queues(document, control, s);
    fill_ledgers(document, control, s);
}

static void fill_config(json_t *document, struct control *control, const struct snapshot *s)
{
    json_t *config = json_object();

    json_object_set_new(document, "config", config);
    for (const struct config_key *key = config_keys(); key->name; key++) {
        char value[CONFIG_TEXT_MAX];

        config_text(control->config, key, value, sizeof(value));
        text(config, key->name, value);
    }
}

static const struct topic topics[] = {
    {"status", SNAPSHOT_NONE, fill_status},
    {"nodes", SNAPSHOT_PEERS, fill_nodes},
    {"clients", SNAPSHOT_CLIENTS, fill_clients},
    {"queues", SNAPSHOT_SESSIONS, fill_queues},
    {"ledgers", SNAPSHOT_PEERS, fill_ledgers},
    {"regions", SNAPSHOT_REGIONS, fill_regions},
    {"ops", SNAPSHOT_OPS, fill_ops},
    {"counters", SNAPSHOT_SESSIONS | SNAPSHOT_PEERS, fill_counters},
    {"config", SNAPSHOT_NONE, fill_config},
};

static const struct topic *topic_find(const char *name)
{
    for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++)
        if (strcmp(topics[i].name, name) == 0)
            return &topics[i];
    return NULL;
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* `s` NULL: the progress thread has not answered. */
static void answer(struct inspection *i, const struct snapshot *s)
{
    struct client *c = i->client;
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Inspected inspected = PWC__INSPECTED__INIT;
    json_t *document = json_object();
    char *json;

    i->answered = true;
    text(document, "what", i->topic->name);
    text(document, "progress", s ? "running" : "stuck");
    if (s && s->truncated)
        json_object_set_new(document, "truncated", json_true());
    i->topic->fill(document, c->control, s);
    json = json_dumps(document, JSON_COMPACT | JSON_PRESERVE_ORDER);
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

static void release(struct inspection *i)
{
    if (!i->call_back || !i->timer_closed)
        return;
    snapshot_free(i->snapshot);
    free(i);
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
        answer(i, NULL);
    uv_close((uv_handle_t *)timer, timer_closed);
}

static void viewed(struct call *call)
{
    struct inspection *i = (struct inspection *)(uintptr_t)call->cookie;
    struct client *c = client_of_call(call);

    i->call_back = true;
    if (!i->answered && c->state != CLIENT_ENDING)
        answer(i, i->snapshot);
    if (!uv_is_closing((uv_handle_t *)&i->timer))
        uv_close((uv_handle_t *)&i->timer, timer_closed);
    release(i);
    client_stream_resume(c);
    client_settle(c);
}

/* Who looks takes none of the places kept for those who may greet, and few of its own. */
static bool may_look(struct client *c, uint32_t request)
{
    if (clients_count(c->control, c->uid, CLIENT_LOOKING) >= CLIENT_LOOKERS_MAX) {
        reply_error(c, request, -EUSERS,
                    "user %u looks on through %u connections already: close one of them",
                    (unsigned)c->uid, CLIENT_LOOKERS_MAX);
        return false;
    }
    c->state = CLIENT_LOOKING;
    return true;
}

void request_inspect(struct client *c, uint32_t request, const Pwc__Inspect *inspect)
{
    const struct topic *topic = topic_find(inspect->what);
    struct inspection *i;
    struct call *call;

    if (!topic) {
        reply_error(c, request, -EINVAL,
                    "nothing is called \"%.32s\": ask for status, nodes, clients, queues, ledgers, "
                    "regions, ops, counters or config",
                    inspect->what);
        return;
    }
    if (c->state == CLIENT_STRANGER && !may_look(c, request))
        return;
    if (c->state == CLIENT_LOOKING)
        client_await_question(c);
    i = calloc(1, sizeof(*i));
    if (i)
        i->snapshot = snapshot_new(topic->parts);
    call = i && i->snapshot ? client_call(c, CALL_VIEW, viewed) : NULL;
    if (!call) {
        if (i)
            snapshot_free(i->snapshot);
        free(i);
        reply_error(c, request, -ENOMEM, "this daemon is out of memory");
        return;
    }
    i->client = c;
    i->request = request;
    i->topic = topic;
    i->timer.data = i;
    uv_timer_init(&c->control->loop, &i->timer);
    uv_timer_start(&i->timer, too_late, ANSWER_MS, 0);
    call->cookie = (uintptr_t)i;
    call->view = i->snapshot;
    call_post(c->control->progress, call);
}
