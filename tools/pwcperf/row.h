/* One row of what pwcperf prints: a line of a table, or a JSON object. */
#ifndef PWCPERF_ROW_H
#define PWCPERF_ROW_H

#include <stdio.h>
#include "tools/pwcperf/options.h"
#include "tools/pwcperf/samples.h"

/* As options->json says. The first row of a table comes with its heading. */
void row_print(FILE *to, const struct options *options, const struct result *r);

#endif
