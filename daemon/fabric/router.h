/*
 * The router: one fabric made of two, since the engine knows only one.
 *
 * Operations to this node itself take the loop, all others the net. Memory is registered with
 * both; the engine sees the net's address and key, and a write to ourselves that names them is
 * turned into the loop's.
 *
 * Thread: the progress thread. Closing it closes both.
 */
#ifndef PWC_CONTROL_ROUTER_H
#define PWC_CONTROL_ROUTER_H

#include "daemon/fabric/fabric.h"

struct router_config {
    uint32_t node;         /* which peer is ourselves */
    uint32_t memories_max; /* 4096 */
};

/* Takes both fabrics over, also when it fails. */
int router_open(const struct router_config *config, struct fabric *net, struct fabric *loop,
                struct fabric **out);

#endif
