/* A node of the run: one daemon, its socket, and the address at which its peers find it. */
#ifndef PWCRUN_NODE_H
#define PWCRUN_NODE_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>
#include "tools/pwcrun/network.h"
#include "tools/pwcrun/options.h"
#include "tools/pwcrun/output.h"
#include "tools/pwcrun/processors.h"
#include "tools/pwcrun/reaper.h"
#include "tools/pwcrun/workdir.h"

struct node {
    unsigned number;
    char host[16];
    unsigned port;
    char netns[NETWORK_NAME_MAX]; /* empty: ours */
    char socket[108];
    bool bound; /* the node's processes stay on `processors` */
    cpu_set_t processors;
    pid_t pid;    /* 0: does not run */
    int ready;    /* reading end of the readiness pipe; -1: closed */
    bool serving; /* the daemon has reported that it is ready */
    struct output log;
};

/* Gives each node its name, socket and address. */
int nodes_plan(struct node *nodes, const struct options *options, const struct workdir *dir,
               const struct network *network);

/* Returns "PWC_SOCKETS=socket:socket:...", to be freed; NULL without memory. */
char *nodes_sockets(const struct node *nodes, unsigned count);

/* Returns "host:port,host:port,...", to be freed; NULL without memory. */
char *nodes_list(const struct node *nodes, unsigned count);

/* Finds pwcd: --daemon, $PWCD, beside pwcrun, then the path. */
int node_daemon_path(const struct options *options, char *out, size_t size);

/* Starts the daemon. */
int node_start(struct node *node, const char *daemon, const char *list,
               const struct options *options, const struct workdir *dir,
               const struct reaper *reaper);

/* Reads the readiness pipe: 1 when the daemon now serves, 0 when not yet, -EPIPE when it ended. */
int node_read_ready(struct node *node);

#endif
