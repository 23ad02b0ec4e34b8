/* pwcctl top: looks at the daemon every so often, and shows it on the terminal, or in lines. */
#ifndef PWCCTL_TOP_TOP_H
#define PWCCTL_TOP_TOP_H

#include "tools/pwcctl/options.h"

/* 0, or a negative errno, said on stderr. */
int top_run(const struct options *options);

#endif
