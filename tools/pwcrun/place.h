/* A rank of another launcher, for daemons that pwcrun --hold has started. */
#ifndef PWCRUN_PLACE_H
#define PWCRUN_PLACE_H

#include "tools/pwcrun/options.h"

/* Becomes the program, with the variables that libpwc reads. Returns only where that has failed:
 * the exit status, and stderr has the reason. */
int place_run(const struct options *options);

#endif
