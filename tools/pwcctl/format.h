/* Numbers as people read them. Each writes at most TABLE_CELL_MAX characters. */
#ifndef PWCCTL_FORMAT_H
#define PWCCTL_FORMAT_H

#include <jansson.h>
#include "views/fields.h"

void format_number(double value, enum field_unit format, char *out);
/* Writes the value; "-" for null and for a value that is missing. */
void format_cell(const json_t *value, enum field_unit format, char *out);

#endif
