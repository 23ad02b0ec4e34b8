/* Two nodes of the simulated fabric without engines, each with one memory, connected. One thread.
 */
#ifndef PWC_TESTS_ENGINE_FABRIC_PAIR_H
#define PWC_TESTS_ENGINE_FABRIC_PAIR_H

#include <stdbool.h>
#include <stdint.h>
#include "daemon/fabric/sim/sim.h"

#define PAIR_BYTES 65536u

enum { ORIGIN, TARGET };

struct fabric_pair {
    struct sim_world *world;
    struct fabric *fabric[2];
    struct fabric_memory memory[2];
    uint8_t bytes[2][PAIR_BYTES];
};

/* A call that fails makes the test fail. `target_access`: what the origin may do to the target's
 * memory. */
void pair_open(struct fabric_pair *p, const struct sim_options *options, unsigned target_access);
void pair_close(struct fabric_pair *p);
void pair_link(struct fabric_pair *p);
/* Returns 1 with an event of the node, 0 when there is none. */
int pair_poll(struct fabric_pair *p, int node, struct fabric_event *event);
/* Lets time pass until the node has an event. Returns false when nothing is under way any more. */
bool pair_await(struct fabric_pair *p, int node, struct fabric_event *event);
/* A write of the origin's bytes to the same offset at the target, which is announced to the target;
 * and a read from there. */
struct fabric_write pair_write(struct fabric_pair *p, uint64_t offset, uint64_t length,
                               uint64_t cookie);
struct fabric_read pair_read(struct fabric_pair *p, uint64_t offset, uint64_t length,
                             uint64_t cookie);

#endif
