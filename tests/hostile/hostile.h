/*
 * Hostile processes: each attaches properly, writes what it likes, and attaches again when the
 * daemon has ended its session. Each ends when it has done its share, or when the board says stop.
 *
 *     session   by hand, without the library: records, headers, everything while the daemon reads
 *     neighbour by the library, beside a well-behaved client of its job: sessions, pairs, segments
 *     sockets   strangers and attached ones: frames, descriptors, connections
 *
 * Thread: each process has one, and the first another that scribbles.
 */
#ifndef PWC_TESTS_HOSTILE_HOSTILE_H
#define PWC_TESTS_HOSTILE_HOSTILE_H

#include <stdint.h>
#include "tests/lib/cluster.h"
#include "tests/hostile/tally.h"

struct hostile {
    const struct cluster_node *node;
    const char *job;
    uint32_t rank, size; /* in that job */
    uint64_t mutations;  /* its share */
    uint64_t seed;
    struct board *board;
    struct tally *tally;
};

/* Runs until its share is done; the result is the exit status of its process. */
int hostile_session(const struct hostile *h);
int hostile_neighbour(const struct hostile *h);
int hostile_sockets(const struct hostile *h);

#endif
