/*
 * Sets of LogGP parameters, each with its source. `hdr` is the default.
 *
 * Thread: any; constants.
 */
#ifndef PWC_BENCH_NETWORK_H
#define PWC_BENCH_NETWORK_H

#include "daemon/fabric/sim/loggp.h"

struct network {
    const char *name;
    struct loggp loggp;
};

/* NULL: there is none of that name. */
const struct network *network_named(const char *name);

#endif
