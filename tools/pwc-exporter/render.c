/* Makes metrics of the daemon's documents, by the tables of fields (views/fields.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tools/pwc-exporter/exporter.h"
#include "views/fields.h"

enum { LABELS_MAX = 8, NUMBER_MAX = 24, NAME_MAX_BYTES = 64 };

/* A label of each row, and the key of its value there. */
struct label_key {
    const char *label, *key;
};

static const struct label_key no_labels[] = {{0}};
static const struct label_key engine_labels[] = {{"engine", "engine"}, {0}};
static const struct label_key peer_labels[] = {{"peer", "node"}, {0}};
/* The label is not "job", which Prometheus sets itself. */
static const struct label_key client_labels[] = {{"engine", "engine"}, {"client", "client"},
                                                 {"uid", "uid"},       {"job_name", "job"},
                                                 {"rank", "rank"},     {0}};
static const struct label_key context_labels[] = {{"engine", "engine"},
                                                  {"client", "client"},
                                                  {"uid", "uid"},
                                                  {"job_name", "job"},
                                                  {"rank", "rank"},
                                                  {"context", "context"},
                                                  {0}};

/* The state of the ledgers with a node, computed from `state` by add_peer. */
static const struct field fields_link[] = {
    {"up", .kind = FIELD_OTHER, .each = {"peer_up", "1 where ledgers with that node are up."}},
    {"wanted", .kind = FIELD_OTHER,
     .each = {"peer_wanted", "1 where something waits for ledgers with that node to come up."}},
    {0},
};

static const struct openmetrics_family up = {
    "pwcd_up", OPENMETRICS_GAUGE, NULL,
    "1 where the daemon has answered; 0: it has not, and there are no other metrics."};
static const struct openmetrics_family build = {
    "pwcd_build", OPENMETRICS_INFO, NULL, "Version and provider of the daemon, and its node."};
static const struct openmetrics_family latency = {
    "pwcd_operation_latency_seconds", OPENMETRICS_HISTOGRAM, "seconds",
    "How long operations took, by step: pwcctl latency shows which, and of each peer."};

/* The rows of a document, and whether each row has samples of its own or all rows share one. */
struct source {
    const struct field *fields;
    json_t *rows;
    const struct label_key *labels;
    bool sum;
};

/* The labels of one sample, and room for the numbers among them. */
struct labels {
    struct openmetrics_label list[LABELS_MAX + 1];
    char numbers[LABELS_MAX][NUMBER_MAX];
    char word[NAME_MAX_BYTES]; /* the metric's label, as "kind=put" */
};

static uint64_t number(const json_t *row, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(row, key));
}

static const char *text(const json_t *row, const char *key)
{
    const char *found = json_string_value(json_object_get(row, key));

    return found ? found : "";
}

static const struct field_metric *metric_of(const struct source *s, const struct field *f)
{
    return s->sum ? &f->sum : &f->each;
}

/* Returns whether both are samples of one metric: their names are equal up to the label. */
static bool is_same(const struct field_metric *a, const struct field_metric *b)
{
    size_t length = strcspn(a->name, " ");

    return b->name && strcspn(b->name, " ") == length && strncmp(a->name, b->name, length) == 0;
}

/* Renders the labels; `row` NULL: those that belong to no row. */
static void make_labels(struct labels *to, const struct field_metric *metric,
                        const struct label_key *keys, const json_t *row)
{
    const char *word = strchr(metric->name, ' ');
    size_t count = 0;

    for (; row && keys->label; keys++, count++) {
        const char *value = json_string_value(json_object_get(row, keys->key));

        if (!value) {
            snprintf(to->numbers[count], NUMBER_MAX, "%" PRIu64, number(row, keys->key));
            value = to->numbers[count];
        }
        to->list[count] = (struct openmetrics_label){keys->label, value};
    }
    if (word) {
        char *value;

        snprintf(to->word, sizeof(to->word), "%s", word + 1);
        value = strchr(to->word, '=');
        *value = '\0';
        to->list[count++] = (struct openmetrics_label){to->word, value + 1};
    }
    to->list[count] = (struct openmetrics_label){0};
}

/* Writes the samples of one field that belong to this family; fields of durations are in
 * nanoseconds. */
static void write_field(const struct openmetrics *to, const struct source *s,
                        const struct openmetrics_family *family, const struct field *f)
{
    struct labels labels;
    uint64_t sum = 0;
    json_t *row;
    size_t i;

    json_array_foreach(s->rows, i, row)
    {
        sum += number(row, f->key);
        if (s->sum)
            continue;
        make_labels(&labels, &f->each, s->labels, row);
        openmetrics_sample(to, family, labels.list, number(row, f->key));
    }
    if (s->sum) {
        make_labels(&labels, &f->sum, s->labels, NULL);
        openmetrics_sample(to, family, labels.list, sum);
    }
}

static const char *unit_of(const char *name)
{
    static const char *const units[] = {"bytes", "seconds"};
    const char *end = strrchr(name, '_');

    for (size_t i = 0; end && i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(end + 1, units[i]) == 0)
            return units[i];
    return NULL;
}

static bool came_before(const struct source *s, const struct field *f)
{
    for (const struct field *g = s->fields; g < f; g++)
        if (is_same(metric_of(s, f), metric_of(s, g)))
            return true;
    return false;
}

/* Writes the metrics family by family, because all samples of a family must stand together. */
static void write_families(const struct openmetrics *to, struct source s)
{
    for (const struct field *f = s.fields; f->key; f++) {
        const struct field_metric *metric = metric_of(&s, f);
        struct openmetrics_family family = {.help = metric->help};
        char name[NAME_MAX_BYTES];

        if (!metric->name || came_before(&s, f))
            continue;
        snprintf(name, sizeof(name), "pwcd_%.*s", (int)strcspn(metric->name, " "), metric->name);
        family.name = name;
        family.unit = unit_of(name);
        family.type = f->kind == FIELD_COUNT ? OPENMETRICS_COUNTER : OPENMETRICS_GAUGE;
        openmetrics_family(to, &family);
        for (const struct field *g = f; g->key; g++)
            if (is_same(metric, metric_of(&s, g)))
                write_field(to, &s, &family, g);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Several engines may have ledgers with one node: their rows are joined. */
static void add_peer(json_t *to, const json_t *from)
{
    const char *state = text(from, "state");

    for (const struct field *f = fields_peer; f->key; f++)
        if (f->each.name)
            json_object_set_new(
                to, f->key, json_integer((json_int_t)(number(to, f->key) + number(from, f->key))));
    if (strcmp(state, "up") == 0 || strcmp(state, "wanted") == 0)
        json_object_set_new(to, state, json_integer(1));
}

static json_t *peers_of(const json_t *counters)
{
    const json_t *rows = json_object_get(counters, "peers");
    json_t *by_node = json_object(), *peers = json_array(), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        char node[NUMBER_MAX];
        json_t *peer;

        snprintf(node, sizeof(node), "%" PRIu64, number(row, "node"));
        peer = json_object_get(by_node, node);
        if (!peer) {
            peer = json_object();
            json_object_set_new(peer, "node", json_integer((json_int_t)number(row, "node")));
            json_object_set_new(by_node, node, peer);
            json_array_append(peers, peer);
        }
        add_peer(peer, row);
    }
    json_decref(by_node);
    return peers;
}

/* The labels of a context come from its client; a context whose client has gone meanwhile is left
 * out. */
static json_t *contexts_of(const struct documents *d)
{
    const json_t *sessions = json_object_get(d->counters, "sessions");
    const json_t *clients = json_object_get(d->clients, "clients");
    json_t *contexts = json_array(), *row, *client;
    size_t i, k;

    json_array_foreach(sessions, i, row) json_array_foreach(clients, k, client)
    {
        if (number(client, "client") != number(row, "client") ||
            number(client, "engine") != number(row, "engine"))
            continue;
        json_object_set(row, "uid", json_object_get(client, "uid"));
        json_object_set(row, "job", json_object_get(client, "job"));
        json_array_append(contexts, row);
        break;
    }
    return contexts;
}

static void write_build(const struct openmetrics *to, const json_t *counters)
{
    char node[NUMBER_MAX];
    const struct openmetrics_label labels[] = {{"version", text(counters, "version")},
                                               {"provider", text(counters, "provider")},
                                               {"node", node},
                                               {0}};

    snprintf(node, sizeof(node), "%" PRIu64, number(counters, "node"));
    openmetrics_family(to, &build);
    openmetrics_sample(to, &build, labels, 1);
}

static void write_latency(const struct openmetrics *to, const json_t *document)
{
    const json_t *all = json_object_get(document, "all"), *buckets;
    json_t *row, *bucket;
    size_t i, b;

    openmetrics_family(to, &latency);
    json_array_foreach(all, i, row)
    {
        const struct openmetrics_label labels[] = {{"step", text(row, "step")}, {0}};
        uint64_t count = number(row, "count");

        buckets = json_object_get(row, "buckets");
        json_array_foreach(buckets, b, bucket)
        {
            openmetrics_bucket(to, &latency, labels, number(bucket, "to_ns"),
                               number(bucket, "count"));
            /* Times may have been added between the reading of the total and that of the buckets.
             */
            count = number(bucket, "count") > count ? number(bucket, "count") : count;
        }
        openmetrics_bucket(to, &latency, labels, UINT64_MAX, count);
        openmetrics_sum(to, &latency, labels, number(row, "sum_ns"), count);
    }
}

static void write_document(const struct openmetrics *to, const struct documents *d)
{
    json_t *daemon = json_pack("[O]", d->counters), *peers = peers_of(d->counters);
    json_t *sessions = json_object_get(d->counters, "sessions");
    json_t *engines = json_object_get(d->counters, "engines");

    write_build(to, d->counters);
    write_families(to, (struct source){fields_daemon, daemon, no_labels, false});
    write_families(to, (struct source){fields_session, sessions, no_labels, true});
    write_latency(to, d->latency);
    write_families(to, (struct source){fields_engine, engines, engine_labels, false});
    write_families(to, (struct source){fields_link, peers, peer_labels, false});
    write_families(to, (struct source){fields_peer, peers, peer_labels, false});
    if (d->clients) {
        json_t *contexts = contexts_of(d), *clients = json_object_get(d->clients, "clients");

        write_families(to, (struct source){fields_session, contexts, context_labels, false});
        write_families(to, (struct source){fields_client, clients, client_labels, false});
        json_decref(contexts);
    }
    json_decref(peers);
    json_decref(daemon);
}

char *render(const struct documents *d, bool plain)
{
    char *text = NULL;
    size_t length;
    const struct openmetrics to = {open_memstream(&text, &length), plain};

    if (!to.to)
        return NULL;
    openmetrics_family(&to, &up);
    openmetrics_sample(&to, &up, NULL, d != NULL);
    if (d)
        write_document(&to, d);
    openmetrics_end(&to);
    if (ferror(to.to) | fclose(to.to)) {
        free(text);
        return NULL;
    }
    return text;
}
