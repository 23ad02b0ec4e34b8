/*
 * Owns the documents that answer Inspect (document.h): rows from the engines' tables and from the
 * control thread's. Where the daemon has several engines, each row has its engine's number. Thread:
 * control.
 */
#include "daemon/control/watch/document.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/control/clients/client.h"
#include "shm_ring/clock.h"
#include "daemon/control/nodes/job_view.h"
#include "daemon/control/nodes/peers.h"
#include "daemon/control/watch/oldest.h"
#include "daemon/control/watch/publisher.h"
#include "daemon/control/teams/team_view.h"
#include "daemon/control/watch/request_config.h"
#include "views/json.h"
#include "views/rows.h"

enum {
    BATCH = 16,
    /* More rows are left out, and the document has "truncated". */
    ROWS_MAX = 1024,
    LONG_ROWS_MAX = 2048,
    TEXT_MAX = CLIENT_REPLY_MAX - 64, /* characters; the rest of the reply takes a few bytes */
    LATENCY_FIRST_POWER = 10, /* in "all", the first bound is 2^10 ns, 1 us, and the last 1 s */
    LATENCY_BOUNDS = 21,
};

/* A document that is being written. */
struct answer {
    json_t *document;
    struct control *control;
    const struct question *question;
    bool truncated;
};

struct topic {
    const char *name;
    void (*fill)(struct answer *a);
};

/* Whether the user who asks sees what belongs to user `uid`. */
static bool sees(const struct answer *a, uint64_t uid)
{
    return a->question->sees_all || uid == a->question->uid;
}

/* Whether the user who asks sees a client, given by its handle in the worker's engine. */
static bool sees_client(const struct answer *a, const struct worker *w, uint64_t handle)
{
    const struct client *c = worker_client(w, (uint32_t)handle);

    return a->question->sees_all || (c && sees(a, c->uid));
}

static const struct engine *engine_of(const struct worker *w)
{
    return w->progress ? progress_engine(w->progress) : NULL;
}

/* Adds a row of the worker's engine; NULL: there are `max` rows already. */
static json_t *row_of(struct answer *a, const char *key, size_t max, const struct worker *w)
{
    json_t *array = json_array_in(a->document, key), *row;

    if (json_array_size(array) >= max) {
        a->truncated = true;
        return NULL;
    }
    row = json_row_in(array);
    if (a->control->worker_count > 1)
        json_put(row, "engine", w->engine);
    return row;
}

static void put_peer(const struct answer *a, json_t *row, uint64_t number)
{
    json_put_peer(row, (uint32_t)number, a->control->node_count, a->control->worker_count);
}

/* ---- topics ---------------------------------------------------------------------------------- */

static void put_engines(struct answer *a)
{
    json_t *engines = json_array_in(a->document, "engines");

    for (uint32_t i = 0; i < a->control->worker_count; i++) {
        const struct worker *w = &a->control->workers[i];
        struct counters_totals totals;
        struct step_longest longest;
        struct view_engine row;

        publisher_worker_totals(w, &totals);
        publisher_worker_longest_step(w, &longest);
        row = (struct view_engine){.engine = i,
                                   .responding = a->question->echoed[i],
                                   .clients = w->clients,
                                   .heartbeat = totals.heartbeat,
                                   .work = totals.work,
                                   .sleeps = totals.sleeps,
                                   .commands = totals.commands,
                                   .progress_cpu_ns = totals.cpu_ns,
                                   .longest_step_ns = longest.ns,
                                   .longest_step_part = longest.part,
                                   .recent_step_ns = longest.recent_ns};
        json_put_fields(json_row_in(engines), &row, sizeof(row), fields_engine);
    }
}

static void fill_status(struct answer *a)
{
    struct control *control = a->control;
    json_t *document = a->document;
    struct counters_totals totals;
    uint64_t age = clock_ns() - control->started_ns, clients = 0;

    for (uint32_t i = 0; i < control->worker_count; i++)
        clients += control->workers[i].clients;
    publisher_totals(control, &totals);
    json_put_text(document, "version", PWC_VERSION);
    json_put(document, "session_version", SESSION_VERSION);
    json_put(document, "pid", (uint64_t)getpid());
    json_put(document, "nodes", control->node_count);
    json_put_text(document, "provider", control->provider);
    json_put(document, "rails", control->identity.rails ? control->identity.rails : 1);
    json_put_text(document, "socket", control->socket.path);
    json_object_set_new(document, "uptime_s", json_real((double)age / 1e9));
    json_put(document, "clients", clients);
    json_put(document, "connections", control->client_count);
    json_put(document, "heartbeat", totals.heartbeat);
    json_put(document, "work", totals.work);
    json_put(document, "sleeps", totals.sleeps);
    json_put_fields(document, control->publisher.counters.shared, sizeof(struct counters_header),
                    fields_step);
    json_put(document, "quarantined", totals.quarantined);
    json_put(document, "refused", totals.refused);
    json_put(document, "progress_cpu_ns", totals.cpu_ns);
    json_object_set_new(document, "progress_cpu_percent",
                        json_real(age ? 100.0 * (double)totals.cpu_ns / (double)age : 0));
    if (control->worker_count > 1)
        put_engines(a);
}

/* Sums up all links with a node: the node is up where one link is up. */
static void add_links(struct view_node *rows, uint32_t count, const struct control *control)
{
    const struct counters_header *h = control->publisher.counters.shared;
    const struct counters_peer *p;

    for (uint32_t at = 0; (p = counters_next_peer(h, &at));) {
        uint32_t node = ((uint32_t)p->node - 1) % control->node_count;

        if (node >= count)
            continue;
        if (p->state == 2 || rows[node].ledgers != 2)
            rows[node].ledgers = p->state ? p->state : rows[node].ledgers;
        if (p->incarnation > 0)
            rows[node].incarnation = p->incarnation;
        rows[node].runs_out += p->runs_out;
        rows[node].runs_in += p->runs_in;
    }
}

static void fill_nodes(struct answer *a)
{
    struct control *control = a->control;
    uint32_t count = control->node_count < ROWS_MAX ? control->node_count : ROWS_MAX;
    struct view_node *rows = calloc(count, sizeof(*rows));
    json_t *nodes = json_array_in(a->document, "nodes");

    a->truncated |= count < control->node_count || !rows;
    if (rows)
        add_links(rows, count, control);
    for (uint32_t i = 0; rows && i < count; i++) {
        char address[NODE_HOST_MAX + 8] = "";

        if (control->nodes.count > 0)
            snprintf(address, sizeof(address), "%s:%s", control->nodes.nodes[i].host,
                     control->nodes.nodes[i].port);
        rows[i].node = i;
        rows[i].address = address;
        rows[i].state = peers_state(control, i, &rows[i].reason);
        if (!*rows[i].reason)
            rows[i].reason = NULL;
        json_put_fields(json_row_in(nodes), &rows[i], sizeof(rows[i]), fields_node);
    }
    free(rows);
}

static void put_client(struct answer *a, const struct worker *w, struct view_client *v)
{
    const struct client *c = worker_client(w, (uint32_t)v->client);
    json_t *row = sees(a, v->uid) ? row_of(a, "clients", ROWS_MAX, w) : NULL;

    if (!row)
        return;
    if (c) {
        v->sessions = c->held[QUOTA_CONTEXTS];
        v->segments = c->held[QUOTA_SEGMENTS];
        v->regions = c->held[QUOTA_REGIONS];
        v->bytes = c->held[QUOTA_MEMORY];
    }
    json_put_fields(row, v, sizeof(*v), fields_client);
}

/* Writes what each user holds. */
static void put_users(struct answer *a)
{
    json_t *users = json_array_in(a->document, "users");

    for (const struct quota_user *u = a->control->users; u; u = u->next) {
        const struct view_user row = {.uid = u->uid,
                                      .connections = u->connections,
                                      .clients = u->held[QUOTA_CLIENTS],
                                      .contexts = u->held[QUOTA_CONTEXTS],
                                      .segments = u->held[QUOTA_SEGMENTS],
                                      .regions = u->held[QUOTA_REGIONS],
                                      .bytes = u->held[QUOTA_MEMORY],
                                      .refused = u->refused};

        if (u->connections > 0 && sees(a, u->uid))
            json_put_fields(json_row_in(users), &row, sizeof(row), fields_user);
    }
}

static void put_quarantined(struct answer *a)
{
    struct control *control = a->control;
    uint32_t kept =
        control->history_count < QUARANTINE_HISTORY ? control->history_count : QUARANTINE_HISTORY;

    (void)json_array_in(a->document, "quarantined");
    for (uint32_t i = 0; i < kept; i++) {
        const struct quarantined *q =
            &control->history[(control->history_count - kept + i) % QUARANTINE_HISTORY];
        const struct view_quarantined row = {.client = q->client,
                                             .rank = q->rank,
                                             .uid = q->uid,
                                             .pid = q->pid,
                                             .age_ns = clock_ns() - q->at_ns,
                                             .job = q->job,
                                             .quarantine = q->reason};

        if (sees(a, q->uid))
            json_put_fields(row_of(a, "quarantined", ROWS_MAX, &control->workers[q->engine]), &row,
                            sizeof(row), fields_quarantined);
    }
}

static void fill_clients(struct answer *a)
{
    struct view_client rows[BATCH];

    (void)json_array_in(a->document, "clients");
    for (uint32_t i = 0; i < a->control->worker_count; i++) {
        const struct worker *w = &a->control->workers[i];
        const struct engine *e = engine_of(w);
        uint32_t from = 0;
        int got;

        while (e && (got = engine_view_clients(e, &from, rows, BATCH)) > 0)
            for (int r = 0; r < got; r++)
                put_client(a, w, &rows[r]);
    }
    put_quarantined(a);
    put_users(a);
}

static bool shows(void *context, const struct counters_session *row)
{
    const struct answer *a = context;
    uint32_t engine = (uint32_t)(row->session >> 32) % a->control->worker_count;

    return sees_client(a, &a->control->workers[engine], row->client);
}

static void put_sessions(struct answer *a, const char *key)
{
    a->truncated |= json_put_sessions(a->document, key, a->control->publisher.counters.shared,
                                      ROWS_MAX, shows, a);
}

static void put_peers(struct answer *a, const char *key)
{
    a->truncated |=
        json_put_peers(a->document, key, a->control->publisher.counters.shared, ROWS_MAX);
}

static void fill_queues(struct answer *a)
{
    put_sessions(a, "queues");
}

static void fill_ledgers(struct answer *a)
{
    put_peers(a, "ledgers");
}

static void fill_regions(struct answer *a)
{
    struct view_region rows[BATCH];

    (void)json_array_in(a->document, "regions");
    for (uint32_t i = 0; i < a->control->worker_count; i++) {
        const struct worker *w = &a->control->workers[i];
        const struct engine *e = engine_of(w);
        uint32_t from = 0;
        int got;

        while (e && !a->truncated && (got = engine_view_regions(e, &from, rows, BATCH)) > 0)
            for (int r = 0; r < got; r++) {
                json_t *row = sees_client(a, w, rows[r].client)
                                  ? row_of(a, "regions", LONG_ROWS_MAX, w)
                                  : NULL;

                if (row)
                    json_put_fields(row, &rows[r], sizeof(rows[r]), fields_region);
            }
    }
}

static void fill_programs(struct answer *a)
{
    struct view_program rows[BATCH];

    (void)json_array_in(a->document, "programs");
    for (uint32_t i = 0; i < a->control->worker_count; i++) {
        const struct worker *w = &a->control->workers[i];
        const struct engine *e = engine_of(w);
        uint32_t from = 0;
        int got;

        while (e && !a->truncated && (got = engine_view_programs(e, &from, rows, BATCH)) > 0)
            for (int r = 0; r < got; r++) {
                json_t *row = sees_client(a, w, rows[r].client)
                                  ? row_of(a, "programs", LONG_ROWS_MAX, w)
                                  : NULL;

                if (row)
                    json_put_fields(row, &rows[r], sizeof(rows[r]), fields_program);
            }
    }
}

static void fill_offloads(struct answer *a)
{
    struct view_offload rows[BATCH];

    (void)json_array_in(a->document, "offloads");
    for (uint32_t i = 0; i < a->control->worker_count; i++) {
        const struct worker *w = &a->control->workers[i];
        const struct engine *e = engine_of(w);
        uint32_t from = 0;
        int got;

        while (e && !a->truncated && (got = engine_view_offloads(e, &from, rows, BATCH)) > 0)
            for (int r = 0; r < got; r++) {
                json_t *row =
                    sees_client(a, w, rows[r].client) ? row_of(a, "offloads", ROWS_MAX, w) : NULL;

                if (row)
                    json_put_fields(row, &rows[r], sizeof(rows[r]), fields_offload);
            }
    }
}

static void fill_teams(struct answer *a)
{
    (void)json_array_in(a->document, "teams");
    for (const struct team *t = a->control->node_teams; t && !a->truncated; t = t->next)
        for (uint32_t i = 0; i < t->part_count && sees(a, t->uid); i++) {
            json_t *row = row_of(a, "teams", ROWS_MAX, t->parts[i].worker);
            char broken[TEAM_BROKEN_MAX];
            struct view_team view;

            if (!row)
                return;
            team_part_view(&t->parts[i], &view, broken);
            json_put_fields(row, &view, sizeof(view), fields_team);
        }
}

static void fill_collectives(struct answer *a)
{
    struct view_collective rows[BATCH];

    (void)json_array_in(a->document, "collectives");
    for (uint32_t i = 0; i < a->control->worker_count; i++) {
        const struct worker *w = &a->control->workers[i];
        const struct engine *e = engine_of(w);
        uint32_t from = 0;
        int got;

        while (e && (got = engine_view_collectives(e, &from, rows, BATCH)) > 0)
            for (int r = 0; r < got; r++) {
                json_t *row = row_of(a, "collectives", ROWS_MAX, w);

                if (row)
                    json_put_fields(row, &rows[r], sizeof(rows[r]), fields_collective);
            }
    }
}

static void put_exchanges(struct answer *a, const struct directory_job *job)
{
    json_t *array = json_array_in(a->document, "exchanges");
    char missing[JOB_VIEW_RANKS_MAX];

    for (uint32_t i = 0; i < DIRECTORY_OPEN_MAX; i++) {
        struct view_exchange row;

        if (!job->gathers[i].open)
            continue;
        row = job_view_exchange(job, &job->gathers[i], clock_ns(), missing);
        json_put_fields(json_row_in(array), &row, sizeof(row), fields_exchange);
    }
}

/* The jobs that this node is the home of. */
static void fill_jobs(struct answer *a)
{
    const struct directory *d = a->control->directory;
    json_t *array = json_array_in(a->document, "jobs");
    char gone[JOB_VIEW_RANKS_MAX];

    (void)json_array_in(a->document, "exchanges");
    for (uint32_t i = 0; i < DIRECTORY_JOBS_MAX; i++) {
        const struct directory_job *job = &d->jobs[i];
        struct view_job row;

        if (!job->used || !sees(a, job->uid))
            continue;
        if (json_array_size(array) == ROWS_MAX) {
            a->truncated = true;
            return;
        }
        row = job_view(job, gone);
        json_put_fields(json_row_in(array), &row, sizeof(row), fields_job);
        put_exchanges(a, job);
    }
}

/* Offers the operations of an engine that the user sees. A flow's operations are in the order of
 * their age, so the rest of a flow is passed over where one of them is too young. */
static void offer_ops(const struct answer *a, const struct worker *w, struct oldest *oldest)
{
    const struct engine *e = engine_of(w);
    struct engine_ops_at at = {0};
    struct view_op rows[BATCH];
    int got;

    while (e && (got = engine_view_ops(e, &at, rows, BATCH)) > 0) {
        bool more = sees_client(a, w, rows[0].client);

        for (int r = 0; r < got && more; r++)
            more = oldest_take(oldest, &rows[r], w->engine);
        if (!more)
            at = (struct engine_ops_at){.flow = at.flow + 1};
    }
}

static void fill_ops(struct answer *a)
{
    struct oldest oldest;
    bool opened = oldest_open(&oldest, LONG_ROWS_MAX) == 0;

    (void)json_array_in(a->document, "ops");
    for (uint32_t i = 0; opened && i < a->control->worker_count; i++)
        offer_ops(a, &a->control->workers[i], &oldest);
    oldest_sort(&oldest);
    a->truncated |= !opened || oldest.left_out;
    for (uint32_t i = 0; i < oldest.count; i++) {
        const struct view_op *op = &oldest.ops[i].op;
        json_t *row = row_of(a, "ops", LONG_ROWS_MAX, &a->control->workers[oldest.ops[i].engine]);

        put_peer(a, row, op->node);
        json_put_fields(row, op, sizeof(*op), fields_op);
    }
    oldest_close(&oldest);
}

static const char *const steps[ENGINE_LATENCIES] = {"queued", "fabric", "local"};

/* Writes a row for each step. */
static void put_latency(struct answer *a, const struct worker *w,
                        const struct engine_latency_view *v)
{
    for (uint32_t i = 0; i < ENGINE_LATENCIES; i++) {
        const struct histogram *h = &v->steps[i];
        const struct view_latency times = {.step = steps[i],
                                           .count = h->count,
                                           .sum_ns = h->sum,
                                           .p50_ns = histogram_quantile(h, 500000),
                                           .p90_ns = histogram_quantile(h, 900000),
                                           .p99_ns = histogram_quantile(h, 990000),
                                           .p999_ns = histogram_quantile(h, 999000),
                                           .max_ns = h->max};
        json_t *row = row_of(a, "latency", 3 * ROWS_MAX, w);

        if (!row)
            return;
        if (v->peer == ENGINE_LATENCY_SHARED)
            json_put_text(row, "node", NULL);
        else
            put_peer(a, row, v->peer);
        json_put_fields(row, &times, sizeof(times), fields_latency);
    }
}

/* Writes the histogram of all peers together: how many operations took no longer than each bound.
 * Buckets end at these bounds. */
static void put_sums(struct answer *a, const struct histogram *sums)
{
    json_t *array = json_array_in(a->document, "all");

    for (uint32_t i = 0; i < ENGINE_LATENCIES; i++) {
        json_t *row = json_row_in(array), *buckets = json_array_in(row, "buckets");

        json_put_text(row, "step", steps[i]);
        json_put(row, "count", sums[i].count);
        json_put(row, "sum_ns", sums[i].sum);
        for (uint32_t b = 0; b < LATENCY_BOUNDS; b++) {
            uint64_t bound = (UINT64_C(1) << (LATENCY_FIRST_POWER + b)) - 1;
            json_t *bucket = json_row_in(buckets);

            json_put(bucket, "to_ns", bound);
            json_put(bucket, "count", histogram_count_to(&sums[i], bound));
        }
    }
}

static void fill_latency(struct answer *a)
{
    struct histogram sums[ENGINE_LATENCIES] = {0};
    struct engine_latency_view v;

    (void)json_array_in(a->document, "latency");
    for (uint32_t i = 0; i < a->control->worker_count; i++) {
        const struct worker *w = &a->control->workers[i];
        const struct engine *e = engine_of(w);
        uint32_t from = 0;

        while (e && engine_view_latencies(e, &from, &v, 1) == 1) {
            put_latency(a, w, &v);
            for (uint32_t s = 0; s < ENGINE_LATENCIES; s++)
                histogram_merge(&sums[s], &v.steps[s]);
        }
    }
    put_sums(a, sums);
}

/* Writes what the counters file has, for clients that cannot map it, and which threads answer. */
static void fill_counters(struct answer *a)
{
    json_put_text(a->document, "version", PWC_VERSION);
    json_put_daemon(a->document, a->control->publisher.counters.shared);
    put_sessions(a, "sessions");
    put_peers(a, "peers");
    put_engines(a);
}

static void fill_config(struct answer *a)
{
    request_config_put(a->document, a->control);
}

static const struct topic topics[] = {
    {"status", fill_status},           {"nodes", fill_nodes},       {"clients", fill_clients},
    {"queues", fill_queues},           {"ledgers", fill_ledgers},   {"regions", fill_regions},
    {"programs", fill_programs},       {"offloads", fill_offloads}, {"teams", fill_teams},
    {"collectives", fill_collectives}, {"ops", fill_ops},           {"counters", fill_counters},
    {"latency", fill_latency},         {"config", fill_config},     {"jobs", fill_jobs},
};

const struct topic *topic_find(const char *name)
{
    for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++)
        if (strcmp(topics[i].name, name) == 0)
            return &topics[i];
    return NULL;
}

const char *topic_name(const struct topic *topic)
{
    return topic->name;
}

/* ---- the document ---------------------------------------------------------------------------- */

/* Writes whether all engines have answered, and, where there are several, which have not. */
static void put_progress(const struct answer *a)
{
    json_t *stuck = json_array();

    for (uint32_t e = 0; e < a->control->worker_count; e++)
        if (!a->question->echoed[e])
            json_array_append_new(stuck, json_integer(e));
    json_put_text(a->document, "progress", json_array_size(stuck) == 0 ? "running" : "stuck");
    if (json_array_size(stuck) > 0 && a->control->worker_count > 1)
        json_object_set(a->document, "stuck_engines", stuck);
    json_decref(stuck);
}

char *document_text(struct control *control, const struct question *question)
{
    struct answer a = {.document = json_object(), .control = control, .question = question};
    char *text;

    json_put_text(a.document, "what", question->topic->name);
    json_put(a.document, "node", control->node);
    put_progress(&a);
    publisher_write(control);
    question->topic->fill(&a);
    if (a.truncated)
        json_object_set_new(a.document, "truncated", json_true());
    text = json_text(a.document, TEXT_MAX);
    json_decref(a.document);
    return text;
}
