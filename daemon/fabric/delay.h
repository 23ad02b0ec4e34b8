/*
 * A decorator that makes another fabric slower and, if asked, less orderly: the figures and the
 * races of a longer wire on this machine.
 *
 * Completions and arrivals are held back for a random time between two bounds, in their order.
 * With `reorder`, writes are held back as well, each for a time of its own, so that they overtake
 * one another; the fabric then promises no order. While anything is held back, arm gives -EAGAIN,
 * so that the caller does not sleep past it.
 *
 * Thread: the progress thread. Closing it closes the fabric inside.
 */
#ifndef PWC_FABRIC_DELAY_H
#define PWC_FABRIC_DELAY_H

#include <stdbool.h>
#include <stdint.h>
#include "daemon/fabric/fabric.h"

struct delay_config {
    uint64_t least_ns; /* default 1000 */
    uint64_t most_ns;  /* default 10000 */
    uint64_t seed;
    bool reorder;
    uint32_t held_max;       /* default 4096: writes and events held back at a time */
    uint64_t (*clock)(void); /* nanoseconds; needed */
};

int delay_open(struct fabric *inner, const struct delay_config *config, struct fabric **out);

#endif
