/* What tests of offloads on real daemons share. Thread: the test's. */
#ifndef PWC_TESTS_SYSTEM_OFFLOAD_H
#define PWC_TESTS_SYSTEM_OFFLOAD_H

#include <stdbool.h>
#include "pwc/offload.h"
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"

/* Loads the program of an object file: 0, or as pwc_program_load, or -errno of the file. */
int offload_load(struct rank *r, const char *path, pwc_program **out);
/* Node 1's daemon is killed, or hands over, and the next one serves. The cluster has --keep. */
void offload_daemon_goes(const struct cluster *cluster, bool killed);

#endif
