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

/* Computes by how much a counter has grown in a second. Returns false if it began anew, or if there
 * is nothing to compare. */
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
        cell->counter = json_number_value(value);
        cell->known = json_is_number(value) && before &&
                      rate(before->counter, cell->counter, seconds, &cell->value);
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

static void take_totals(struct top_model *m, const json_t *status, double seconds)
{
    const struct top_rows *queues = &m->tables[TOP_QUEUES], *clients = &m->tables[TOP_CLIENTS];
    struct top_totals *t = &m->totals;
    double cpu_ns = number(status, "progress_cpu_ns"), work = number(status, "work"),
           sleeps = number(status, "sleeps");
    *t = (struct top_totals){0};
    t->known = rate(m->cpu_ns, cpu_ns, seconds, &t->cpu_share) &&
               rate(m->work, work, seconds, &t->work) &&
               rate(m->sleeps, sleeps, seconds, &t->sleeps);
    t->cpu_share /= 1e9;
    t->put_ops = sum(queues, TOP_QUEUES, "put_ops");
    t->get_ops = sum(queues, TOP_QUEUES, "get_ops");
    t->am_ops = sum(queues, TOP_QUEUES, "am_ops");
    t->op_bytes = sum(queues, TOP_QUEUES, "op_bytes");
    t->direct_ops = sum(queues, TOP_QUEUES, "direct_ops");
    t->delivered = sum(queues, TOP_QUEUES, "delivered");
    t->in_flight = sum(clients, TOP_CLIENTS, "in_flight");
    t->errors = sum(clients, TOP_CLIENTS, "errors");
    m->cpu_ns = cpu_ns;
    m->work = work;
    m->sleeps = sleeps;
}

static void note(struct top_model *m, double until, const char *format, const char *text)
{
    snprintf(m->note, sizeof(m->note), format, text);
    m->note_until = until;
}

/* This is another process: its counters cannot be compared with those of the last one. */
static bool is_another(const struct top_model *m, const json_t *status)
{
    return m->pid != (long)number(status, "pid") || number(status, "uptime_s") < m->uptime_s;
}

static void take_status(struct top_model *m, const json_t *status, double at)
{
    const char *progress = json_string_value(json_object_get(status, "progress"));
    if (m->seen && is_another(m, status)) {
        char text[TOP_TEXT_MAX];
        snprintf(text, sizeof(text), "process %ld, was %ld", (long)number(status, "pid"), m->pid);
        note(m, at + NOTE_SECONDS, "the daemon was started anew: %s", text);
    } else if (at >= m->note_until) {
        m->note[0] = '\0';
    }
    m->pid = (long)number(status, "pid");
    m->uptime_s = number(status, "uptime_s");
    m->node = (long)number(status, "node");
    m->nodes = (long)number(status, "nodes");
    m->quarantined = (long)number(status, "quarantined");
    m->refused = (long)number(status, "refused");
    m->stuck = progress && strcmp(progress, "stuck") == 0;
    take_text(m->version, json_object_get(status, "version"));
    take_text(m->provider, json_object_get(status, "provider"));
}

static void rows_free(struct top_rows *rows)
{
    free(rows->rows);
    *rows = (struct top_rows){0};
}

int top_model_take(struct top_model *m, const struct top_look *look, double at)
{
    static const struct top_rows nothing;
    bool compare = m->seen && !is_another(m, look->status);
    double seconds = compare ? at - m->at : 0;
    struct top_rows tables[TOP_TABLES] = {0};
    int rc = json_is_object(look->status) ? 0 : -EBADMSG;
    for (int t = 0; rc == 0 && t < TOP_TABLES; t++) {
        json_t *joined = top_join(look, t);
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
    take_status(m, look->status, at);
    take_totals(m, look->status, seconds);
    m->at = at;
    m->seen = true;
    return 0;
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
}

void top_look_free(struct top_look *look)
{
    json_decref(look->status);
    json_decref(look->clients);
    json_decref(look->queues);
    json_decref(look->ledgers);
    json_decref(look->nodes);
    *look = (struct top_look){0};
}
