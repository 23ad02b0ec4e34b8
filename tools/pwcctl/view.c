/* Views as tables of text, by their fields (views/fields.h). */
#include "tools/pwcctl/view.h"
#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>
#include "tools/pwcctl/format.h"
#include "tools/pwcctl/table.h"

static_assert(1 + VIEW_ANSWERS_MAX <= TABLE_COLUMNS_MAX, "one column for each answer");

/* Fields that stand in front of a view's own fields, where rows have them: the node of the row's
 * daemon, if several daemons answer; and the engines, if daemons have several progress threads. */
static const struct field front_fields[] = {
    {.key = "on", .title = "on", .names = true},
    {.key = "engine", .title = "engine", .names = true},
    {.key = "peer_engine", .title = "peer's", .names = true},
    {0}};

/* Whether the view prints the document's own members, one in a line, before its tables. */
static bool has_members(const struct view *view)
{
    return strcmp(view->name, "status") == 0 || strcmp(view->name, "counters") == 0;
}

/* Words stand left, numbers right. */
static bool is_text(const struct field *f)
{
    return f->kind == FIELD_FLAG || f->kind == FIELD_WORD || f->kind == FIELD_TEXT ||
           f->kind == FIELD_CHARS;
}

static bool add_text(struct table *table, const char *text)
{
    char *cell = table_cell(table);
    if (cell != NULL)
        snprintf(cell, TABLE_CELL_MAX, "%s", text);
    return cell != NULL;
}

static bool add_value(struct table *table, const json_t *value, enum field_unit format)
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

/* The fields that are shown, `room` at most. */
static size_t columns_of(const struct view_rows *what, const json_t *rows,
                         const struct field **columns, size_t room)
{
    size_t count = 0;
    for (const struct field *f = front_fields; f->key != NULL; f++)
        if (any_has(rows, f->key))
            columns[count++] = f;
    for (const struct field *f = what->fields; f->key != NULL && count < room; f++)
        if (f->title != NULL)
            columns[count++] = f;
    return count;
}

static int print_rows(const struct view_rows *what, const json_t *rows, FILE *to)
{
    const struct field *columns[TABLE_COLUMNS_MAX];
    size_t count = columns_of(what, rows, columns, TABLE_COLUMNS_MAX);
    struct table table;
    table_open(&table, count);
    bool whole = true;
    for (size_t c = 0; c < count; c++) {
        table.left[c] = is_text(columns[c]);
        table.names[c] = columns[c]->names;
        whole = whole && add_text(&table, columns[c]->title);
    }
    for (size_t r = 0; r < json_array_size(rows); r++) {
        const json_t *row = json_array_get(rows, r);
        for (size_t c = 0; c < count; c++)
            whole =
                whole && add_value(&table, json_object_get(row, columns[c]->key), columns[c]->unit);
    }
    if (whole)
        table_print(&table, to);
    table_close(&table);
    return whole ? 0 : -ENOMEM;
}

/* The end of a key says whether its value is a duration or a share. */
static enum field_unit format_of(const char *key)
{
    size_t length = strlen(key);
    if (length > 3 && strcmp(key + length - 3, "_ns") == 0)
        return UNIT_NS;
    if (length > 2 && strcmp(key + length - 2, "_s") == 0)
        return UNIT_SECOND;
    return length > 8 && strcmp(key + length - 8, "_percent") == 0 ? UNIT_PERCENT : UNIT_NONE;
}

static bool is_member(const json_t *value)
{
    return !json_is_object(value) && !json_is_array(value);
}

/* Prints members one in a line, with a column for each daemon. Members that hold objects or arrays
 * are left out: tables show them. Keys stand in the order of the first document that has them. */
static int print_members(json_t *const *documents, size_t count, FILE *to)
{
    struct table table;
    bool whole = true;
    table_open(&table, 1 + count);
    table.names[0] = true;
    for (size_t c = 0; c <= count; c++)
        table.left[c] = true;
    for (size_t d = 0; d < count; d++) {
        const char *key;
        json_t *value;
        json_object_foreach(documents[d], key, value)
        {
            bool was_before = !is_member(value);
            for (size_t b = 0; b < d && !was_before; b++)
                was_before = json_object_get(documents[b], key) != NULL;
            if (was_before)
                continue;
            whole = whole && add_text(&table, key);
            for (size_t c = 0; c < count; c++)
                whole =
                    whole && add_value(&table, json_object_get(documents[c], key), format_of(key));
        }
    }
    if (whole)
        table_print(&table, to);
    table_close(&table);
    return whole ? 0 : -ENOMEM;
}

/* Whether a document may lack these rows: daemons with one progress thread, and older daemons,
 * leave them out. */
static bool is_optional(const struct view_rows *rows)
{
    return rows->fields == fields_engine || rows->fields == fields_user;
}

/* Returns the rows of all documents in one array, NULL without memory; where the documents are
 * several, each row has the node of its daemon. */
static json_t *gather(const struct view_rows *what, json_t *const *documents, size_t count)
{
    json_t *all = json_array();
    for (size_t d = 0; all != NULL && d < count; d++) {
        json_t *node = json_object_get(documents[d], "node"), *row;
        size_t i;
        json_array_foreach(json_object_get(documents[d], what->key), i, row)
        {
            if (count > 1 && json_is_object(row))
                json_object_set_new(row, "on", node != NULL ? json_incref(node) : json_null());
            json_array_append(all, row);
        }
    }
    return all;
}

static bool any_rows(const struct view_rows *what, json_t *const *documents, size_t count)
{
    for (size_t d = 0; d < count; d++)
        if (json_object_get(documents[d], what->key) != NULL)
            return true;
    return false;
}

static int print_documents(const struct view *view, json_t *const *documents, size_t count,
                           FILE *to)
{
    int rc = has_members(view) ? print_members(documents, count, to) : 0;
    for (size_t i = 0; rc == 0 && view->rows[i].key != NULL; i++) {
        if (is_optional(&view->rows[i]) && !any_rows(&view->rows[i], documents, count))
            continue;
        json_t *rows = gather(&view->rows[i], documents, count);
        if (i > 0 || has_members(view))
            fputc('\n', to);
        rc = rows != NULL ? print_rows(&view->rows[i], rows, to) : -ENOMEM;
        json_decref(rows);
    }
    return rc;
}

/* Reads an answer; or prints why it does not belong to this view. */
static int read_answer(const struct view *view, const struct view_answer *answer, json_t **out)
{
    json_error_t error;
    json_t *document = json_loads(answer->json, 0, &error);
    bool whole = json_is_object(document);
    for (const struct view_rows *rows = view->rows; whole && rows->key != NULL; rows++) {
        const json_t *array = json_object_get(document, rows->key);
        whole = json_is_array(array) || (array == NULL && is_optional(rows));
    }
    if (whole) {
        *out = document;
        return 0;
    }
    fprintf(stderr,
            "pwcctl: %s: the daemon's answer is not what \"%s\" should be: %s; --json shows it\n",
            answer->socket, view->name, document == NULL ? error.text : "its rows are missing");
    json_decref(document);
    return -EBADMSG;
}

int view_print(const struct view *view, const struct view_answer *answers, size_t count, FILE *to)
{
    json_t *documents[VIEW_ANSWERS_MAX] = {NULL};
    size_t whole = 0;
    int rc = 0;
    for (size_t i = 0; i < count; i++) {
        int read = read_answer(view, &answers[i], &documents[whole]);
        if (read == 0)
            whole++;
        else
            rc = read;
    }
    int printed = whole > 0 ? print_documents(view, documents, whole, to) : 0;
    for (size_t i = 0; i < whole; i++)
        json_decref(documents[i]);
    return printed < 0 ? printed : rc;
}
