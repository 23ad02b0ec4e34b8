/* Owns the table of metrics, and how rows of values become samples (metrics.h). */
#include "daemon/control/watch/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NODE(member)    offsetof(struct metrics_node, member)
#define ENGINE(member)  offsetof(struct metrics_engine, member)
#define PEER(member)    offsetof(struct metrics_peer, member)
#define CONTEXT(member) offsetof(struct metrics_context, member)
#define CLIENT(member)  offsetof(struct metrics_client, member)

enum {
    LABELS_MAX = 8,
    NUMBER_MAX = 24,
    VALUES_MAX = 4,
    LATENCY_FIRST_POWER = 10,
    LATENCY_BOUNDS = 21,
};

/* One of a family's samples of a row. Families in seconds have values in nanoseconds. */
struct value {
    size_t offset;    /* in the row */
    const char *word; /* of the family's label; NULL: behind the last */
};

struct family {
    struct openmetrics_family is;
    const char *label; /* that tells its values apart; NULL: there is one */
    struct value values[VALUES_MAX + 1];
};

static const struct openmetrics_family build = {
    "pwcd_build", OPENMETRICS_INFO, NULL, "Version and provider of the daemon, and its node."};

static const struct family node_families[] = {
    {{"pwcd_start_time_seconds", OPENMETRICS_GAUGE, "seconds",
      "When the process started, in seconds of the time of day."},
     NULL,
     {{NODE(started_ns), ""}}},
    {{"pwcd_nodes", OPENMETRICS_GAUGE, NULL, "Nodes in the list, this one included."},
     NULL,
     {{NODE(nodes), ""}}},
    {{"pwcd_clients", OPENMETRICS_GAUGE, NULL, "Processes that are attached."},
     NULL,
     {{NODE(clients), ""}}},
    {{"pwcd_contexts", OPENMETRICS_GAUGE, NULL, "Contexts of clients."},
     NULL,
     {{NODE(contexts), ""}}},
    {{"pwcd_segments", OPENMETRICS_GAUGE, NULL, "Segments of clients."},
     NULL,
     {{NODE(segments), ""}}},
    {{"pwcd_regions", OPENMETRICS_GAUGE, NULL, "Regions that peers may reach."},
     NULL,
     {{NODE(regions), ""}}},
    {{"pwcd_memory_bytes", OPENMETRICS_GAUGE, "bytes", "Segments and rings of all clients."},
     NULL,
     {{NODE(memory), ""}}},
    {{"pwcd_clients_quarantined", OPENMETRICS_COUNTER, NULL,
      "Clients that were ended because they broke the protocol."},
     NULL,
     {{NODE(quarantined), ""}}},
    {{"pwcd_requests_refused", OPENMETRICS_COUNTER, NULL, "Requests beyond a quota."},
     NULL,
     {{NODE(refused), ""}}},
    {{"pwcd_operations", OPENMETRICS_COUNTER, NULL,
      "Operations that the daemon has taken from clients, by kind."},
     "kind",
     {{NODE(put_ops), "put"}, {NODE(get_ops), "get"}, {NODE(am_ops), "am"}}},
    {{"pwcd_operation_bytes", OPENMETRICS_COUNTER, "bytes", "Payload of these operations."},
     "kind",
     {{NODE(put_bytes), "put"}, {NODE(get_bytes), "get"}, {NODE(am_bytes), "am"}}},
    {{"pwcd_operation_errors", OPENMETRICS_COUNTER, NULL, "Operations that ended with an error."},
     NULL,
     {{NODE(errors), ""}}},
    {{"pwcd_operations_in_flight", OPENMETRICS_GAUGE, NULL, "Operations that have not ended."},
     NULL,
     {{NODE(in_flight), ""}}},
    {{"pwcd_events_delivered", OPENMETRICS_COUNTER, NULL,
      "Remote events and messages that were delivered to clients."},
     NULL,
     {{NODE(delivered), ""}}},
    {{"pwcd_events_spilled", OPENMETRICS_COUNTER, NULL,
      "Events that found a client's ring full, and were kept aside."},
     NULL,
     {{NODE(spilled), ""}}},
    {{"pwcd_spill_bytes", OPENMETRICS_GAUGE, "bytes", "Events kept aside now."},
     NULL,
     {{NODE(spill_bytes), ""}}},
    {{"pwcd_ring_used_bytes", OPENMETRICS_GAUGE, "bytes",
      "What stands in the rings of all contexts."},
     "ring",
     {{NODE(submit_used), "submit"},
      {NODE(local_used), "local"},
      {NODE(remote_used), "remote"},
      {NODE(reply_used), "reply"}}},
    {{"pwcd_replies_expected", OPENMETRICS_GAUGE, NULL,
      "Requests of clients here that may be replied to and are not yet."},
     NULL,
     {{NODE(replies_expected), ""}}},
    {{"pwcd_replies_owed", OPENMETRICS_GAUGE, NULL,
      "Requests delivered to clients here that may be replied to and are not yet."},
     NULL,
     {{NODE(replies_owed), ""}}},
    {.label = NULL},
};

static const struct openmetrics_family latency = {
    "pwcd_operation_latency_seconds", OPENMETRICS_HISTOGRAM, "seconds",
    "How long operations took, by step: pwcctl latency tells which, and of each peer."};

static const struct family engine_families[] = {
    {{"pwcd_progress_responding", OPENMETRICS_GAUGE, NULL,
      "1 where the progress thread has answered within a second; 0: it is stuck."},
     NULL,
     {{ENGINE(responding), ""}}},
    {{"pwcd_progress_clients", OPENMETRICS_GAUGE, NULL, "Clients that the thread serves."},
     NULL,
     {{ENGINE(clients), ""}}},
    {{"pwcd_progress_cpu_seconds", OPENMETRICS_COUNTER, "seconds",
      "Processor time of the progress thread."},
     NULL,
     {{ENGINE(cpu_ns), ""}}},
    {{"pwcd_progress_rounds", OPENMETRICS_COUNTER, NULL, "Rounds of the progress thread."},
     NULL,
     {{ENGINE(rounds), ""}}},
    {{"pwcd_progress_work", OPENMETRICS_COUNTER, NULL, "Records and events that it has handled."},
     NULL,
     {{ENGINE(work), ""}}},
    {{"pwcd_progress_sleeps", OPENMETRICS_COUNTER, NULL, "How often it went to sleep."},
     NULL,
     {{ENGINE(sleeps), ""}}},
    {{"pwcd_progress_commands", OPENMETRICS_COUNTER, NULL,
      "Commands of the control thread that it has carried out."},
     NULL,
     {{ENGINE(commands), ""}}},
    {.label = NULL},
};

static const struct family peer_families[] = {
    {{"pwcd_peer_up", OPENMETRICS_GAUGE, NULL, "1 where ledgers with that node are up."},
     NULL,
     {{PEER(up), ""}}},
    {{"pwcd_peer_wanted", OPENMETRICS_GAUGE, NULL,
      "1 where something waits for ledgers with that node to come up."},
     NULL,
     {{PEER(wanted), ""}}},
    {{"pwcd_peer_records", OPENMETRICS_COUNTER, NULL, "Records to and from that node."},
     "direction",
     {{PEER(records_out), "out"}, {PEER(records_in), "in"}}},
    {{"pwcd_peer_runs", OPENMETRICS_COUNTER, NULL,
      "Runs of records to and from that node, one fabric write each."},
     "direction",
     {{PEER(runs_out), "out"}, {PEER(runs_in), "in"}}},
    {{"pwcd_peer_ledger_traffic_bytes", OPENMETRICS_COUNTER, "bytes",
      "What went through the ledgers: records, and payload packed with them."},
     "direction",
     {{PEER(tx_sent), "out"}, {PEER(rx_consumed), "in"}}},
    {{"pwcd_peer_ledger_bytes", OPENMETRICS_GAUGE, "bytes", "Size of the ledgers."},
     "direction",
     {{PEER(tx_bytes), "out"}, {PEER(rx_bytes), "in"}}},
    {{"pwcd_peer_ledger_credit_bytes", OPENMETRICS_GAUGE, "bytes",
      "What is free in the ledger towards that node."},
     NULL,
     {{PEER(tx_credit), ""}}},
    {{"pwcd_peer_ledger_starved", OPENMETRICS_COUNTER, NULL,
      "How often a record waited for room in the ledger."},
     NULL,
     {{PEER(starved), ""}}},
    {{"pwcd_peer_ledger_grown", OPENMETRICS_COUNTER, NULL, "How often a ledger was made larger."},
     NULL,
     {{PEER(grown), ""}}},
    {{"pwcd_peer_operations_awaited", OPENMETRICS_GAUGE, NULL,
      "Operations whose consumption by that node is awaited."},
     NULL,
     {{PEER(awaited), ""}}},
    {{"pwcd_peer_operation_latency_seconds", OPENMETRICS_COUNTER, "seconds",
      "How long operations towards that node took in all, by step."},
     "step",
     {{PEER(timed_ns[ENGINE_LATENCY_QUEUED]), "queued"},
      {PEER(timed_ns[ENGINE_LATENCY_FABRIC]), "fabric"},
      {PEER(timed_ns[ENGINE_LATENCY_LOCAL]), "local"}}},
    {{"pwcd_peer_operations_timed", OPENMETRICS_COUNTER, NULL, "How many of them there were."},
     "step",
     {{PEER(timed[ENGINE_LATENCY_QUEUED]), "queued"},
      {PEER(timed[ENGINE_LATENCY_FABRIC]), "fabric"},
      {PEER(timed[ENGINE_LATENCY_LOCAL]), "local"}}},
    {.label = NULL},
};

static const struct family context_families[] = {
    {{"pwcd_context_operations", OPENMETRICS_COUNTER, NULL,
      "Operations that the daemon has taken from the context, by kind."},
     "kind",
     {{CONTEXT(put_ops), "put"}, {CONTEXT(get_ops), "get"}, {CONTEXT(am_ops), "am"}}},
    {{"pwcd_context_operation_bytes", OPENMETRICS_COUNTER, "bytes", "Payload of these operations."},
     "kind",
     {{CONTEXT(put_bytes), "put"}, {CONTEXT(get_bytes), "get"}, {CONTEXT(am_bytes), "am"}}},
    {{"pwcd_context_direct_operations", OPENMETRICS_COUNTER, NULL,
      "Operations to neighbours without the daemon, as the client says."},
     "kind",
     {{CONTEXT(direct_put_ops), "put"},
      {CONTEXT(direct_get_ops), "get"},
      {CONTEXT(direct_am_ops), "am"}}},
    {{"pwcd_context_direct_operation_bytes", OPENMETRICS_COUNTER, "bytes",
      "Payload of these operations."},
     "kind",
     {{CONTEXT(direct_put_bytes), "put"},
      {CONTEXT(direct_get_bytes), "get"},
      {CONTEXT(direct_am_bytes), "am"}}},
    {{"pwcd_context_operation_errors", OPENMETRICS_COUNTER, NULL,
      "Operations of the context that ended with an error."},
     NULL,
     {{CONTEXT(errors), ""}}},
    {{"pwcd_context_operations_in_flight", OPENMETRICS_GAUGE, NULL,
      "Operations of the context that have not ended."},
     NULL,
     {{CONTEXT(in_flight), ""}}},
    {{"pwcd_context_events_delivered", OPENMETRICS_COUNTER, NULL,
      "Remote events and messages that were delivered to the context."},
     NULL,
     {{CONTEXT(delivered), ""}}},
    {{"pwcd_context_events_spilled", OPENMETRICS_COUNTER, NULL,
      "Events that found the context's ring full."},
     NULL,
     {{CONTEXT(spilled), ""}}},
    {{"pwcd_context_spill_bytes", OPENMETRICS_GAUGE, "bytes", "Its events kept aside now."},
     NULL,
     {{CONTEXT(spill_bytes), ""}}},
    {{"pwcd_context_ring_used_bytes", OPENMETRICS_GAUGE, "bytes",
      "What stands in the rings of the context."},
     "ring",
     {{CONTEXT(submit_used), "submit"},
      {CONTEXT(local_used), "local"},
      {CONTEXT(remote_used), "remote"},
      {CONTEXT(reply_used), "reply"}}},
    {.label = NULL},
};

static const struct family client_families[] = {
    {{"pwcd_client_memory_bytes", OPENMETRICS_GAUGE, "bytes", "Segments and rings of the client."},
     NULL,
     {{CLIENT(memory), ""}}},
    {.label = NULL},
};

/* ---- rendering ------------------------------------------------------------------------------- */

/* The labels of one sample, and room for the numbers among them. */
struct labels {
    struct openmetrics_label list[LABELS_MAX + 1];
    char numbers[LABELS_MAX][NUMBER_MAX];
    size_t count;
};

static void label_text(struct labels *labels, const char *name, const char *value)
{
    labels->list[labels->count++] = (struct openmetrics_label){name, value};
}

static void label_number(struct labels *labels, const char *name, uint64_t value)
{
    char *number = labels->numbers[labels->count];

    snprintf(number, NUMBER_MAX, "%" PRIu64, value);
    label_text(labels, name, number);
}

static void label_node(struct labels *labels, const void *row)
{
    (void)labels, (void)row;
}

static void label_engine(struct labels *labels, const void *row)
{
    label_number(labels, "engine", ((const struct metrics_engine *)row)->engine);
}

static void label_peer(struct labels *labels, const void *row)
{
    label_number(labels, "peer", ((const struct metrics_peer *)row)->node);
}

static void label_client(struct labels *labels, const void *row)
{
    const struct metrics_owner *owner = row;

    label_number(labels, "engine", owner->engine);
    label_number(labels, "client", owner->client);
    label_number(labels, "uid", owner->uid);
    label_text(labels, "job_name", owner->job); /* job is the scraper's */
    label_number(labels, "rank", owner->rank);
}

static void label_context(struct labels *labels, const void *row)
{
    label_client(labels, row);
    label_number(labels, "context", ((const struct metrics_owner *)row)->context);
}

struct rows {
    const void *first;
    size_t size, count;
    void (*label)(struct labels *labels, const void *row);
};

static void render_row(struct openmetrics *to, const struct family *family, const struct rows *rows,
                       const void *row)
{
    struct labels labels = {0};
    size_t own;

    rows->label(&labels, row);
    own = labels.count;
    for (const struct value *v = family->values; v->word; v++) {
        uint64_t value;

        memcpy(&value, (const char *)row + v->offset, sizeof(value));
        labels.count = own;
        if (family->label)
            label_text(&labels, family->label, v->word);
        if (family->is.unit && strcmp(family->is.unit, "seconds") == 0)
            openmetrics_seconds(to, &family->is, labels.list, value);
        else
            openmetrics_sample(to, &family->is, labels.list, value);
    }
}

/* All samples of a family stand together. */
static void render(struct openmetrics *to, const struct family *families, struct rows rows)
{
    for (const struct family *family = families; family->is.name; family++) {
        openmetrics_family(to, &family->is);
        for (size_t i = 0; i < rows.count; i++)
            render_row(to, family, &rows, (const char *)rows.first + i * rows.size);
    }
}

static void render_build(struct openmetrics *to, const struct metrics *m)
{
    struct labels labels = {0};

    label_text(&labels, "version", m->version);
    label_text(&labels, "provider", m->provider);
    label_number(&labels, "node", m->node_number);
    openmetrics_family(to, &build);
    openmetrics_sample(to, &build, labels.list, 1);
}

/* A bound for each power of two from 1 us to 1 s: where buckets of the daemon's end, too. */
static void render_latency(struct openmetrics *to, const struct metrics *m)
{
    static const char *const steps[ENGINE_LATENCIES] = {"queued", "fabric", "local"};
    uint64_t bounds[LATENCY_BOUNDS], counts[LATENCY_BOUNDS + 1];

    openmetrics_family(to, &latency);
    for (uint32_t i = 0; i < ENGINE_LATENCIES; i++) {
        const struct histogram *h = &m->latency.steps[i];
        const struct openmetrics_label labels[] = {{"step", steps[i]}, {0}};
        uint64_t before = 0;

        for (uint32_t b = 0; b < LATENCY_BOUNDS; b++) {
            uint64_t until;

            bounds[b] = (UINT64_C(1) << (LATENCY_FIRST_POWER + b)) - 1;
            until = histogram_count_to(h, bounds[b]);
            counts[b] = until - before;
            before = until;
        }
        counts[LATENCY_BOUNDS] = histogram_count(h) - before;
        openmetrics_histogram(
            to, &latency, labels,
            &(struct openmetrics_buckets){
                .bounds_ns = bounds, .counts = counts, .bounds = LATENCY_BOUNDS, .sum_ns = h->sum});
    }
}

void metrics_render(const struct metrics *m, struct openmetrics *to)
{
    render_build(to, m);
    render(to, node_families, (struct rows){&m->node, sizeof(m->node), 1, label_node});
    render_latency(to, m);
    render(to, engine_families,
           (struct rows){m->engines, sizeof(*m->engines), m->engine_count, label_engine});
    render(to, peer_families,
           (struct rows){m->peers, sizeof(*m->peers), m->peer_count, label_peer});
    if (m->has_clients) {
        render(to, context_families,
               (struct rows){m->contexts, sizeof(*m->contexts), m->context_count, label_context});
        render(to, client_families,
               (struct rows){m->clients, sizeof(*m->clients), m->client_count, label_client});
    }
    openmetrics_end(to);
}
