/*
 * Yields: in which of them has another thread run? A yield lets only threads of the same scheduler
 * group run (shm_ring/patience.h). Where the daemon is in another group and waits for this
 * processor, yields are in vain, and only a sleep helps.
 *
 *     duration   0 ----- lone ---------- middle ---------- shared -----
 *                 nobody has run           |     another thread has run
 *
 * How long both take differs by the machine: 0.3 and 2 us, or 1.2 and 9 us. So the context learns
 * a short time of each: it asks the kernel about a few yields at first, and seldom later.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_YIELDS_H
#define PWC_CLIENTLIB_YIELDS_H

#include <stdbool.h>
#include <stdint.h>

struct yields {
    uint32_t count;    /* yields that were judged */
    int64_t lone_ns;   /* a short yield in which nobody has run; 0: none was seen */
    int64_t shared_ns; /* a short yield in which another thread has run; 0: none was seen */
};

/* Yields the processor. Returns whether the yield was in vain: no other thread has run. */
bool yields_in_vain(struct yields *y);

#endif
