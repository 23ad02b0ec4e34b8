/*
 * Pairs: rings between two contexts of this node, which then reach each other without the daemon
 * (pair_abi.h). A pair is made when an origin binds a target of its own user and job, and both
 * libraries take part; it ends with either context. The daemon only makes pairs, marks a side that
 * is gone, and shows what both sides count.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_PAIRS_H
#define PWC_CONTROL_PAIRS_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/board_abi.h"
#include "daemon/control/clients/client.h"
#include "proto/pair_abi.h"

#define PAIRS_MAX 1024u /* of one origin */

/* A pair's place in one list of pairs. */
struct pair_place {
    struct pair *next;
    struct pair **at; /* the pointer that leads to this pair; NULL: it is in no list */
};

struct pair {
    struct pair_place same_hash, of_origin, of_target;
    uint64_t number;
    struct client_session *origin, *target;
    uint32_t slot;       /* slot on the target's board, or BOARD_NONE */
    struct mapping ring; /* charged to the origin's client */
    int range;
};

/* The answer to the origin with the way to a neighbour. The descriptors stand in the order of
 * control.proto; the caller sends or closes them. */
struct pair_way {
    uint64_t number;
    bool fresh;
    uint64_t segment_length;
    bool board;
    uint32_t slot;
    int descriptors[3];
    uint32_t descriptor_count;
};

/* Finds or makes the pair from one context to another, and adds the segment of the region that was
 * found. A new pair is announced to the target. `out` is zeroed by the caller. A negative errno:
 * there can be no pair, and everything goes through the daemon. */
int pairs_connect(struct client_session *origin, struct client_session *target,
                  const struct engine_neighbour *found, uint32_t rights, struct pair_way *out);
/* Inherits a pair; takes the descriptor over on success. */
int pairs_inherit(struct client_session *origin, struct client_session *target, uint64_t number,
                  uint32_t slot, int descriptor);
/* The operations that a context has done by its pairs so far. The client reports them itself, so
 * they are only for display. */
struct direct_counts pairs_count(const struct client_session *s);
/* Ends the pairs of a context that ends. */
void pairs_end(struct client_session *s);

#endif
