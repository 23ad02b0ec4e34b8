/*
 * The router: makes one fabric of two, because the engine uses only one.
 *
 * Operations to this node itself use the loop, all others the net. Memory is registered with the
 * net, and the loop adopts it with the net's index, address and key, so that the engine has only
 * one name for it.
 *
 * Thread: the progress thread. Its close closes both fabrics.
 */
#ifndef PWC_FABRIC_ROUTER_H
#define PWC_FABRIC_ROUTER_H

#include "daemon/fabric/fabric.h"

struct router_config {
    uint32_t node;         /* number of this node among the peers */
    uint32_t memories_max; /* default 4096: most registrations under way */
};

/* Takes both fabrics over, also where it fails. `loop` comes from loop_open. */
int router_open(const struct router_config *config, struct fabric *net, struct fabric *loop,
                struct fabric **out);

#endif
