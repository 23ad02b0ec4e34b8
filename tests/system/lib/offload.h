/* Helpers for tests of offloads on real daemons. Thread: the test's. */
#ifndef PWC_TESTS_SYSTEM_OFFLOAD_H
#define PWC_TESTS_SYSTEM_OFFLOAD_H

#include <stdbool.h>
#include "pwc/offload.h"
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"

/* Loads the program of an object file. Returns 0, an error of pwc_program_load, or -errno of
 * reading the file. */
int offload_load(struct rank *r, const char *path, pwc_program **out);
/* Kills node 1's daemon, or lets it hand over, and waits until the next one serves. The cluster
 * must have --keep. */
void offload_daemon_goes(const struct cluster *cluster, bool killed);

#endif
