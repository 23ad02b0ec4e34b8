/* pwcctl top: looks at the daemon every so often, and shows it on the terminal, or in lines. */
#ifndef PWCCTL_TOP_TOP_H
#define PWCCTL_TOP_TOP_H

#include "tools/pwcctl/options.h"

/* Runs until the user quits. 0, or a negative errno after a message on stderr. */
int top_run(const struct options *options);

#endif
