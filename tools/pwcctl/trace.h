/* pwcctl trace: asks daemons for what their operations do, for a while, and writes it down. */
#ifndef PWCCTL_TRACE_H
#define PWCCTL_TRACE_H

#include "tools/pwcctl/options.h"

/* 0, or a negative errno, said on stderr. */
int trace_run(const struct options *options);

#endif
