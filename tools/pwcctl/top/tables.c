/* Owns the tables' columns, and how rows of several documents become one (tables.h). */
#include "tools/pwcctl/top/tables.h"
#include <stdio.h>
#include <string.h>

static const struct top_column client_columns[] = {
    {"ENG", "engine", TOP_NUMBER, UNIT_NONE, 3, 3, NULL, NULL, true},
    {"CLIENT", "client", TOP_NUMBER, UNIT_NONE, 6, 2, NULL, NULL, false},
    {"JOB", "job", TOP_TEXT, UNIT_NONE, 8, 1, NULL, NULL, false},
    {"RANK", "rank", TOP_NUMBER, UNIT_NONE, 4, 1, NULL, NULL, false},
    {"UID", "uid", TOP_NUMBER, UNIT_NONE, 5, 9, NULL, NULL, false},
    {"PID", "pid", TOP_NUMBER, UNIT_NONE, 7, 5, NULL, NULL, false},
    {"CTX", "sessions", TOP_NUMBER, UNIT_NONE, 3, 7, NULL, NULL, false},
    {"OPS/S", "ops", TOP_RATE, UNIT_COUNT, 6, 1, NULL, NULL, false},
    {"BYTES/S", "op_bytes", TOP_RATE, UNIT_BYTES, 7, 1, NULL, NULL, false},
    {"EVENTS/S", "delivered", TOP_RATE, UNIT_COUNT, 8, 3, NULL, NULL, false},
    {"DIRECT/S", "direct_ops", TOP_RATE, UNIT_COUNT, 8, 4, NULL, NULL, false},
    {"FLIGHT", "in_flight", TOP_NUMBER, UNIT_COUNT, 6, 2, NULL, NULL, false},
    {"MEMORY", "bytes", TOP_NUMBER, UNIT_BYTES, 7, 6, NULL, NULL, false},
    {"ERRORS", "errors", TOP_NUMBER, UNIT_COUNT, 6, 6, NULL, NULL, false},
    {"QUARANTINE", "quarantine", TOP_TEXT, UNIT_NONE, 10, 8, NULL, NULL, true},
};

static const struct top_column queue_columns[] = {
    {"ENG", "engine", TOP_NUMBER, UNIT_NONE, 3, 4, NULL, NULL, true},
    {"JOB", "job", TOP_TEXT, UNIT_NONE, 6, 6, NULL, NULL, false},
    {"RANK", "rank", TOP_NUMBER, UNIT_NONE, 4, 1, NULL, NULL, false},
    {"CTX", "context", TOP_NUMBER, UNIT_NONE, 3, 1, NULL, NULL, false},
    {"WAITS", "waits", TOP_TEXT, UNIT_NONE, 5, 3, NULL, NULL, false},
    {"PUT/S", "put_ops", TOP_RATE, UNIT_COUNT, 6, 2, NULL, NULL, false},
    {"GET/S", "get_ops", TOP_RATE, UNIT_COUNT, 6, 3, NULL, NULL, false},
    {"AM/S", "am_ops", TOP_RATE, UNIT_COUNT, 6, 3, NULL, NULL, false},
    {"BYTES/S", "op_bytes", TOP_RATE, UNIT_BYTES, 7, 2, NULL, NULL, false},
    {"EVENTS/S", "delivered", TOP_RATE, UNIT_COUNT, 8, 7, NULL, NULL, false},
    {"DIRECT/S", "direct_ops", TOP_RATE, UNIT_COUNT, 8, 8, NULL, NULL, false},
    {"FLIGHT", "in_flight", TOP_NUMBER, UNIT_COUNT, 6, 2, NULL, NULL, false},
    {"SUBMIT", "submit_used", TOP_BAR, UNIT_PERCENT, 8, 2, "submit_size", "submit_high", false},
    {"LOCAL", "local_used", TOP_BAR, UNIT_PERCENT, 8, 5, "local_size", "local_high", false},
    {"REMOTE", "remote_used", TOP_BAR, UNIT_PERCENT, 8, 4, "remote_size", "remote_high", false},
    {"SPILL", "spill_bytes", TOP_NUMBER, UNIT_BYTES, 6, 9, NULL, NULL, false},
    {"ERRORS", "errors", TOP_NUMBER, UNIT_COUNT, 6, 10, NULL, NULL, false},
    {"OWES", "replies_owed", TOP_NUMBER, UNIT_COUNT, 5, 12, NULL, NULL, false},
    {"AWAITS", "replies_expected", TOP_NUMBER, UNIT_COUNT, 6, 11, NULL, NULL, false},
};

static const struct top_column peer_columns[] = {
    {"ENG", "engine", TOP_NUMBER, UNIT_NONE, 3, 3, NULL, NULL, true},
    {"NODE", "node", TOP_NUMBER, UNIT_NONE, 4, 1, NULL, NULL, false},
    {"ITS", "peer_engine", TOP_NUMBER, UNIT_NONE, 3, 3, NULL, NULL, true},
    {"STATE", "state", TOP_TEXT, UNIT_NONE, 6, 1, NULL, NULL, false},
    {"OUT/S", "records_out", TOP_RATE, UNIT_COUNT, 6, 1, NULL, NULL, false},
    {"BYTES/S", "tx_sent", TOP_RATE, UNIT_BYTES, 7, 3, NULL, NULL, false},
    {"IN/S", "records_in", TOP_RATE, UNIT_COUNT, 6, 1, NULL, NULL, false},
    {"BYTES/S", "rx_consumed", TOP_RATE, UNIT_BYTES, 7, 3, NULL, NULL, false},
    {"RUNS/S", "runs_out", TOP_RATE, UNIT_COUNT, 6, 5, NULL, NULL, false},
    {"LEDGER", "tx_used", TOP_BAR, UNIT_PERCENT, 8, 2, "tx_bytes", NULL, false},
    {"SIZE", "tx_bytes", TOP_NUMBER, UNIT_BYTES, 6, 6, NULL, NULL, false},
    {"AWAITED", "sent_pending", TOP_NUMBER, UNIT_COUNT, 7, 4, NULL, NULL, false},
    {"STARVED/S", "starved", TOP_RATE, UNIT_COUNT, 9, 6, NULL, NULL, false},
    {"GROWN", "grown", TOP_NUMBER, UNIT_COUNT, 5, 8, NULL, NULL, false},
    {"ADDRESS", "address", TOP_TEXT, UNIT_NONE, 12, 7, NULL, NULL, false},
    {"REASON", "reason", TOP_TEXT, UNIT_NONE, 8, 9, NULL, NULL, true},
};

const struct top_column *top_columns(enum top_table table, size_t *count)
{
    switch (table) {
    case TOP_CLIENTS:
        *count = sizeof(client_columns) / sizeof(client_columns[0]);
        return client_columns;
    case TOP_QUEUES:
        *count = sizeof(queue_columns) / sizeof(queue_columns[0]);
        return queue_columns;
    default:
        *count = sizeof(peer_columns) / sizeof(peer_columns[0]);
        return peer_columns;
    }
}

const char *top_table_name(enum top_table table)
{
    static const char *const names[] = {"clients", "queues", "peers"};
    return names[table];
}

/* ---- joining --------------------------------------------------------------------------------- */

static json_int_t number(const json_t *row, const char *key)
{
    return json_integer_value(json_object_get(row, key));
}

static void set(json_t *row, const char *key, json_int_t value)
{
    json_object_set_new(row, key, json_integer(value));
}

static void grow(json_t *row, const char *key, json_int_t value)
{
    set(row, key, number(row, key) + value);
}

/* Adds all operations of a context up. */
static void add_sums(json_t *queue)
{
    set(queue, "ops",
        number(queue, "put_ops") + number(queue, "get_ops") + number(queue, "am_ops") +
            number(queue, "atomic_ops"));
    set(queue, "op_bytes",
        number(queue, "put_bytes") + number(queue, "get_bytes") + number(queue, "am_bytes") +
            number(queue, "atomic_bytes"));
    set(queue, "direct_ops",
        number(queue, "direct_put_ops") + number(queue, "direct_get_ops") +
            number(queue, "direct_am_ops"));
    set(queue, "direct_bytes",
        number(queue, "direct_put_bytes") + number(queue, "direct_get_bytes") +
            number(queue, "direct_am_bytes"));
}

/* Finds the row of the same engine with this number. */
static json_t *find(json_t *rows, const char *key, const json_t *like)
{
    json_t *row;
    size_t i;
    json_array_foreach(rows, i,
                       row) if (number(row, key) == number(like, key) &&
                                number(row, "engine") == number(like, "engine")) return row;
    return NULL;
}

static void join_clients(json_t *clients, json_t *queues)
{
    static const char *const summed[] = {"ops",        "op_bytes",     "delivered", "in_flight",
                                         "direct_ops", "direct_bytes", "errors"};
    json_t *row;
    size_t i;
    json_array_foreach(clients, i, row) for (size_t k = 0; k < sizeof(summed) / sizeof(summed[0]);
                                             k++) set(row, summed[k], 0);
    json_array_foreach(queues, i, row)
    {
        json_t *client = find(clients, "client", row);
        add_sums(row);
        for (size_t k = 0; client && k < sizeof(summed) / sizeof(summed[0]); k++)
            grow(client, summed[k], number(row, summed[k]));
    }
}

static void join_queues(json_t *queues, json_t *clients)
{
    json_t *row;
    size_t i;
    json_array_foreach(queues, i, row)
    {
        const json_t *client = find(clients, "client", row);
        add_sums(row);
        if (client)
            json_object_set(row, "job", json_object_get(client, "job"));
    }
}

static void copy(json_t *to, const char *key, const json_t *from)
{
    json_t *value = json_object_get(from, key);
    if (json_is_string(value))
        json_object_set(to, key, value);
}

/* Lists nodes without ledgers too, with the reason: none are wanted, or there is no link. */
static void join_peers(json_t *ledgers, json_t *nodes)
{
    size_t known = json_array_size(ledgers), i;
    json_t *row;
    json_array_foreach(ledgers, i, row)
    {
        const json_t *node = json_array_get(nodes, (size_t)number(row, "node"));
        copy(row, "address", node);
        copy(row, "reason", node);
        set(row, "tx_used", number(row, "tx_bytes") - number(row, "tx_credit"));
    }
    json_array_foreach(nodes, i, row)
    {
        const char *state = json_string_value(json_object_get(row, "state"));
        bool listed = state && strcmp(state, "self") == 0;
        for (size_t l = 0; l < known && !listed; l++)
            listed = number(json_array_get(ledgers, l), "node") == number(row, "node");
        if (listed)
            continue;
        json_t *added = json_object();
        set(added, "node", number(row, "node"));
        copy(added, "state", row);
        copy(added, "address", row);
        copy(added, "reason", row);
        json_array_append_new(ledgers, added);
    }
}

json_t *top_join(const struct top_look *look, enum top_table table)
{
    json_t *clients = json_object_get(look->clients, "clients");
    json_t *queues = json_object_get(look->queues, "queues");
    json_t *ledgers = json_object_get(look->ledgers, "ledgers");
    json_t *nodes = json_object_get(look->nodes, "nodes");
    json_t *rows;
    if (!json_is_array(clients) || !json_is_array(queues) || !json_is_array(ledgers) ||
        !json_is_array(nodes))
        return NULL;
    rows = json_deep_copy(table == TOP_CLIENTS ? clients : table == TOP_QUEUES ? queues : ledgers);
    if (rows == NULL)
        return NULL;
    if (table == TOP_CLIENTS)
        join_clients(rows, queues);
    else if (table == TOP_QUEUES)
        join_queues(rows, clients);
    else
        join_peers(rows, nodes);
    return rows;
}

void top_row_name(const json_t *row, enum top_table table, char *out, size_t size)
{
    long long engine = number(row, "engine");
    if (table == TOP_PEERS)
        snprintf(out, size, "%lld %lld %lld", engine, (long long)number(row, "node"),
                 (long long)number(row, "peer_engine"));
    else /* a number that is free again is another's */
        snprintf(out, size, "%lld %lld %lld %lld %lld", engine,
                 (long long)number(row, table == TOP_QUEUES ? "session" : "client"),
                 (long long)number(row, "client"), (long long)number(row, "rank"),
                 (long long)number(row, "pid"));
}
