/* pwcctl trace: asks daemons for the steps of their operations, for a while, and writes the steps
 * into a file. */
#ifndef PWCCTL_TRACE_H
#define PWCCTL_TRACE_H

#include "tools/pwcctl/options.h"

/* Runs until time or room is over, or a signal comes. 0, or a negative errno after a message on
 * stderr. */
int trace_run(const struct options *options);

#endif
