/* The columns of each view, and their rendering. The keys are those of docs/inspect.md. */
#include "tools/pwcctl/view.h"
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>
#include "tools/pwcctl/format.h"
#include "tools/pwcctl/table.h"

struct column {
    const char *key;
    const char *title;
    enum format format;
    bool left;
};

#define ROWS_MAX 3

/* Rows of a document: tables that stand below one another. */
struct rows {
    const char *key; /* of the array */
    const struct column *columns;
};

struct view {
    const char *name;
    bool members; /* the document's own members, one a line, come first */
    struct rows rows[ROWS_MAX];
};

static const struct column node_columns[] = {{"node", "node", FORMAT_PLAIN, false},
                                             {"address", "address", FORMAT_PLAIN, true},
                                             {"state", "state", FORMAT_PLAIN, true},
                                             {"ledgers", "ledgers", FORMAT_PLAIN, true},
                                             {"incarnation", "incarnation", FORMAT_PLAIN, false},
                                             {"runs_out", "runs out", FORMAT_COUNT, false},
                                             {"runs_in", "in", FORMAT_COUNT, false},
                                             {"reason", "reason", FORMAT_PLAIN, true},
                                             {0}};

static const struct column client_columns[] = {{"client", "client", FORMAT_PLAIN, false},
                                               {"job", "job", FORMAT_PLAIN, true},
                                               {"rank", "rank", FORMAT_PLAIN, false},
                                               {"size", "of", FORMAT_PLAIN, false},
                                               {"uid", "uid", FORMAT_PLAIN, false},
                                               {"pid", "pid", FORMAT_PLAIN, false},
                                               {"sessions", "contexts", FORMAT_PLAIN, false},
                                               {"segments", "segments", FORMAT_PLAIN, false},
                                               {"regions", "regions", FORMAT_PLAIN, false},
                                               {"quarantine", "quarantine", FORMAT_PLAIN, true},
                                               {0}};

/* Clients that broke the protocol and are gone. */
static const struct column quarantined_columns[] = {
    {"client", "gone", FORMAT_PLAIN, false},   {"job", "job", FORMAT_PLAIN, true},
    {"rank", "rank", FORMAT_PLAIN, false},     {"uid", "uid", FORMAT_PLAIN, false},
    {"pid", "pid", FORMAT_PLAIN, false},       {"age_ns", "ago", FORMAT_NS, false},
    {"quarantine", "why", FORMAT_PLAIN, true}, {0}};

static const struct column user_columns[] = {
    {"uid", "user", FORMAT_PLAIN, false},          {"clients", "clients", FORMAT_PLAIN, false},
    {"contexts", "contexts", FORMAT_PLAIN, false}, {"segments", "segments", FORMAT_PLAIN, false},
    {"regions", "regions", FORMAT_PLAIN, false},   {"bytes", "bytes", FORMAT_BYTES, false},
    {"refused", "refused", FORMAT_COUNT, false},   {0}};

static const struct column queue_columns[] = {
    {"client", "client", FORMAT_PLAIN, false},
    {"rank", "rank", FORMAT_PLAIN, false},
    {"context", "ctx", FORMAT_PLAIN, false},
    {"waits", "waits", FORMAT_PLAIN, true},
    {"submit_used", "submit", FORMAT_BYTES, false},
    {"submit_high", "high", FORMAT_BYTES, false},
    {"local_used", "local", FORMAT_BYTES, false},
    {"local_high", "high", FORMAT_BYTES, false},
    {"remote_used", "remote", FORMAT_BYTES, false},
    {"remote_high", "high", FORMAT_BYTES, false},
    {"in_flight", "flight", FORMAT_COUNT, false},
    {"put_ops", "puts", FORMAT_COUNT, false},
    {"put_bytes", "bytes", FORMAT_BYTES, false},
    {"get_ops", "gets", FORMAT_COUNT, false},
    {"get_bytes", "bytes", FORMAT_BYTES, false},
    {"am_ops", "AMs", FORMAT_COUNT, false},
    {"am_bytes", "bytes", FORMAT_BYTES, false},
    {"direct_put_ops", "direct puts", FORMAT_COUNT, false},
    {"direct_put_bytes", "bytes", FORMAT_BYTES, false},
    {"direct_get_ops", "direct gets", FORMAT_COUNT, false},
    {"direct_get_bytes", "bytes", FORMAT_BYTES, false},
    {"replies_expected", "awaits", FORMAT_COUNT, false},
    {"replies_owed", "owes", FORMAT_COUNT, false},
    {"errors", "errors", FORMAT_COUNT, false},
    {"spill_bytes", "spill", FORMAT_BYTES, false},
    {0}};

static const struct column ledger_columns[] = {{"node", "node", FORMAT_PLAIN, false},
                                               {"tx_bytes", "out", FORMAT_BYTES, false},
                                               {"tx_credit", "credit", FORMAT_BYTES, false},
                                               {"records_out", "records", FORMAT_COUNT, false},
                                               {"sent_pending", "awaited", FORMAT_COUNT, false},
                                               {"starved", "starved", FORMAT_COUNT, false},
                                               {"grown", "grown", FORMAT_COUNT, false},
                                               {"rx_bytes", "in", FORMAT_BYTES, false},
                                               {"records_in", "records", FORMAT_COUNT, false},
                                               {"rx_consumed", "consumed", FORMAT_PLAIN, false},
                                               {"rx_acked", "returned", FORMAT_PLAIN, false},
                                               {0}};

static const struct column region_columns[] = {
    {"slot", "slot", FORMAT_PLAIN, false},     {"generation", "gen", FORMAT_PLAIN, false},
    {"client", "client", FORMAT_PLAIN, false}, {"segment", "segment", FORMAT_PLAIN, false},
    {"offset", "offset", FORMAT_PLAIN, false}, {"length", "length", FORMAT_BYTES, false},
    {"rights", "rights", FORMAT_PLAIN, true},  {"state", "state", FORMAT_PLAIN, true},
    {"grants", "grants", FORMAT_PLAIN, false}, {0}};

static const struct column op_columns[] = {
    {"client", "client", FORMAT_PLAIN, false},     {"session", "session", FORMAT_PLAIN, false},
    {"sequence", "sequence", FORMAT_PLAIN, false}, {"kind", "kind", FORMAT_PLAIN, true},
    {"state", "state", FORMAT_PLAIN, true},        {"node", "node", FORMAT_PLAIN, false},
    {"rank", "rank", FORMAT_PLAIN, false},         {"length", "length", FORMAT_BYTES, false},
    {"age_ns", "age", FORMAT_NS, false},           {0}};

static const struct column latency_columns[] = {{"node", "node", FORMAT_PLAIN, false},
                                                {"step", "step", FORMAT_PLAIN, true},
                                                {"count", "count", FORMAT_COUNT, false},
                                                {"p50_ns", "p50", FORMAT_NS, false},
                                                {"p90_ns", "p90", FORMAT_NS, false},
                                                {"p99_ns", "p99", FORMAT_NS, false},
                                                {"p999_ns", "p99.9", FORMAT_NS, false},
                                                {"max_ns", "max", FORMAT_NS, false},
                                                {0}};
static const struct column config_columns[] = {{"key", "key", FORMAT_PLAIN, true},
                                               {"value", "value", FORMAT_PLAIN, true},
                                               {"source", "from", FORMAT_PLAIN, true},
                                               {"place", "where", FORMAT_PLAIN, true},
                                               {0}};

/* Of a daemon with several progress threads. */
static const struct column thread_columns[] = {{"clients", "clients", FORMAT_PLAIN, false},
                                               {"heartbeat", "rounds", FORMAT_COUNT, false},
                                               {"work", "work", FORMAT_COUNT, false},
                                               {"sleeps", "sleeps", FORMAT_COUNT, false},
                                               {"progress_cpu_ns", "processor", FORMAT_NS, false},
                                               {0}};

/* Of daemons with several progress threads: in front, where a row has them. */
static const struct column engine_columns[] = {
    {"engine", "engine", FORMAT_PLAIN, false}, {"peer_engine", "peer's", FORMAT_PLAIN, false}, {0}};

static const struct view views[] = {
    {"status", true, {{"engines", thread_columns}}},
    {"nodes", false, {{"nodes", node_columns}}},
    {"clients",
     false,
     {{"clients", client_columns}, {"users", user_columns}, {"quarantined", quarantined_columns}}},
    {"queues", false, {{"queues", queue_columns}}},
    {"ledgers", false, {{"ledgers", ledger_columns}}},
    {"regions", false, {{"regions", region_columns}}},
    {"ops", false, {{"ops", op_columns}}},
    {"latency", false, {{"latency", latency_columns}}},
    {"config", false, {{"config", config_columns}}},
    {"counters", true, {{"sessions", queue_columns}, {"peers", ledger_columns}}},
};

const struct view *view_find(const char *name)
{
    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++)
        if (strcmp(name, views[i].name) == 0)
            return &views[i];
    return NULL;
}

static size_t column_count(const struct column *columns)
{
    size_t count = 0;
    while (count < TABLE_COLUMNS_MAX - 2 && columns[count].key != NULL)
        count++;
    return count;
}

static bool add_text(struct table *table, const char *text)
{
    char *cell = table_cell(table);
    if (cell != NULL)
        snprintf(cell, TABLE_CELL_MAX, "%s", text);
    return cell != NULL;
}

static bool add_value(struct table *table, const json_t *value, enum format format)
{
    char *cell = table_cell(table);
    if (cell != NULL)
        format_cell(value, format, cell);
    return cell != NULL;
}

static bool any_has(const json_t *rows, const char *key)
{
    for (size_t r = 0; r < json_array_size(rows); r++)
        if (json_object_get(json_array_get(rows, r), key) != NULL)
            return true;
    return false;
}

static int print_rows(const struct rows *what, const json_t *document, FILE *to)
{
    const json_t *rows = json_object_get(document, what->key);
    struct column columns[TABLE_COLUMNS_MAX];
    size_t count = 0;
    if (!json_is_array(rows))
        return -EBADMSG;
    for (const struct column *c = engine_columns; c->key != NULL; c++)
        if (any_has(rows, c->key))
            columns[count++] = *c;
    memcpy(columns + count, what->columns, column_count(what->columns) * sizeof(columns[0]));
    count += column_count(what->columns);
    struct table table;
    table_open(&table, count);
    bool whole = true;
    for (size_t c = 0; c < count; c++) {
        table.left[c] = columns[c].left;
        whole = whole && add_text(&table, columns[c].title);
    }
    for (size_t r = 0; r < json_array_size(rows); r++) {
        const json_t *row = json_array_get(rows, r);
        for (size_t c = 0; c < count; c++)
            whole =
                whole && add_value(&table, json_object_get(row, columns[c].key), columns[c].format);
    }
    if (whole)
        table_print(&table, to);
    table_close(&table);
    return whole ? 0 : -ENOMEM;
}

/* Durations and shares are told by the end of their keys. */
static enum format format_of(const char *key)
{
    size_t length = strlen(key);
    if (length > 3 && strcmp(key + length - 3, "_ns") == 0)
        return FORMAT_NS;
    if (length > 2 && strcmp(key + length - 2, "_s") == 0)
        return FORMAT_SECONDS;
    return length > 8 && strcmp(key + length - 8, "_percent") == 0 ? FORMAT_PERCENT : FORMAT_PLAIN;
}

/* Members one a line; those that hold objects or arrays are other views' matter. */
static int print_members(json_t *document, FILE *to)
{
    struct table table;
    const char *key;
    json_t *value;
    bool whole = true;
    table_open(&table, 2);
    table.left[0] = table.left[1] = true;
    json_object_foreach(document, key, value) if (!json_is_object(value) && !json_is_array(value))
        whole = whole && add_text(&table, key) && add_value(&table, value, format_of(key));
    if (whole)
        table_print(&table, to);
    table_close(&table);
    return whole ? 0 : -ENOMEM;
}

/* With one thread, and from an older daemon. */
static bool is_optional(const struct rows *rows)
{
    return rows->columns == thread_columns || rows->columns == user_columns;
}

int view_print(const struct view *view, const char *json, FILE *to)
{
    json_error_t error;
    json_t *document = json_loads(json, 0, &error);
    int rc = json_is_object(document) ? 0 : -EBADMSG;
    if (rc == 0 && view->members)
        rc = print_members(document, to);
    for (size_t i = 0; rc == 0 && i < ROWS_MAX && view->rows[i].key != NULL; i++) {
        if (is_optional(&view->rows[i]) && !json_object_get(document, view->rows[i].key))
            continue;
        if (i > 0 || view->members)
            fputc('\n', to);
        rc = print_rows(&view->rows[i], document, to);
    }
    if (rc == -EBADMSG)
        fprintf(stderr,
                "pwcctl: the daemon's answer is not what \"%s\" should be: %s; --json shows it\n",
                view->name, document == NULL ? error.text : "its rows are missing");
    json_decref(document);
    return rc;
}
