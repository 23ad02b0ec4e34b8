/*
 * Pairs: the ways between contexts of this node that pass the daemon by (pair_abi.h). Made when an
 * origin binds a target of its own user and job, and both libraries take part; ended with either
 * context. The daemon only makes them, marks them when a side is gone, and shows what both sides
 * count in them.
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

struct pair {
    struct pair *next; /* of all */
    uint64_t number;
    struct client_session *origin, *target;
    uint32_t slot;       /* on the target's board, or BOARD_NONE */
    struct mapping ring; /* charged to the origin's client */
    int range;
};

/* What the origin is sent: descriptors as control.proto says, the caller's to send or close. */
struct pair_way {
    uint64_t number;
    bool fresh;
    uint64_t segment_length;
    bool board;
    uint32_t slot;
    int descriptors[3];
    uint32_t descriptor_count;
};

/*
 * The way from one context to another and to the segment of the region that was found, made and
 * told to the target where there is none yet. Zeroed `out`. A negative errno where there can be
 * none: then everything goes through the daemon.
 */
int pairs_connect(struct client_session *origin, struct client_session *target,
                  const struct engine_neighbour *found, uint32_t rights, struct pair_way *out);
/* A pair that was inherited; takes the descriptor over on success. */
int pairs_inherit(struct client_session *origin, struct client_session *target, uint64_t number,
                  uint32_t slot, int descriptor);
/* What a context has done by its pairs so far: its word, and nothing is built on it. */
struct direct_counts pairs_count(const struct client_session *s);
/* A context ends, and its pairs with it. */
void pairs_end(struct client_session *s);

#endif
