/*
 * Counts of what a daemon holds, from Inspect and the kernel, so that a test can see that the
 * daemon has given everything back.
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

/* A number of descriptors that equals any other. */
#define HOLDINGS_ANY INT_MAX

struct holdings {
    int clients, sessions, segments, regions, ops;
    int programs, offloads;
    int grants; /* all grants: nodes that know a region's key, summed over regions */
    int descriptors;
    int mappings; /* mappings, in the daemon's process, of memory shared with clients */
};

/* Asks the daemon by Inspect, over this connection or over a new one. Returns the answer, which the
 * caller releases, or NULL. */
json_t *look_on(int socket, const char *what);
json_t *look_at(const struct daemon *d, const char *what);

/* Looks until two looks in a row show the same holdings. Returns false if the daemon does not
 * answer. */
bool look_holdings(const struct daemon *d, struct holdings *out);
/* Waits until the daemon's holdings are `then` again; if that takes too long, prints the
 * difference. */
bool look_returns_to(const struct daemon *d, const struct holdings *then);
/* look_holdings and look_returns_to for a node of a cluster. Descriptors and mappings are those of
 * the process that was started, which is the keeper if there is one. */
bool look_node_holdings(const struct cluster_node *node, struct holdings *out);
bool look_node_returns_to(const struct cluster_node *node, const struct holdings *then);

/* Waits until the last client in quarantine is this rank of this job, for this reason. */
bool look_quarantined(const struct daemon *d, const char *job, uint32_t rank, const char *reason);

#endif
