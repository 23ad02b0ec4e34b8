/* Owns keys, which columns fit, and the order of rows (view.h). */
#include "tools/pwcctl/top/view.h"
#include <stdlib.h>
#include <string.h>

enum { GAP = 1, PAGE = 10, TEXT_WIDTH_MAX = 40, BAR_WIDTH_MAX = 24 };

static size_t column_of(enum top_table table, const char *key)
{
    size_t count;
    const struct top_column *column = top_columns(table, &count);
    for (size_t c = 0; c < count; c++)
        if (strcmp(column[c].key, key) == 0)
            return c;
    return 0;
}

void top_view_init(struct top_view *view)
{
    *view = (struct top_view){.width = 80, .height = 24};
    view->sort[TOP_CLIENTS] = column_of(TOP_CLIENTS, "ops");
    view->sort[TOP_QUEUES] = column_of(TOP_QUEUES, "op_bytes");
    view->sort[TOP_PEERS] = column_of(TOP_PEERS, "node");
    view->ascending[TOP_PEERS] = true;
    view->sort[TOP_USERS] = column_of(TOP_USERS, "op_bytes");
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Finds the shown column that is needed least; among equal ones, the last. */
static size_t least_needed(const struct top_column *column, const bool *shown, size_t count)
{
    size_t least = count;
    for (size_t c = 0; c < count; c++)
        if (shown[c] && (least == count || column[c].need >= column[least].need))
            least = c;
    return least;
}

/* Returns the greatest width that the column can use. Columns of texts and bars may grow, when all
 * shown columns leave a part of the line empty. */
static size_t widest(const struct top_column *column, const struct top_rows *rows, size_t index)
{
    size_t width = column->width;
    if (column->kind == TOP_BAR)
        return BAR_WIDTH_MAX;
    for (size_t i = 0; column->kind == TOP_TEXT && i < rows->count; i++) {
        size_t length = strlen(rows->rows[i].cells[index].text);
        width = length > width ? length : width;
    }
    return width > TEXT_WIDTH_MAX ? TEXT_WIDTH_MAX : width;
}

size_t top_view_columns(const struct top_view *view, const struct top_model *model,
                        enum top_table table, size_t columns[TOP_COLUMNS_MAX],
                        size_t widths[TOP_COLUMNS_MAX])
{
    const struct top_rows *rows = &model->tables[table];
    size_t count, total = 0, shown_count = 0, room = (size_t)view->width;
    const struct top_column *column = top_columns(table, &count);
    bool shown[TOP_COLUMNS_MAX], grown = true;
    for (size_t c = 0; c < count; c++) {
        shown[c] = rows->has[c];
        total += shown[c] ? column[c].width + GAP : 0;
    }
    while (total > room + GAP) {
        size_t least = least_needed(column, shown, count);
        if (least == count || column[least].need == 1)
            break;
        shown[least] = false;
        total -= column[least].width + GAP;
    }
    for (size_t c = 0; c < count; c++)
        if (shown[c]) {
            columns[shown_count] = c;
            widths[shown_count++] = column[c].width;
        }
    while (total < room + GAP && grown) { /* one cell each in turn */
        grown = false;
        for (size_t i = 0; i < shown_count && total < room + GAP; i++)
            if (widths[i] < widest(&column[columns[i]], rows, columns[i])) {
                widths[i]++;
                total++;
                grown = true;
            }
    }
    return shown_count;
}

/* ---- order ----------------------------------------------------------------------------------- */

struct order {
    size_t cell;
    bool text, ascending;
};

static int compare_cells(const struct top_cell *a, const struct top_cell *b,
                         const struct order *order)
{
    int result;
    if (a->known != b->known) /* an unknown value stands below, in either direction */
        return a->known ? -1 : 1;
    result = order->text ? strcmp(a->text, b->text) : (a->value > b->value) - (a->value < b->value);
    return order->ascending ? result : -result;
}

static int compare_rows(const void *left, const void *right, void *context)
{
    const struct top_row *a = *(const struct top_row *const *)left,
                         *b = *(const struct top_row *const *)right;
    const struct order *order = context;
    int result = compare_cells(&a->cells[order->cell], &b->cells[order->cell], order);
    /* Equal rows keep their places from look to look. */
    return result != 0 ? result : strcmp(a->name, b->name);
}

const struct top_row **top_view_order(const struct top_view *view, const struct top_model *model,
                                      enum top_table table)
{
    const struct top_rows *rows = &model->tables[table];
    size_t count;
    const struct top_column *column = top_columns(table, &count);
    struct order order = {.cell = view->sort[table],
                          .text = column[view->sort[table]].kind == TOP_TEXT,
                          .ascending = view->ascending[table]};
    const struct top_row **sorted = calloc(rows->count + 1, sizeof(*sorted));
    if (sorted == NULL)
        return NULL;
    for (size_t i = 0; i < rows->count; i++)
        sorted[i] = &rows->rows[i];
    qsort_r(sorted, rows->count, sizeof(*sorted), compare_rows, &order);
    return sorted;
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Sorts by the next (or, with a negative step, the previous) column that is on the screen. */
static void move_sort(struct top_view *view, const struct top_model *model, int step)
{
    size_t columns[TOP_COLUMNS_MAX], widths[TOP_COLUMNS_MAX];
    size_t count = top_view_columns(view, model, view->table, columns, widths), at = 0;
    while (at < count && columns[at] < view->sort[view->table])
        at++;
    if (count == 0)
        return;
    at = step < 0          ? (at == 0 ? count - 1 : at - 1)
         : at >= count - 1 ? 0
                           : at + (columns[at] == view->sort[view->table]);
    view->sort[view->table] = columns[at];
}

static void move_scroll(struct top_view *view, const struct top_model *model, long step)
{
    size_t *scroll = &view->scroll[view->table], rows = model->tables[view->table].count;
    long to = (long)*scroll + step;
    *scroll = to < 0 || rows == 0 ? 0 : (size_t)to < rows ? (size_t)to : rows - 1;
}

bool top_view_key(struct top_view *view, const struct top_model *model, int key)
{
    if (key == 'q' || key == 'Q')
        return false;
    if (view->help) { /* any other key ends it */
        view->help = false;
        return true;
    }
    switch (key) {
    case '1':
    case '2':
    case '3':
    case '4':
        view->table = (enum top_table)(key - '1');
        break;
    case '\t':
        view->table = (view->table + 1) % TOP_TABLES;
        break;
    case '<':
    case TOP_KEY_LEFT:
        move_sort(view, model, -1);
        break;
    case '>':
    case TOP_KEY_RIGHT:
        move_sort(view, model, 1);
        break;
    case 'r':
        view->ascending[view->table] = !view->ascending[view->table];
        break;
    case TOP_KEY_UP:
    case 'k':
        move_scroll(view, model, -1);
        break;
    case TOP_KEY_DOWN:
    case 'j':
        move_scroll(view, model, 1);
        break;
    case TOP_KEY_PAGE_UP:
        move_scroll(view, model, -PAGE);
        break;
    case TOP_KEY_PAGE_DOWN:
    case ' ':
        move_scroll(view, model, PAGE);
        break;
    case TOP_KEY_HOME:
        view->scroll[view->table] = 0;
        break;
    case 'h':
    case '?':
        view->help = true;
        break;
    default:
        break;
    }
    return true;
}
