/*
 * Arm and wake: how one side of a ring sleeps without a lost wake-up.
 *
 *     sleeper                              waker
 *     poll, nothing there                  write record, publish
 *     arm: store armed = mode     (C)      full fence              (D)
 *     full fence                  (C)      load armed; if not 0, exchange it with 0;
 *     look again; if there: disarm           who got a mode wakes
 *     else sleep
 *
 * The two full fences pair: either the sleeper's second look sees the record, or the waker's load
 * sees the arm. One sleeper, any number of wakers. The daemon never sleeps on, nor reads, anything
 * that a client can block.
 */
#ifndef PWC_SHM_RING_DOORBELL_H
#define PWC_SHM_RING_DOORBELL_H

#include <stdint.h>
#include "session_abi.h"

enum doorbell_mode {
    DOORBELL_AWAKE = 0,
    DOORBELL_FUTEX = 1, /* sleeps in futex on the word itself */
    DOORBELL_FD = 2,    /* sleeps on a descriptor: the waker writes to it */
};

/* Sleeper: announce, with the full fence (C). Then look again, and only then sleep. */
void doorbell_arm(struct doorbell_word *word, uint32_t mode);
/* Sleeper: take the announcement back. */
void doorbell_disarm(struct doorbell_word *word);
/*
 * Waker, after publishing: the full fence (D), then the mode that the sleeper armed (it is now
 * disarmed), or 0 when nobody sleeps. Values that are no mode count as 0.
 */
uint32_t doorbell_ring(struct doorbell_word *word);

/* Futex on the word while it is `DOORBELL_FUTEX`: 0 woken or word changed, -ETIMEDOUT, -EINTR.
 * timeout_ns < 0: no limit. Shared between processes. */
int doorbell_sleep(struct doorbell_word *word, int64_t timeout_ns);
/* Wakes a sleeper in futex on the word. Never blocks. */
void doorbell_wake(struct doorbell_word *word);

#endif
