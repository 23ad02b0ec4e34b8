/* A rank of the run: one copy of the program, on one node. */
#ifndef PWCRUN_RANK_H
#define PWCRUN_RANK_H

#include <sys/types.h>
#include "tools/pwcrun/node.h"
#include "tools/pwcrun/options.h"
#include "tools/pwcrun/output.h"

struct rank {
    unsigned number;
    pid_t pid;              /* 0: does not run */
    struct output out, err; /* with --label */
};

/* Returns the node of a rank, when `ranks` are spread over `nodes` in blocks. */
static inline unsigned rank_node(unsigned rank, unsigned ranks, unsigned nodes)
{
    return (unsigned)((unsigned long)rank * nodes / ranks);
}

int rank_start(struct rank *rank, unsigned number, const struct node *node, const char *job,
               const struct options *options, const struct reaper *reaper);

/* Starts the program as the launcher of ranks (--hold), with `sockets`, "PWC_SOCKETS=...", in its
 * environment. */
int rank_start_launcher(struct rank *rank, char *sockets, const struct options *options,
                        const struct reaper *reaper);

#endif
