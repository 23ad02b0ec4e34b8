/*
 * What a job's daemons tell one another before they know where the others are: through PMIx, where
 * the launcher (srun --mpi=pmix, mpirun) has it.
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
    uint32_t own;                 /* which we are */
    bool spare;                   /* another task of this node is its daemon */
    char secret[PMIX_SECRET_MAX]; /* that rank 0 has given; or empty */
};

/* Whether the launcher offers it, and we are built with it. */
bool pmix_offered(void);
/*
 * All tasks of the launch call it, and it waits for all. `secret` counts with rank 0. -ENOTSUP,
 * -ENOTCONN (nobody answers), -EIO, -EPROTO, -ENOMEM; with the reason in `why`.
 */
int pmix_exchange(struct pmix_nodes *out, const struct node_address *ours, const char *secret,
                  char *why, size_t why_size);
void pmix_nodes_free(struct pmix_nodes *i);

#endif
