/*
 * What a daemon holds, as Inspect and the kernel show it, so that a test can see it given back.
 *
 * Thread: any.
 */
#ifndef PWC_TESTS_LIB_RAW_LOOK_H
#define PWC_TESTS_LIB_RAW_LOOK_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include "tests/lib/cluster.h"
#include "tests/lib/daemon.h"

/* Among what is waited for: any number of descriptors. */
#define HOLDINGS_ANY INT_MAX

struct holdings {
    int clients, sessions, segments, regions, ops;
    int grants; /* nodes that know a region's key, of all regions */
    int descriptors;
    int mappings; /* of memory shared with clients, in the daemon's */
};

/* The answer to Inspect, which the caller releases, or NULL: on a connection, or on a new one. */
json_t *look_on(int socket, const char *what);
json_t *look_at(const struct daemon *d, const char *what);

/* Looks until two looks in a row show the same. False: the daemon does not answer. */
bool look_holdings(const struct daemon *d, struct holdings *out);
/* Waits until the daemon holds what it held then; prints the difference after too long a time. */
bool look_returns_to(const struct daemon *d, const struct holdings *then);
/* These two for a node of a cluster; descriptors and mappings are of the process that was started,
 * which is the keeper where there is one. */
bool look_node_holdings(const struct cluster_node *node, struct holdings *out);
bool look_node_returns_to(const struct cluster_node *node, const struct holdings *then);

/* Waits until the last one quarantined is this rank of this job, for this reason. */
bool look_quarantined(const struct daemon *d, const char *job, uint32_t rank, const char *reason);

#endif
