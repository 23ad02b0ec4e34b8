/*
 * The router: one fabric made of two, since the engine knows only one.
 *
 * Operations to this node itself take the loop, all others the net. Memory is registered with the
 * net, and the loop adopts it under the net's index, address and key: the engine knows one name.
 *
 * Thread: the progress thread. Closing it closes both.
 */
#ifndef PWC_CONTROL_ROUTER_H
#define PWC_CONTROL_ROUTER_H

#include "daemon/fabric/fabric.h"

struct router_config {
    uint32_t node;         /* number of this node among the peers */
    uint32_t memories_max; /* 4096: registrations under way at a time */
};

/* Takes both fabrics over, also when it fails. `loop` is one of loop_open. */
int router_open(const struct router_config *config, struct fabric *net, struct fabric *loop,
                struct fabric **out);

#endif
