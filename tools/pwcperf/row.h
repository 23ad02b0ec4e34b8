/* One row of what pwcperf prints: a line of a table, or a JSON object. */
#ifndef PWCPERF_ROW_H
#define PWCPERF_ROW_H

#include <stdio.h>
#include "tools/pwcperf/options.h"
#include "tools/pwcperf/samples.h"

/* Prints a row in the form that options->json names. The heading precedes a table's first row. */
void row_print(FILE *to, const struct options *options, const struct result *r);

#endif
