/*
 * The two sides of a test, which have exchanged addresses, and the daemons of a test program.
 * Thread: the test's.
 */
#ifndef PWC_TESTS_PROVIDERS_BOTH_H
#define PWC_TESTS_PROVIDERS_BOTH_H

#include "tests/lib/cluster.h"
#include "tests/providers/side.h"
#include "tests/suite.h"

extern struct cluster both_cluster;

/* The socket of a node's daemon; numbers past the last node begin again with the first. */
const char *both_socket(unsigned node);
/* Opens side 0 at the first node, and side 1 at the next node, or at the same one where there is
 * only one. */
void both_open(struct side sides[2], const struct side_options *options);
void both_close(struct side sides[2]);

/* Stops the daemon of a side, so that what the side submits, or others submit to it, does not end;
 * lets it go on. */
void both_stop_daemon(unsigned side);
void both_resume_daemon(unsigned side);

/* fi_write and fi_read of side 0, repeated while they return -FI_EAGAIN. */
ssize_t both_write(struct side sides[2], const void *from, size_t length, uint64_t address,
                   uint64_t key, void *context);
ssize_t both_read(struct side sides[2], void *to, size_t length, uint64_t address, uint64_t key,
                  void *context);

/* Options with the provider's addresses and keys, and with entries in the longest format. */
extern const struct side_options both_basic;

/* The main function of a test program: starts daemons as the command line "PWCD PROVIDER [NODES]
 * [--KEY VALUE]..." says, runs the tests, and checks that nothing is left. */
int both_main(int argc, char **argv, const char *name, CU_TestInfo *tests);

/* As both_main, with further arguments of all daemons (cluster.h). */
int both_main_with(const char *const *more, int argc, char **argv, const char *name,
                   CU_TestInfo *tests);

#endif
