/*
 * One small operation of each kind over a remote; tests of remotes run them one after the other.
 *
 * Thread: the test's.
 */
#ifndef PWC_TESTS_CLIENTLIB_OPERATIONS_H
#define PWC_TESTS_CLIENTLIB_OPERATIONS_H

#include <stdbool.h>
#include "tests/clientlib/daemon/client_world.h"

enum { OPERATIONS = 10 };

/* Runs the operation once, over a remote of the world's context; only ranged operations use
 * `off`. */
typedef int operate(struct world *w, pwc_remote *to, uint64_t off, pwc_cid lid);

struct operation_case {
    operate *run;
    bool ranged; /* the operation is refused past the end of the region */
};
extern const struct operation_case operations[OPERATIONS];

operate operation_put; /* the first row, a put of 8 bytes */

#endif
