/*
 * Arm and wake: how one side of a ring sleeps without a lost wake-up.
 *
 *     sleeper                              waker
 *     poll, nothing there                  write record, publish
 *     arm: store armed = mode     (C)      full fence              (D)
 *     full fence                  (C)      load armed; if not 0, exchange it with 0;
 *     look again; if there: disarm           the waker that got a mode wakes
 *     else sleep
 *
 * The two full fences pair: either the sleeper's second look sees the record, or the waker's load
 * sees the arm. One sleeper, any number of wakers. The daemon never sleeps on, nor reads, anything
 * that a client can block.
 *
 * A waker rings after every record, a sleeper sleeps seldom. So where the kernel can fence for
 * other processes (membarrier), the sleeper does it for both sides, and the wakers keep to program
 * order:
 *
 *     doorbell_announce: store armed = mode      (C)      write record, publish
 *     doorbell_fence_others: fence, here and     (C)      keep the compiler's order    (D)
 *       on each thread of the registered                  load armed, as above
 *     look again, as above
 *
 * An arm that no waker has taken stays valid: a sleeper that sleeps again needs neither store nor
 * fence for it, since only a waker takes it away, and that waker has woken the sleeper.
 *
 * Each waker's thread passes through a full fence somewhere between its instructions while the call
 * lasts: if before its load, the load sees the arm; if after it, the record stands.
 */
#ifndef PWC_SHM_RING_DOORBELL_H
#define PWC_SHM_RING_DOORBELL_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/session_abi.h"

enum doorbell_mode {
    DOORBELL_AWAKE = 0,
    DOORBELL_FUTEX = 1, /* sleeps in futex on the word itself */
    DOORBELL_FD = 2,    /* sleeps on a descriptor: the waker writes to it */
    DOORBELL_QUIET = 3, /* pairs only: the reader is awake, but looks at its board (board_abi.h) */
};

/* Sleeper: announce, with the full fence (C). Then look again, and only then sleep. */
void doorbell_arm(struct doorbell_word *word, uint32_t mode);
/* Sleeper: announce without a fence. Before the second look: doorbell_fence_others. */
void doorbell_announce(struct doorbell_word *word, uint32_t mode);
/* Sleeper, after any number of announcements: fences for all processes that have registered. 0, or
 * -errno where the kernel cannot: then each side has to fence on its own. One system call. */
int doorbell_fence_others(void);
/* Waker's process, once: it may be fenced by others. 0 or -errno. */
int doorbell_register(void);
/* Sleeper: whether what it announced, and fenced, still stands: nobody has rung since. */
bool doorbell_stands(const struct doorbell_word *word, uint32_t mode);
/* Sleeper: take the announcement back. */
void doorbell_disarm(struct doorbell_word *word);
/*
 * Waker, after publishing: the full fence (D), then the mode that the sleeper armed (it is now
 * disarmed), or 0 when nobody sleeps. Values that are no mode count as 0.
 */
uint32_t doorbell_ring(struct doorbell_word *word);
/* doorbell_ring without the fence, for a registered process, where the sleeper fences for
 * others. */
uint32_t doorbell_ring_unfenced(struct doorbell_word *word);

/* Futex on the word while it is `DOORBELL_FUTEX`: 0 woken or word changed, -ETIMEDOUT, -EINTR.
 * timeout_ns < 0: no limit. Shared between processes. */
int doorbell_sleep(struct doorbell_word *word, int64_t timeout_ns);
/* Wakes a sleeper in futex on the word. Never blocks. */
void doorbell_wake(struct doorbell_word *word);

#endif
