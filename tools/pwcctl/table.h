/* Text in aligned columns. */
#ifndef PWCCTL_TABLE_H
#define PWCCTL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TABLE_COLUMNS_MAX 26u
#define TABLE_CELL_MAX    128u

struct table {
    size_t columns;
    size_t count, room;           /* of cells */
    bool left[TABLE_COLUMNS_MAX]; /* text stands left, numbers right */
    char (*cells)[TABLE_CELL_MAX];
};

void table_open(struct table *table, size_t columns);
void table_close(struct table *table);
/* Returns the next cell to be written to, row by row; NULL without memory. */
char *table_cell(struct table *table);
void table_print(const struct table *table, FILE *to);

#endif
