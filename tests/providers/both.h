/*
 * Two sides of a test that know each other, and a program's daemons.
 */
#ifndef PWC_TESTS_PROVIDERS_BOTH_H
#define PWC_TESTS_PROVIDERS_BOTH_H

#include "tests/lib/cluster.h"
#include "tests/providers/side.h"
#include "tests/suite.h"

extern struct cluster both_cluster;

/* Side 0 writes to side 1, which stands at the next node, or at the same where there is one. */
const char *both_socket(unsigned node);
void both_open(struct side sides[2], const struct side_options *options);
void both_close(struct side sides[2]);

/* fi_write and fi_read of side 0, as often as it takes. */
ssize_t both_write(struct side sides[2], const void *from, size_t length, uint64_t address,
                   uint64_t key, void *context);
ssize_t both_read(struct side sides[2], void *to, size_t length, uint64_t address, uint64_t key,
                  void *context);

/* Options with addresses and keys of the provider, and entries of the longest format. */
extern const struct side_options both_basic;

/* A test program's main: daemons by the command line "PWCD PROVIDER [NODES] [--KEY VALUE]...", the
 * tests, and what is left. */
int both_main(int argc, char **argv, const char *name, CU_TestInfo *tests);

#endif
