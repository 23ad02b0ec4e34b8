/* Collects cells and prints them when all widths are known (table.h). */
#include "tools/pwcctl/table.h"
#include <stdlib.h>
#include <string.h>

#define GAP        2u  /* blanks between columns */
#define TEXT_MAX   40u /* width of a text with other columns beside it */
#define NAMING_MAX 24u /* width of a text that names a row */

void table_open(struct table *table, size_t columns)
{
    *table = (struct table){.columns = columns};
}

void table_close(struct table *table)
{
    free(table->cells);
}

char *table_cell(struct table *table)
{
    if (table->count == table->room) {
        size_t room = table->room != 0 ? 2 * table->room : 64 * table->columns;
        void *cells = realloc(table->cells, room * sizeof(*table->cells));
        if (cells == NULL)
            return NULL;
        table->cells = cells;
        table->room = room;
    }
    char *cell = table->cells[table->count++];
    cell[0] = '\0';
    return cell;
}

/* The columns of one part, and how wide each of them is. */
struct part {
    size_t columns[TABLE_COLUMNS_MAX], width[TABLE_COLUMNS_MAX];
    size_t count, used;
};

static void add(struct part *part, size_t column, size_t width)
{
    part->used += width + (part->count > 0 ? GAP : 0);
    part->columns[part->count] = column;
    part->width[part->count++] = width;
}

/* Takes the columns that name a row; then, from `*next` on, the columns that fit, at least one. */
static struct part next_part(const struct table *table, const size_t *widest, size_t *next)
{
    struct part part = {.count = 0};
    bool has_own = false;
    for (size_t c = 0; c < table->columns; c++) {
        size_t most = table->names[c] ? NAMING_MAX : TEXT_MAX;
        size_t width = table->left[c] && widest[c] > most ? most : widest[c];
        bool is_own = c >= *next && !table->names[c];
        if (is_own && has_own && part.used + GAP + width > TABLE_WIDTH)
            break;
        if (table->names[c] || is_own)
            add(&part, c, width);
        has_own = has_own || is_own;
        *next = is_own ? c + 1 : *next;
    }
    return part;
}

/* Widens texts to their full width while the part has room, from its last column on. */
static void stretch(struct part *part, const size_t *widest)
{
    for (size_t i = part->count; i-- > 0 && part->used < TABLE_WIDTH;) {
        size_t lacks = widest[part->columns[i]] - part->width[i], left = TABLE_WIDTH - part->used;
        lacks = lacks < left ? lacks : left;
        part->width[i] += lacks;
        part->used += lacks;
    }
}

/* Returns how many bytes of the text stand in a line of this width: whole words where it can. */
static size_t line_of(const char *text, size_t width)
{
    size_t length = strlen(text), end = width;
    if (length <= width)
        return length;
    while (end > 0 && text[end] != ' ')
        end--;
    return end > 0 ? end : width;
}

/* Prints a row of the part; `rest` is what each of its cells has not shown yet. Returns whether
 * something remains. */
static bool print_line(const struct table *table, const struct part *part, const char **rest,
                       FILE *to)
{
    bool more = false;
    size_t at = 0, begin = 0;
    for (size_t i = 0; i < part->count; i++) {
        size_t length = line_of(rest[i], part->width[i]), blanks = part->width[i] - length;
        size_t before = table->left[part->columns[i]] ? 0 : blanks;
        if (length > 0) { /* no blanks at the end of a line */
            fprintf(to, "%*s%.*s", (int)(begin + before - at), "", (int)length, rest[i]);
            at = begin + before + length;
        }
        begin += part->width[i] + GAP;
        rest[i] += length;
        while (*rest[i] == ' ')
            rest[i]++;
        more = more || *rest[i] != '\0';
    }
    fputc('\n', to);
    return more;
}

static void print_part(const struct table *table, const struct part *part, FILE *to)
{
    for (size_t row = 0; row + table->columns <= table->count; row += table->columns) {
        const char *rest[TABLE_COLUMNS_MAX];
        for (size_t i = 0; i < part->count; i++)
            rest[i] = table->cells[row + part->columns[i]];
        while (print_line(table, part, rest, to))
            continue;
    }
}

static bool has_own_from(const struct table *table, size_t next)
{
    for (size_t c = next; c < table->columns; c++)
        if (!table->names[c])
            return true;
    return false;
}

void table_print(const struct table *table, FILE *to)
{
    size_t widest[TABLE_COLUMNS_MAX] = {0}, next = 0;
    for (size_t i = 0; i < table->count; i++) {
        size_t length = strlen(table->cells[i]), column = i % table->columns;
        widest[column] = length > widest[column] ? length : widest[column];
    }
    do {
        if (next > 0)
            fputc('\n', to);
        struct part part = next_part(table, widest, &next);
        stretch(&part, widest);
        print_part(table, &part, to);
    } while (has_own_from(table, next));
}
