/* Collects cells and prints them when all widths are known. */
#include "tools/pwcctl/table.h"
#include <stdlib.h>
#include <string.h>

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

void table_print(const struct table *table, FILE *to)
{
    size_t width[TABLE_COLUMNS_MAX] = {0};
    for (size_t i = 0; i < table->count; i++) {
        size_t length = strlen(table->cells[i]), column = i % table->columns;
        width[column] = length > width[column] ? length : width[column];
    }
    for (size_t i = 0; i < table->count; i++) {
        size_t column = i % table->columns;
        bool last = column + 1 == table->columns;
        int columns = (int)width[column];
        if (!table->left[column])
            fprintf(to, "%*s", columns, table->cells[i]);
        else if (last) /* no blanks at the end of a line */
            fputs(table->cells[i], to);
        else
            fprintf(to, "%-*s", columns, table->cells[i]);
        fputs(last ? "\n" : "  ", to);
    }
}
