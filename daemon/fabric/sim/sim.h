/*
 * A simulated fabric: many nodes in one process, in virtual time, with faults that a seed decides.
 *
 * One sim_world is the network and its clock. Each node opens its own struct fabric in it. An
 * operation is a sequence of events at random times: its source is read, it lands piece by piece,
 * it is announced, it completes. So every order that fabric.h allows happens for some seed, and
 * happens again for the same seed:
 *
 *   - a write without `placed` may complete before or after it lands, and even if it never lands;
 *   - writes longer than ordered_write_max overtake one another and land in pieces, in any order;
 *   - after a break, operations under way may have landed or not, and an operation that ended with
 *     an error may have done its work anyway;
 *   - nothing lands after its target has disconnected from the origin or closed its fabric.
 *
 * With `loggp`, an operation takes the time that the model gives (sim_network.c), in one piece and
 * in the order of arrival, and to register memory takes no time. Such a run measures the
 * performance of many nodes, and the seed only decides keys.
 *
 * Something that no engine may do (a wrong key or range on the wire, dropping memory that an
 * operation still uses, ...) is a fault. The first fault is kept, in words, for the test.
 *
 * Thread: a world and all its fabrics belong to one thread.
 */
#ifndef PWC_FABRIC_SIM_H
#define PWC_FABRIC_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/sim/loggp.h"

struct sim_world;

/* Zero means the default. */
struct sim_options {
    uint64_t seed;
    uint32_t nodes;             /* 2 */
    uint32_t pieces_max;        /* 4: pieces in which an unordered write lands */
    uint64_t delay_min_ns;      /* 200 */
    uint64_t delay_max_ns;      /* 5000: usual limit of one step; one in 16 takes up to 8 times as
                                 * long */
    uint64_t message_max;       /* 1 GiB */
    uint64_t ordered_write_max; /* 0: writes are not ordered */
    uint32_t rails;             /* 1: with more, writes are not ordered either */
    uint32_t outstanding_max;   /* 64: most operations of a node towards one peer; then -EAGAIN */
    uint32_t refuse_per_mille;  /* 0: how often a post is refused with -EAGAIN at random */
    uint32_t silent_per_mille;  /* 0: how often a break is not reported with FABRIC_BROKEN */
    uint32_t call_ns;           /* 0: in each post and poll, up to so much time passes */
    struct loggp loggp;         /* all zero: random delays */
};

struct sim_counters {
    uint64_t writes, reads, bytes; /* accepted operations; bytes: their payloads */
    uint64_t refused, landed, overtaken, pieces, lost, cancelled, breaks;
};

int sim_world_open(const struct sim_options *options, struct sim_world **out);
/* Closes the world, and fabrics that are still open. */
void sim_world_close(struct sim_world *world);

uint64_t sim_now(const struct sim_world *world);
/* Time of the next event; UINT64_MAX: nothing is under way. */
uint64_t sim_next(const struct sim_world *world);
/* Moves the clock forward, and carries out what is due. */
void sim_advance(struct sim_world *world, uint64_t now);

/* The first fault in words, or NULL. */
const char *sim_fault(const struct sim_world *world);
const struct sim_counters *sim_counters(const struct sim_world *world);
/* Writes a line for every event from now on; NULL: no more. */
void sim_trace(struct sim_world *world, FILE *to);

/* Cuts the link between two nodes: their connections break, and new ones break, too, until
 * sim_restore, which does not repair connections. */
void sim_cut(struct sim_world *world, uint32_t a, uint32_t b);
/* The connection accepts what `from` sends but carries nothing to `to`, until sim_carry, or until
 * one of the two sides connects again. The other direction works. */
void sim_swallow(struct sim_world *world, uint32_t from, uint32_t to);
void sim_carry(struct sim_world *world, uint32_t from, uint32_t to);
void sim_restore(struct sim_world *world, uint32_t a, uint32_t b);
bool sim_is_cut(const struct sim_world *world, uint32_t a, uint32_t b);

/* Opens a node's fabric. -EBUSY: the node has an open one. fabric_close ends it as a crash does:
 * peers get no event, and operations under way may still land. */
int sim_fabric_open(struct sim_world *world, uint32_t node, struct fabric **out);
/* How many events wait for the node's poll. */
uint32_t sim_waiting(const struct sim_world *world, uint32_t node);
/* Names a node that has got an event since this function named it last; false: there is none. */
bool sim_roused(struct sim_world *world, uint32_t *node);
/* How many operations of the node have not ended. */
uint32_t sim_outstanding(const struct sim_world *world, uint32_t node);

#endif
