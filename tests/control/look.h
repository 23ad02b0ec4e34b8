/*
 * What a daemon holds, as Inspect and the kernel show it, so that a test can see it given back.
 *
 * Thread: any.
 */
#ifndef PWC_TESTS_CONTROL_LOOK_H
#define PWC_TESTS_CONTROL_LOOK_H

#include <jansson.h>
#include <stdbool.h>
#include "tests/control/daemon.h"

struct holdings {
    int clients, sessions, segments, regions, ops;
    int mappings; /* of sessions and segments, in the daemon's memory */
    int descriptors;
};

/* The answer to Inspect, the caller's to release, or NULL: on a connection, or on one of its own.
 */
json_t *look_on(int socket, const char *what);
json_t *look_at(const struct daemon *d, const char *what);
bool look_holdings(const struct daemon *d, struct holdings *out);
/* Until it holds what it held then; prints the difference after too long a time. */
bool look_returns_to(const struct daemon *d, const struct holdings *then);
/* Waits until the last one quarantined is this rank of this job, for this reason. */
bool look_quarantined(const struct daemon *d, const char *job, uint32_t rank, const char *reason);

#endif
