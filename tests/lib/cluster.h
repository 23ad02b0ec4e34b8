/*
 * A few daemons on this machine, each a node of its own, for tests that look at them from outside.
 *
 * The daemons use a loopback address that only this process uses, and a folder of their own with
 * the sockets and the secret. They die with the process. PWC_TEST_LOG sets their level of logging.
 *
 * Thread: the one that opened it (a daemon dies with the thread that started it).
 */
#ifndef PWC_TESTS_LIB_CLUSTER_H
#define PWC_TESTS_LIB_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CLUSTER_NODES_MAX 4u

struct cluster_options {
    const char *pwcd;         /* path of the daemon */
    const char *provider;     /* NULL: the daemon's choice */
    const char *protocol;     /* NULL: the daemon's default */
    const char *const *more;  /* further arguments, NULL-terminated; NULL: none */
    const char *const *given; /* further arguments after those of `more` */
    const char *const *one_more[CLUSTER_NODES_MAX]; /* further arguments for one node, as `more` */
    unsigned nodes;
};

struct cluster_node {
    pid_t pid;  /* 0: the daemon does not run */
    int status; /* as wait(2) returned it for the last daemon that ran */
    unsigned port;
    char socket[108];
};

struct cluster {
    struct cluster_options options;
    struct cluster_node nodes[CLUSTER_NODES_MAX];
    char folder[64];
    char secret[80];
    char host[16];
    char list[128]; /* the list of nodes */
    char failure[200];
};

/* Takes a test program's command line, "PWCD PROVIDER [NODES] [--KEY VALUE]...", into `options`.
 * Without NODES, `nodes` stays as it is. If the line has another form, prints the usage and returns
 * false. */
bool cluster_arguments(struct cluster_options *options, int argc, char **argv);

/* Starts all daemons and waits until they serve. Returns 0, or a negative errno with an explanation
 * in cluster->failure. */
int cluster_open(struct cluster *cluster, const struct cluster_options *options);

/* Ends the daemons in order and removes the folder. Returns 0, or -EIO with an explanation in
 * cluster->failure when one of them did not end well. */
int cluster_close(struct cluster *cluster);

/* Closes the cluster, prints what has failed, and returns what main is to return: `status`, or 1 if
 * the cluster did not end well. */
int cluster_end(struct cluster *cluster, int status);

/* Sends SIGKILL to the daemon and waits for its end. */
void cluster_kill(struct cluster *cluster, unsigned node);
/* Starts a killed daemon again, in its old place. */
int cluster_restart(struct cluster *cluster, unsigned node);

/* For nodes that run `pwcd --keep`. Returns the daemon that the node's keeper has started, or 0. */
pid_t cluster_kept(const struct cluster *cluster, unsigned node);
/* Waits, for a minute at most, until the keeper has a daemon other than `before`. Returns it, or 0.
 */
pid_t cluster_next(const struct cluster *cluster, unsigned node, pid_t before);

/* Returns whether every daemon that was started and not killed still runs; otherwise
 * cluster->failure says which one has ended. */
bool cluster_runs(struct cluster *cluster);

#endif
