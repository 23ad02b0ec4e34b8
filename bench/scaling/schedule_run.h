/*
 * Runs a collective by its schedule alone (daemon/engine/coll/schedule.h), over the LogGP clock,
 * with participants that do nothing else, and returns its time and its number of letters.
 *
 * Participants of one node share its card; each has a processor of its own. Letters within a node
 * go through memory, with a model of the same form. To combine a byte costs as much as to copy one
 * within a node.
 *
 * Pure. Thread: one.
 */
#ifndef PWC_BENCH_SCHEDULE_RUN_H
#define PWC_BENCH_SCHEDULE_RUN_H

#include <stdint.h>
#include "daemon/engine/coll/schedule.h"
#include "daemon/fabric/sim/loggp.h"

struct schedule_shape {
    const struct coll_algorithm *algorithm;
    uint32_t nodes, a_node; /* participants of each: number p is on node p / a_node */
    uint64_t bytes;         /* of the data that the schedule cuts into blocks, at each */
    struct loggp network, memory;
};

struct schedule_cost {
    uint64_t ps;       /* until the last participant has ended */
    uint64_t messages; /* between nodes */
    uint64_t letters;  /* within nodes */
    uint64_t bytes;    /* of the messages' data */
    uint32_t rounds;
};

/* Returns 0; -ENOMEM; -E2BIG: more letters than fit into a run of some seconds; -EPROTO: a
 * participant waits for a letter that no other sends, or is too far ahead of another. */
int schedule_run(const struct schedule_shape *shape, struct schedule_cost *out);

#endif
