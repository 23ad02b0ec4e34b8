/*
 * A plan for two daemons on this machine that are the nodes of one list: their ports, secrets and
 * folder.
 *
 * Thread: one at a time.
 */
#ifndef PWC_TESTS_CONTROL_PLAN_H
#define PWC_TESTS_CONTROL_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include "tests/lib/daemon.h"
#include "tests/suite.h"

#define PLAN_PROVIDER    "tcp;ofi_rxm"
#define PLAN_DEADLINE_MS "400"

struct plan {
    char place[32];
    char secrets[2][64]; /* paths of two files with different secrets */
    char nodes[96];      /* the list of nodes */
    char host[16];       /* a loopback address of this process's own */
    uint16_t ports[2];
};

bool plan_open(struct plan *plan);
void plan_close(struct plan *plan);
/* Starts a daemon as node 1, runs the tests against it, and stops it. Returns 0 where all have
 * passed and the daemon has ended with 0: a test program's status. */
int plan_run(struct plan *plan, struct daemon *d, const char *program, const char *suite,
             CU_TestInfo *tests);
/* Starts a daemon as this node, with this secret and this list of nodes. */
bool plan_start(struct daemon *d, const char *program, const char *node, const char *secret,
                const char *list);

#endif
