/*
 * A decorator that makes another fabric slower and, if asked, reorders its writes. So the times and
 * races of a longer wire appear on this machine.
 *
 * Completions and arrivals are held back for a random time between two bounds, and keep their
 * order. With `reorder`, writes are held back as well, each for a time of its own, so that they
 * overtake one another, and the fabric promises no order. While anything is held back, arm returns
 * -EAGAIN, so that the caller does not sleep too long.
 *
 * Thread: the progress thread. Its close also closes the inner fabric.
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
    uint32_t held_max;       /* default 4096: most writes and events that are held back */
    uint64_t (*clock)(void); /* in ns; must be set */
};

int delay_open(struct fabric *inner, const struct delay_config *config, struct fabric **out);

#endif
