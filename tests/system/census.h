/*
 * What a daemon holds, as pwcctl shows it: rows of its views, and its descriptors.
 *
 * Thread: any.
 */
#ifndef PWC_TESTS_SYSTEM_CENSUS_H
#define PWC_TESTS_SYSTEM_CENSUS_H

#include <stdbool.h>
#include "tests/system/cluster.h"

struct census {
    int clients, contexts, regions, ops;
    int grants; /* how many nodes know its regions' keys */
    int descriptors;
    int mappings; /* of memory shared with clients */
};

/* Asks the daemon through `pwcctl` (a path), until it holds the same twice. Prints what fails;
 * -EIO. */
int census_take(const char *pwcctl, const struct cluster_node *node, struct census *out);

/* Until the daemon holds what it held then; prints the difference after too long a time. */
bool census_returns_to(const char *pwcctl, const struct cluster_node *node,
                       const struct census *then);

#endif
