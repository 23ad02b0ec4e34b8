/* Views as tables of text, by their fields (views/fields.h). */
#include "tools/pwcctl/view.h"
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>
#include "tools/pwcctl/format.h"
#include "tools/pwcctl/table.h"

/* Fields of daemons with several progress threads: in front, where a row has them. */
static const struct field engine_fields[] = {
    {.key = "engine", .title = "engine"}, {.key = "peer_engine", .title = "peer's"}, {0}};

/* The document's own members come first, one a line. */
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
    for (const struct field *f = engine_fields; f->key != NULL; f++)
        if (any_has(rows, f->key))
            columns[count++] = f;
    for (const struct field *f = what->fields; f->key != NULL && count < room; f++)
        if (f->title != NULL)
            columns[count++] = f;
    return count;
}

static int print_rows(const struct view_rows *what, const json_t *document, FILE *to)
{
    const json_t *rows = json_object_get(document, what->key);
    const struct field *columns[TABLE_COLUMNS_MAX];
    if (!json_is_array(rows))
        return -EBADMSG;
    size_t count = columns_of(what, rows, columns, TABLE_COLUMNS_MAX);
    struct table table;
    table_open(&table, count);
    bool whole = true;
    for (size_t c = 0; c < count; c++) {
        table.left[c] = is_text(columns[c]);
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

/* Daemons with one progress thread, and older daemons, leave them out. */
static bool is_optional(const struct view_rows *rows)
{
    return rows->fields == fields_engine || rows->fields == fields_user;
}

int view_print(const struct view *view, const char *json, FILE *to)
{
    json_error_t error;
    json_t *document = json_loads(json, 0, &error);
    int rc = json_is_object(document) ? 0 : -EBADMSG;
    if (rc == 0 && has_members(view))
        rc = print_members(document, to);
    for (size_t i = 0; rc == 0 && view->rows[i].key != NULL; i++) {
        if (is_optional(&view->rows[i]) && !json_object_get(document, view->rows[i].key))
            continue;
        if (i > 0 || has_members(view))
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
