/* Joins the documents of a look into the rows of the tables. Pure. */
#ifndef PWCCTL_TOP_TABLES_H
#define PWCCTL_TOP_TABLES_H

#include "tools/pwcctl/top/model.h"

/* Returns a new array of objects with the keys that the columns name, or NULL: malformed documents,
 * or no memory. Changes the documents. */
json_t *top_join(const struct top_look *look, enum top_table table);
/* Returns the name of a row, which no other row of its table has. */
void top_row_name(const json_t *row, enum top_table table, char *out, size_t size);

#endif
