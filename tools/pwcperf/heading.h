/* The first line of a table: what is measured, with how many ranks, over what, and where they run.
 */
#ifndef PWCPERF_HEADING_H
#define PWCPERF_HEADING_H

#include <stdio.h>
#include "tools/pwcperf/world.h"

/* Prints the line. Values that the daemon does not answer are left out. Rank 0 calls it. */
void heading_print(FILE *to, const struct world *world);

/* Formats it: `nodes` 0: not known; `fabric` NULL: not known, or not used. */
void heading_format(char *out, size_t size, const struct options *options, uint32_t ranks,
                    uint32_t nodes, const char *fabric, bool bound);

#endif
