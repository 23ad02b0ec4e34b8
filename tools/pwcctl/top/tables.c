/* Owns the tables' columns, and how rows of several documents become one (tables.h). */
#include "tools/pwcctl/top/tables.h"
#include <stdio.h>
#include <string.h>

static const struct top_column client_columns[] = {
    {"ON", "on", TOP_NUMBER, UNIT_NONE, 2, 1, NULL, NULL, true},
    {"ENG", "engine", TOP_NUMBER, UNIT_NONE, 3, 3, NULL, NULL, true},
    {"CLIENT", "client", TOP_NUMBER, UNIT_NONE, 6, 2, NULL, NULL, false},
    {"JOB", "job", TOP_TEXT, UNIT_NONE, 8, 1, NULL, NULL, false},
    {"RANK", "rank", TOP_NUMBER, UNIT_NONE, 4, 1, NULL, NULL, false},
    {"UID", "uid", TOP_NUMBER, UNIT_NONE, 5, 9, NULL, NULL, false},
    {"PID", "pid", TOP_NUMBER, UNIT_NONE, 7, 5, NULL, NULL, false},
    {"CTX", "sessions", TOP_NUMBER, UNIT_NONE, 3, 7, NULL, NULL, false},
    {"OPS/S", "ops", TOP_RATE, UNIT_COUNT, 6, 1, NULL, NULL, false},
    {"BYTES/S", "op_bytes", TOP_RATE, UNIT_BYTES, 7, 1, NULL, NULL, false},
    {"SHARE", "op_bytes", TOP_PART, UNIT_PERCENT, 6, 7, NULL, NULL, false},
    {"OLDEST", "oldest_ns", TOP_NUMBER, UNIT_NS, 7, 7, NULL, NULL, false},
    {"EVENTS/S", "delivered", TOP_RATE, UNIT_COUNT, 8, 3, NULL, NULL, false},
    {"DIRECT/S", "direct_ops", TOP_RATE, UNIT_COUNT, 8, 4, NULL, NULL, false},
    {"UNITS/S", "handler_units", TOP_RATE, UNIT_COUNT, 7, 10, NULL, NULL, false},
    {"FLIGHT", "in_flight", TOP_NUMBER, UNIT_COUNT, 6, 2, NULL, NULL, false},
    {"WAITS", "waits", TOP_TEXT, UNIT_NONE, 8, 3, NULL, NULL, false},
    {"ASLEEP", "asleep_ns", TOP_SHARE, UNIT_PERCENT, 6, 6, NULL, NULL, false},
    {"INSIDE", "inside_ns", TOP_SHARE, UNIT_PERCENT, 6, 7, NULL, NULL, false},
    {"COMPUTES", "waited_ns", TOP_REST, UNIT_PERCENT, 8, 4, NULL, NULL, false},
    {"MEMORY", "bytes", TOP_NUMBER, UNIT_BYTES, 7, 6, NULL, NULL, false},
    {"ERRORS", "errors", TOP_NUMBER, UNIT_COUNT, 6, 6, NULL, NULL, false},
    {"QUARANTINE", "quarantine", TOP_TEXT, UNIT_NONE, 10, 8, NULL, NULL, true},
};

static const struct top_column queue_columns[] = {
    {"ON", "on", TOP_NUMBER, UNIT_NONE, 2, 1, NULL, NULL, true},
    {"ENG", "engine", TOP_NUMBER, UNIT_NONE, 3, 4, NULL, NULL, true},
    {"JOB", "job", TOP_TEXT, UNIT_NONE, 6, 6, NULL, NULL, false},
    {"RANK", "rank", TOP_NUMBER, UNIT_NONE, 4, 1, NULL, NULL, false},
    {"CTX", "context", TOP_NUMBER, UNIT_NONE, 3, 1, NULL, NULL, false},
    {"WAITS", "waits", TOP_TEXT, UNIT_NONE, 8, 3, NULL, NULL, false},
    {"ASLEEP", "asleep_ns", TOP_SHARE, UNIT_PERCENT, 6, 4, NULL, NULL, false},
    {"INSIDE", "inside_ns", TOP_SHARE, UNIT_PERCENT, 6, 5, NULL, NULL, false},
    {"COMPUTES", "waited_ns", TOP_REST, UNIT_PERCENT, 8, 3, NULL, NULL, false},
    {"PUT/S", "put_ops", TOP_RATE, UNIT_COUNT, 6, 2, NULL, NULL, false},
    {"GET/S", "get_ops", TOP_RATE, UNIT_COUNT, 6, 3, NULL, NULL, false},
    {"AM/S", "am_ops", TOP_RATE, UNIT_COUNT, 6, 3, NULL, NULL, false},
    {"BYTES/S", "op_bytes", TOP_RATE, UNIT_BYTES, 7, 2, NULL, NULL, false},
    {"EVENTS/S", "delivered", TOP_RATE, UNIT_COUNT, 8, 7, NULL, NULL, false},
    {"DIRECT/S", "direct_ops", TOP_RATE, UNIT_COUNT, 8, 8, NULL, NULL, false},
    {"UNITS/S", "handler_units", TOP_RATE, UNIT_COUNT, 7, 13, NULL, NULL, false},
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
    {"ON", "on", TOP_NUMBER, UNIT_NONE, 2, 1, NULL, NULL, true},
    {"ENG", "engine", TOP_NUMBER, UNIT_NONE, 3, 3, NULL, NULL, true},
    {"NODE", "node", TOP_NUMBER, UNIT_NONE, 4, 1, NULL, NULL, false},
    {"ITS", "peer_engine", TOP_NUMBER, UNIT_NONE, 3, 3, NULL, NULL, true},
    {"STATE", "state", TOP_TEXT, UNIT_NONE, 6, 1, NULL, NULL, false},
    {"OUT/S", "records_out", TOP_RATE, UNIT_COUNT, 6, 1, NULL, NULL, false},
    {"SENT/S", "bytes_out", TOP_RATE, UNIT_BYTES, 7, 3, NULL, NULL, false},
    {"IN/S", "records_in", TOP_RATE, UNIT_COUNT, 6, 1, NULL, NULL, false},
    {"GOT/S", "bytes_in", TOP_RATE, UNIT_BYTES, 7, 3, NULL, NULL, false},
    {"RUNS/S", "runs_out", TOP_RATE, UNIT_COUNT, 6, 5, NULL, NULL, false},
    {"LEDGER", "tx_used", TOP_BAR, UNIT_PERCENT, 8, 2, "tx_bytes", NULL, false},
    {"SIZE", "tx_bytes", TOP_NUMBER, UNIT_BYTES, 6, 6, NULL, NULL, false},
    {"AWAITED", "sent_pending", TOP_NUMBER, UNIT_COUNT, 7, 4, NULL, NULL, false},
    {"STARVED/S", "starved", TOP_RATE, UNIT_COUNT, 9, 6, NULL, NULL, false},
    {"GROWN", "grown", TOP_NUMBER, UNIT_COUNT, 5, 8, NULL, NULL, false},
    {"ADDRESS", "address", TOP_TEXT, UNIT_NONE, 12, 7, NULL, NULL, false},
    {"REASON", "reason", TOP_TEXT, UNIT_NONE, 8, 9, NULL, NULL, true},
};

static const struct top_column user_columns[] = {
    {"ON", "on", TOP_NUMBER, UNIT_NONE, 2, 1, NULL, NULL, true},
    {"UID", "uid", TOP_NUMBER, UNIT_NONE, 6, 1, NULL, NULL, false},
    {"CLIENTS", "clients", TOP_NUMBER, UNIT_NONE, 7, 2, NULL, NULL, false},
    {"CTX", "contexts", TOP_NUMBER, UNIT_NONE, 4, 5, NULL, NULL, false},
    {"OPS/S", "ops", TOP_RATE, UNIT_COUNT, 6, 2, NULL, NULL, false},
    {"BYTES/S", "op_bytes", TOP_RATE, UNIT_BYTES, 7, 1, NULL, NULL, false},
    {"SHARE", "op_bytes", TOP_PART, UNIT_PERCENT, 6, 1, NULL, NULL, false},
    {"EVENTS/S", "delivered", TOP_RATE, UNIT_COUNT, 8, 3, NULL, NULL, false},
    {"FLIGHT", "in_flight", TOP_NUMBER, UNIT_COUNT, 6, 2, NULL, NULL, false},
    {"OLDEST", "oldest_ns", TOP_NUMBER, UNIT_NS, 7, 1, NULL, NULL, false},
    {"ERRORS", "errors", TOP_NUMBER, UNIT_COUNT, 6, 3, NULL, NULL, false},
    {"MEMORY", "bytes", TOP_NUMBER, UNIT_BYTES, 7, 4, NULL, NULL, false},
    {"REFUSED", "refused", TOP_NUMBER, UNIT_COUNT, 7, 4, NULL, NULL, false},
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
    case TOP_USERS:
        *count = sizeof(user_columns) / sizeof(user_columns[0]);
        return user_columns;
    default:
        *count = sizeof(peer_columns) / sizeof(peer_columns[0]);
        return peer_columns;
    }
}

const char *top_table_name(enum top_table table)
{
    static const char *const names[] = {"clients", "queues", "peers", "users"};
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
    if (json_object_get(queue, "waited_ns") != NULL) /* an older daemon does not say */
        set(queue, "inside_ns", number(queue, "waited_ns") - number(queue, "asleep_ns"));
}

/* The times of a client are those of its contexts' threads on average. */
static void take_mean(json_t *client, const char *key)
{
    json_int_t contexts = number(client, "contexts_seen");
    if (contexts > 0 && json_object_get(client, key) != NULL)
        set(client, key, number(client, key) / contexts);
}

/* The kind of wait of a client: the one that all its contexts are in, or "several". */
static void join_wait(json_t *client, const json_t *queue)
{
    const char *so_far = json_string_value(json_object_get(client, "waits"));
    const char *waits = json_string_value(json_object_get(queue, "waits"));
    if (so_far == NULL)
        json_object_set(client, "waits", json_object_get(queue, "waits"));
    else if (waits == NULL || strcmp(so_far, waits) != 0)
        json_object_set_new(client, "waits", json_string("several"));
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

enum { TIMES = 3 };

static const char *const times[TIMES] = {"waited_ns", "asleep_ns", "inside_ns"};

static void join_clients(json_t *clients, json_t *queues)
{
    static const char *const summed[] = {"ops",       "op_bytes",     "delivered",
                                         "in_flight", "direct_ops",   "direct_bytes",
                                         "errors",    "handler_units"};
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
        for (size_t k = 0; client && k < TIMES; k++)
            if (json_object_get(row, times[k]) != NULL)
                grow(client, times[k], number(row, times[k]));
        if (client) {
            grow(client, "contexts_seen", 1);
            join_wait(client, row);
        }
    }
    json_array_foreach(clients, i, row) for (size_t k = 0; k < TIMES; k++) take_mean(row, times[k]);
}

/* The age of a client's oldest operation in flight; a client without one has none. */
static void join_oldest(json_t *clients, const json_t *ops)
{
    json_t *row;
    size_t i;
    json_array_foreach(ops, i, row)
    {
        json_t *client = find(clients, "client", row);
        if (client && number(row, "age_ns") > number(client, "oldest_ns"))
            set(client, "oldest_ns", number(row, "age_ns"));
    }
}

/* Gives each user the sums over the user's clients. */
static void join_users(json_t *users, const json_t *clients)
{
    static const char *const summed[] = {"ops", "op_bytes", "delivered", "in_flight", "errors"};
    json_t *user, *row;
    size_t u, i;
    json_array_foreach(users, u, user)
    {
        for (size_t k = 0; k < sizeof(summed) / sizeof(summed[0]); k++)
            set(user, summed[k], 0);
        json_array_foreach(clients, i, row)
        {
            if (number(row, "uid") != number(user, "uid"))
                continue;
            for (size_t k = 0; k < sizeof(summed) / sizeof(summed[0]); k++)
                grow(user, summed[k], number(row, summed[k]));
            if (number(row, "oldest_ns") > number(user, "oldest_ns"))
                set(user, "oldest_ns", number(row, "oldest_ns"));
        }
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

/* The clients with everything that other documents report about them; NULL without memory. */
static json_t *whole_clients(const struct top_look *look)
{
    json_t *rows = json_deep_copy(json_object_get(look->clients, "clients"));
    if (rows == NULL)
        return NULL;
    join_clients(rows, json_object_get(look->queues, "queues"));
    join_oldest(rows, json_object_get(look->ops, "ops"));
    return rows;
}

static json_t *whole_users(const struct top_look *look)
{
    json_t *users = json_object_get(look->clients, "users"), *clients = whole_clients(look);
    json_t *rows = json_is_array(users) ? json_deep_copy(users) : json_array();
    if (rows != NULL)
        join_users(rows, clients);
    json_decref(clients);
    return rows;
}

static json_t *whole_queues(const struct top_look *look)
{
    json_t *rows = json_deep_copy(json_object_get(look->queues, "queues"));
    if (rows != NULL)
        join_queues(rows, json_object_get(look->clients, "clients"));
    return rows;
}

static json_t *whole_peers(const struct top_look *look)
{
    json_t *rows = json_deep_copy(json_object_get(look->ledgers, "ledgers"));
    if (rows != NULL)
        join_peers(rows, json_object_get(look->nodes, "nodes"));
    return rows;
}

json_t *top_join(const struct top_look *look, enum top_table table)
{
    if (!json_is_array(json_object_get(look->clients, "clients")) ||
        !json_is_array(json_object_get(look->queues, "queues")) ||
        !json_is_array(json_object_get(look->ledgers, "ledgers")) ||
        !json_is_array(json_object_get(look->nodes, "nodes")))
        return NULL;
    switch (table) {
    case TOP_CLIENTS:
        return whole_clients(look);
    case TOP_QUEUES:
        return whole_queues(look);
    case TOP_USERS:
        return whole_users(look);
    default:
        return whole_peers(look);
    }
}

void top_row_name(const json_t *row, enum top_table table, char *out, size_t size)
{
    long long daemon = number(row, "daemon"), engine = number(row, "engine");
    if (table == TOP_USERS)
        snprintf(out, size, "%lld %lld", daemon, (long long)number(row, "uid"));
    else if (table == TOP_PEERS)
        snprintf(out, size, "%lld %lld %lld %lld", daemon, engine, (long long)number(row, "node"),
                 (long long)number(row, "peer_engine"));
    else /* a client's number alone is not enough: it is used again when the client has gone */
        snprintf(out, size, "%lld %lld %lld %lld %lld %lld", daemon, engine,
                 (long long)number(row, table == TOP_QUEUES ? "session" : "client"),
                 (long long)number(row, "client"), (long long)number(row, "rank"),
                 (long long)number(row, "pid"));
}
