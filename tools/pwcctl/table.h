/*
 * Text in aligned columns, never wider than TABLE_WIDTH. A text that is too long continues in the
 * lines below it. Columns that do not fit beside each other stand below each other, in parts; each
 * part begins with the columns that name a row.
 */
#ifndef PWCCTL_TABLE_H
#define PWCCTL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TABLE_COLUMNS_MAX 257u /* a name, and a value of each daemon */
#define TABLE_CELL_MAX    256u
#define TABLE_WIDTH       100u

struct table {
    size_t columns;
    size_t count, room;            /* of cells */
    bool left[TABLE_COLUMNS_MAX];  /* text stands left, numbers right */
    bool names[TABLE_COLUMNS_MAX]; /* the column names a row: each part repeats it */
    char (*cells)[TABLE_CELL_MAX];
};

void table_open(struct table *table, size_t columns);
void table_close(struct table *table);
/* Returns the next cell to be written to, row by row; NULL without memory. */
char *table_cell(struct table *table);
void table_print(const struct table *table, FILE *to);

#endif
