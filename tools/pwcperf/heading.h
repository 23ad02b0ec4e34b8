/* The first line of a table: what is measured, with how many ranks, over which fabric, and where
 * the ranks run. */
#ifndef PWCPERF_HEADING_H
#define PWCPERF_HEADING_H

#include <stdio.h>
#include "tools/pwcperf/world.h"

/* Prints the line. Values that the daemon does not give are left out. Rank 0 calls this. */
void heading_print(FILE *to, const struct world *world);

/* Formats the line. `nodes` 0: not known; `fabric` NULL: not known, or not used. */
void heading_format(char *out, size_t size, const struct options *options, uint32_t ranks,
                    uint32_t nodes, const char *fabric, bool bound);

#endif
