/*
 * Pairs: rings between two contexts of this node, which then reach each other without the daemon
 * (pair_abi.h). A pair is made when an origin binds a target of its own user and job, and both
 * libraries take part; it ends when one of the two contexts ends, or when the origin's library has
 * given up the bind for which it was made. The daemon only makes pairs, marks a side as gone, and
 * shows the counts of both sides.
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

/* The way to a neighbour, for the answer to the origin. The descriptors are in the order of
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

/* Finds or makes the pair from one context to another, and adds the segment of the region in
 * `found`. A new pair is announced to the target. The caller has zeroed `out`. A negative errno:
 * there can be no pair, and all operations go through the daemon. */
int pairs_connect(struct client_session *origin, struct client_session *target,
                  const struct engine_neighbour *found, uint32_t rights, struct pair_way *out);
/* Inherits a pair; on success, takes the descriptor over. */
int pairs_inherit(struct client_session *origin, struct client_session *target, uint64_t number,
                  uint32_t slot, int descriptor);
/* Marks a pair that cannot be inherited as gone, so that the context that is left ends its
 * operations. A side that was not inherited is NULL; if both are here, both lose the pair. The
 * descriptor stays the caller's. */
void pairs_abandon(struct client_session *origin, struct client_session *target, int descriptor);
/* The operations that a context has done by its pairs so far. The client reports them itself, so
 * they are only for display. */
struct direct_counts pairs_count(const struct client_session *s);
/* Ends the pair with this number, if `origin` is its origin: the library has not mapped the pair,
 * so the next bind gets a new one. */
void pairs_give_up(struct client_session *origin, uint64_t number);
/* Ends all pairs of a context that ends. */
void pairs_end(struct client_session *s);

#endif
