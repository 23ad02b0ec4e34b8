/* The table of rows (row.h). Thread: one. */
#include "bench/scaling/row.h"

#include <string.h>

static const struct row rows[] = {
    {"neighbours", "each rank puts 8 bytes to 2 neighbours and awaits theirs", 2, 1024,
     row_exchange},
    {"peers-8", "the same with 8 peers", 8, 1024, row_exchange},
    {"peers-64", "the same with 64 peers", 64, 1024, row_exchange},
    {"all-to-all", "the same with all others", 0, 256, row_exchange},
    {"attach-1", "a job attaches, 1 rank a node", 1, 1024, row_attach},
    {"attach-64", "a job attaches, 64 ranks a node", 64, 1024, row_attach},
    {"memory-1024", "a node linked to N of 1,024 peers", 1024, 512, row_memory},
    {"memory-16384", "a node linked to N of 16,384 peers", 16384, 512, row_memory},
};

const struct row *rows_all(uint32_t *count)
{
    *count = sizeof rows / sizeof rows[0];
    return rows;
}

const struct row *row_named(const char *name)
{
    for (const struct row *row = rows; row < rows + sizeof rows / sizeof rows[0]; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

void figure_add(struct figures *figures, const char *name, double value)
{
    if (figures->count < FIGURES_MAX)
        figures->of[figures->count++] = (struct figure){name, value};
}

double figure_of(const struct figures *figures, const char *name)
{
    for (uint32_t i = 0; i < figures->count; i++)
        if (strcmp(figures->of[i].name, name) == 0)
            return figures->of[i].value;
    return 0;
}
