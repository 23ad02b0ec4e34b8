/*
 * The exchange of a job's daemons before they know each other's addresses: through PMIx, if the
 * launcher (srun --mpi=pmix, mpirun) has it.
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
    struct node_address *nodes; /* of the daemons, in the order of their ranks */
    uint32_t count;
    uint32_t own;                 /* our own entry */
    bool spare;                   /* another task of this node is its daemon */
    char secret[PMIX_SECRET_MAX]; /* from rank 0; may be empty */
};

/* Whether the launcher offers PMIx and we are built with it. */
bool pmix_offered(void);
/* Exchanges addresses among all tasks of the launch, and waits for all. The secret of rank 0 is
 * used. -ENOTSUP, -ENOTCONN (no answer), -EIO, -EPROTO, -ENOMEM; with the reason in `why`. */
int pmix_exchange(struct pmix_nodes *out, const struct node_address *ours, const char *secret,
                  char *why, size_t why_size);
void pmix_nodes_free(struct pmix_nodes *i);

#endif
