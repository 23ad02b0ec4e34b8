/*
 * Hostile processes: each attaches properly, writes anything, and attaches again when the daemon
 * has ended its session. Each ends when it has made its share of mutations, or when the board's
 * `stop` is set.
 *
 *     session   by hand, without the library: records, headers, everything while the daemon reads
 *     neighbour by the library, beside a well-behaved client of its job: sessions, pairs, segments
 *     sockets   strangers and attached ones: frames, descriptors, connections
 *
 * Thread: one in each process.
 */
#ifndef PWC_TESTS_HOSTILE_HOSTILE_H
#define PWC_TESTS_HOSTILE_HOSTILE_H

#include <stdint.h>
#include "tests/lib/cluster.h"
#include "tests/hostile/tally.h"

struct hostile {
    const struct cluster_node *node;
    const char *job;
    uint32_t rank, size; /* rank, and size of that job */
    uint64_t mutations;  /* its share of mutations */
    uint64_t seed;
    struct board *board;
    struct tally *tally;
};

/* Run until the share is done. The result is the exit status of the process. */
int hostile_session(const struct hostile *h);
int hostile_neighbour(const struct hostile *h);
int hostile_sockets(const struct hostile *h);

#endif
