/* Owns the cells and rates of the tables (model.h). */
#include "tools/pwcctl/top/model.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tools/pwcctl/top/tables.h"

#define NOTE_SECONDS 10.0

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void take_text(char *out, const json_t *value)
{
    const char *text = json_is_string(value) ? json_string_value(value) : "";
    if (json_is_boolean(value))
        text = json_is_true(value) ? "yes" : "no";
    snprintf(out, TOP_TEXT_MAX, "%s", text);
    for (char *c = out; *c; c++)
        if (*c < ' ' || *c > '~') /* a job's name may hold anything */
            *c = '?';
}

static double share_of(double part, double whole)
{
    double share = whole > 0 ? part / whole : 0;
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

/* Computes by how much a counter has grown in a second. Returns false if it began again, or if
 * there is nothing to compare. */
static bool rate(double before, double now, double seconds, double *out)
{
    if (seconds <= 0 || now < before)
        return false;
    *out = (now - before) / seconds;
    return true;
}

static void take_cell(struct top_cell *cell, const struct top_column *column, const json_t *row,
                      const struct top_cell *before, double seconds)
{
    const json_t *value = json_object_get(row, column->key);
    switch (column->kind) {
    case TOP_TEXT:
        take_text(cell->text, value);
        cell->known = cell->text[0] != '\0';
        break;
    case TOP_NUMBER:
        cell->known = json_is_number(value);
        cell->value = json_number_value(value);
        break;
    case TOP_RATE:
    case TOP_PART:
        cell->counter = json_number_value(value);
        cell->known = json_is_number(value) && before &&
                      rate(before->counter, cell->counter, seconds, &cell->value);
        break;
    case TOP_SHARE:
    case TOP_REST:
        cell->counter = json_number_value(value);
        cell->contexts = number(row, "contexts_seen");
        cell->known = json_is_number(value) && before && before->contexts == cell->contexts &&
                      rate(before->counter, cell->counter, seconds, &cell->value);
        cell->value = 100 * share_of(cell->value, 1e9);
        if (column->kind == TOP_REST)
            cell->value = 100 - cell->value;
        break;
    case TOP_BAR:
        cell->known = number(row, column->size_key) > 0;
        cell->value = share_of(json_number_value(value), number(row, column->size_key));
        if (column->high_key)
            cell->high = share_of(number(row, column->high_key), number(row, column->size_key));
        break;
    }
}

static const struct top_row *find(const struct top_rows *rows, const char *name)
{
    for (size_t i = 0; i < rows->count; i++)
        if (strcmp(rows->rows[i].name, name) == 0)
            return &rows->rows[i];
    return NULL;
}

/* Turns the rates of a column into shares of their sum. */
static void take_parts(struct top_rows *out, size_t column)
{
    double all = 0;
    for (size_t i = 0; i < out->count; i++)
        all += out->rows[i].cells[column].known ? out->rows[i].cells[column].value : 0;
    for (size_t i = 0; i < out->count; i++) {
        struct top_cell *cell = &out->rows[i].cells[column];
        cell->known = cell->known && all > 0;
        cell->value = 100 * share_of(cell->value, all);
    }
}

/* `before` holds the values of the last look; empty where nothing can be compared. */
static int take_rows(struct top_rows *out, const json_t *joined, enum top_table table,
                     const struct top_rows *before, double seconds)
{
    size_t columns, i;
    const struct top_column *column = top_columns(table, &columns);
    json_t *row;
    *out = (struct top_rows){.rows = calloc(json_array_size(joined) + 1, sizeof(*out->rows))};
    if (out->rows == NULL)
        return -ENOMEM;
    json_array_foreach(joined, i, row)
    {
        struct top_row *to = &out->rows[out->count++];
        top_row_name(row, table, to->name, sizeof(to->name));
        const struct top_row *was = find(before, to->name);
        for (size_t c = 0; c < columns; c++) {
            take_cell(&to->cells[c], &column[c], row, was ? &was->cells[c] : NULL, seconds);
            out->has[c] = out->has[c] || to->cells[c].known;
        }
    }
    for (size_t c = 0; c < columns; c++)
        out->has[c] = out->has[c] || !column[c].only_if_any;
    for (size_t c = 0; c < columns; c++)
        if (column[c].kind == TOP_PART)
            take_parts(out, c);
    return 0;
}

/* Sums the rows' rates, or numbers, by key. */
static double sum(const struct top_rows *rows, enum top_table table, const char *key)
{
    size_t columns;
    const struct top_column *column = top_columns(table, &columns);
    double total = 0;
    for (size_t c = 0; c < columns; c++)
        for (size_t i = 0; i < rows->count && strcmp(column[c].key, key) == 0; i++)
            total += rows->rows[i].cells[c].known ? rows->rows[i].cells[c].value : 0;
    return total;
}

/* Adds up how much the daemons' counters have grown. Returns false if one cannot be compared. */
static bool add_rates(struct top_totals *t, const struct top_daemon *before,
                      const struct top_daemon *now, size_t count, double seconds)
{
    for (size_t i = 0; i < count; i++) {
        double cpu, work, sleeps;
        if (!rate(before[i].cpu_ns, now[i].cpu_ns, seconds, &cpu) ||
            !rate(before[i].work, now[i].work, seconds, &work) ||
            !rate(before[i].sleeps, now[i].sleeps, seconds, &sleeps))
            return false;
        t->cpu_share += cpu / 1e9;
        t->work += work;
        t->sleeps += sleeps;
    }
    return count > 0;
}

static void take_totals(struct top_model *m, const struct top_daemon *before, double seconds)
{
    const struct top_rows *queues = &m->tables[TOP_QUEUES], *clients = &m->tables[TOP_CLIENTS];
    struct top_totals *t = &m->totals;
    *t = (struct top_totals){0};
    t->known = add_rates(t, before, m->daemons, m->daemon_count, seconds);
    t->put_ops = sum(queues, TOP_QUEUES, "put_ops");
    t->get_ops = sum(queues, TOP_QUEUES, "get_ops");
    t->am_ops = sum(queues, TOP_QUEUES, "am_ops");
    t->op_bytes = sum(queues, TOP_QUEUES, "op_bytes");
    t->direct_ops = sum(queues, TOP_QUEUES, "direct_ops");
    t->delivered = sum(queues, TOP_QUEUES, "delivered");
    t->in_flight = sum(clients, TOP_CLIENTS, "in_flight");
    t->errors = sum(clients, TOP_CLIENTS, "errors");
}

static void note(struct top_model *m, double until, const char *format, const char *text)
{
    snprintf(m->note, sizeof(m->note), format, text);
    m->note_until = until;
}

static void take_daemon(struct top_daemon *d, const json_t *status)
{
    const char *progress = json_string_value(json_object_get(status, "progress"));
    *d = (struct top_daemon){.pid = (long)number(status, "pid"),
                             .uptime_s = number(status, "uptime_s"),
                             .node = (long)number(status, "node"),
                             .nodes = (long)number(status, "nodes"),
                             .quarantined = (long)number(status, "quarantined"),
                             .refused = (long)number(status, "refused"),
                             .cpu_ns = number(status, "progress_cpu_ns"),
                             .work = number(status, "work"),
                             .sleeps = number(status, "sleeps"),
                             .stuck = progress && strcmp(progress, "stuck") == 0};
    take_text(d->version, json_object_get(status, "version"));
    take_text(d->provider, json_object_get(status, "provider"));
}

/* Whether this is another process: its counters cannot be compared with those of the last look. */
static bool is_another(const struct top_daemon *before, const struct top_daemon *now)
{
    return before->pid != now->pid || now->uptime_s < before->uptime_s;
}

/* Notes a daemon that was restarted. */
static void note_others(struct top_model *m, const struct top_daemon *now, size_t count, double at)
{
    if (at >= m->note_until)
        m->note[0] = '\0';
    for (size_t i = 0; m->seen && m->daemon_count == count && i < count; i++) {
        char text[TOP_TEXT_MAX];
        if (!is_another(&m->daemons[i], &now[i]))
            continue;
        snprintf(text, sizeof(text), "process %ld, was %ld", now[i].pid, m->daemons[i].pid);
        note(m, at + NOTE_SECONDS, "the daemon was started anew: %s", text);
    }
}

static void rows_free(struct top_rows *rows)
{
    free(rows->rows);
    *rows = (struct top_rows){0};
}

/* The rows of all daemons, each with the number of its daemon and, if there are several, its node;
 * NULL: a document is malformed, or there is no memory. */
static json_t *join_all(const struct top_look *looks, size_t count, enum top_table table)
{
    json_t *all = json_array();
    for (size_t d = 0; all != NULL && d < count; d++) {
        json_t *rows = top_join(&looks[d], table), *row;
        size_t i;
        if (rows == NULL) {
            json_decref(all);
            return NULL;
        }
        json_array_foreach(rows, i, row)
        {
            json_object_set_new(row, "daemon", json_integer((json_int_t)d));
            if (count > 1)
                json_object_set(row, "on", json_object_get(looks[d].status, "node"));
            json_array_append(all, row);
        }
        json_decref(rows);
    }
    return all;
}

int top_model_take(struct top_model *m, const struct top_look *looks, size_t count, double at)
{
    static const struct top_rows nothing;
    struct top_daemon daemons[TOP_DAEMONS_MAX], before[TOP_DAEMONS_MAX];
    struct top_rows tables[TOP_TABLES] = {0};
    int rc = count > 0 && count <= TOP_DAEMONS_MAX ? 0 : -EINVAL;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = json_is_object(looks[i].status) ? 0 : -EBADMSG;
        take_daemon(&daemons[i], looks[i].status);
    }
    bool compare = rc == 0 && m->seen && m->daemon_count == count;
    for (size_t i = 0; compare && i < count; i++)
        compare = !is_another(&m->daemons[i], &daemons[i]);
    double seconds = compare ? at - m->at : 0;
    for (int t = 0; rc == 0 && t < TOP_TABLES; t++) {
        json_t *joined = join_all(looks, count, t);
        rc = joined ? take_rows(&tables[t], joined, t, compare ? &m->tables[t] : &nothing, seconds)
                    : -EBADMSG;
        json_decref(joined);
    }
    for (int t = 0; t < TOP_TABLES; t++) {
        rows_free(rc == 0 ? &m->tables[t] : &tables[t]);
        if (rc == 0)
            m->tables[t] = tables[t];
    }
    if (rc < 0)
        return rc;
    note_others(m, daemons, count, at);
    memcpy(before, m->daemons, sizeof(before));
    memcpy(m->daemons, daemons, count * sizeof(daemons[0]));
    m->daemon_count = count;
    take_totals(m, before, seconds);
    top_hints_take(&m->hints, looks, count, at);
    m->at = at;
    m->seen = true;
    return 0;
}

void top_model_note(struct top_model *m, const char *text)
{
    note(m, m->at, "no answer: %s", text);
}

void top_model_miss(struct top_model *m, const char *why, double at)
{
    char text[TOP_TEXT_MAX];
    snprintf(text, sizeof(text), "%.60s; what stands here is %.0f s old", why, at - m->at);
    note(m, at, "no answer: %s", text);
}

void top_model_free(struct top_model *m)
{
    for (int t = 0; t < TOP_TABLES; t++)
        rows_free(&m->tables[t]);
    top_hints_free(&m->hints);
}

void top_look_free(struct top_look *look)
{
    json_decref(look->status);
    json_decref(look->clients);
    json_decref(look->queues);
    json_decref(look->ledgers);
    json_decref(look->nodes);
    json_decref(look->ops);
    json_decref(look->jobs);
    *look = (struct top_look){0};
}
