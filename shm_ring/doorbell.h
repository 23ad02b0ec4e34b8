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
 * sees the arm. One sleeper, any number of wakers. The daemon never sleeps on anything that a
 * client can block, and never reads a bell's descriptor.
 *
 * A waker rings after every record, but a sleeper sleeps seldom. So where the kernel can fence for
 * other processes (membarrier), the sleeper fences for both sides, and the wakers only keep the
 * program's order:
 *
 *     doorbell_announce: store armed = mode      (C)      write record, publish
 *     doorbell_fence_others: fence, here and     (C)      keep the compiler's order    (D)
 *       on each thread of the registered                  load armed, as above
 *     look again, as above
 *
 * An arm that no waker has taken stays valid: a sleeper that sleeps again needs neither a store nor
 * a fence, because only a waker takes the arm away, and that waker wakes the sleeper. An arm that
 * was made without a fence, while the waker fenced for itself (below), stays valid, too: the waker
 * sees the arm by its own fences.
 *
 * During doorbell_fence_others each waker's thread passes a full fence somewhere between its
 * instructions. If the fence is before the waker's load, the load sees the arm; if it is after the
 * load, the sleeper's second look sees the record.
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

/* Sleeper: arm, with the full fence (C). Then look again, and only then sleep. */
void doorbell_arm(struct doorbell_word *word, uint32_t mode);
/* Sleeper: arm without a fence. Call doorbell_fence_others before the second look, unless all
 * wakers fence for themselves. */
void doorbell_announce(struct doorbell_word *word, uint32_t mode);
/* Sleeper, after any number of announcements: fences for all registered processes, by one system
 * call. 0, or -errno where the kernel cannot: then each side has to fence for itself. */
int doorbell_fence_others(void);
/* Waker's process, once: allows sleepers to fence for this process. 0 or -errno. */
int doorbell_register(void);
/*
 * A waker whose records wake the sleeper fences for itself for a while, and says so in its word
 * `fenced`. So the sleeper need not fence for it. A waker that sleeps writes no records, so its
 * word may be 1, too.
 *
 *     waker                                sleeper
 *     begin: store fenced = 1       (S)    announce: store armed = mode   (C)
 *     write record, publish                full fence                     (S)
 *     full fence, load armed        (D)    load fenced; if 0: doorbell_fence_others
 *     end: store fenced = 0         (S)    look again, as above
 *     full fence                    (S)
 *     write record, publish, load armed
 *
 * A sleeper that loads 1 sees all records from before that begin (release and acquire). For the
 * records up to the end, the waker's fence D pairs with the sleeper's fence, as at the top. If the
 * waker has reached the end and the sleeper still loads 1, then the two fences S pair: the waker's
 * loads see the arm.
 */
void doorbell_begin_fenced(_Atomic uint32_t *fenced);
void doorbell_end_fenced(_Atomic uint32_t *fenced);
/* Sleeper, after any number of announcements, before its first look at a word `fenced`: the full
 * fence. */
void doorbell_fence(void);
bool doorbell_is_fenced(const _Atomic uint32_t *fenced);
/* Sleeper: whether its arm is still there: no waker has rung since. */
bool doorbell_stands(const struct doorbell_word *word, uint32_t mode);
/* Sleeper: take the arm back. */
void doorbell_disarm(struct doorbell_word *word);
/*
 * Waker, after publishing: the full fence (D), then returns the mode that the sleeper armed (the
 * word is now disarmed), or 0 when nobody sleeps. A value that is no mode counts as 0.
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
