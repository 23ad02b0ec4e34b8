/*
 * Through PMIx, the daemons of a job exchange their addresses and a secret, if the launcher (srun
 * --mpi=pmix, mpirun) has PMIx.
 *
 * Thread: main, at start.
 */
#ifndef PWC_CONTROL_PMIX_H
#define PWC_CONTROL_PMIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "daemon/control/nodes/nodes.h"

#define PMIX_SECRET_MAX 64u

struct pmix_nodes {
    struct node_address *nodes; /* the daemons' addresses, in the order of their ranks */
    uint32_t count;
    uint32_t own;                 /* our own entry */
    bool spare;                   /* this process is not the daemon of its node: another task is */
    char secret[PMIX_SECRET_MAX]; /* from rank 0; may be empty */
};

/* Whether the launcher offers PMIx, and this pwcd was built with it. */
bool pmix_offered(void);
/* Exchanges addresses among all tasks of the launch, and waits for all tasks. All use the secret
 * that rank 0 gave. Returns 0, -ENOTSUP, -ENOTCONN (no answer), -EIO, -EPROTO or -ENOMEM, with the
 * reason in `why`. */
int pmix_exchange(struct pmix_nodes *out, const struct node_address *ours, const char *secret,
                  char *why, size_t why_size);
void pmix_nodes_free(struct pmix_nodes *i);

#endif
