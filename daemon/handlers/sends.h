/*
 * The helpers that the host carries out: puts, gets, atomics, messages, replies and events,
 * counters and the like. Here their arguments are checked, and addresses become bytes; struct
 * run_host (run.h) has what the host does then.
 *
 * Five registers hold the arguments, so some of them are two numbers:
 *
 *     put, put_host, get, atomic     1: target in the low half, flags in the high one
 *     atomic                         3: operation in the low byte, type in the next
 *     message                        1: target in the low half, index in the high one
 *
 *     flags   bits 0 to 3: 0, or 1 + the counter to add 1 to when the operation has ended
 *             bit 4: no event at the target
 *
 * Thread: the one that runs handlers.
 */
#ifndef PWC_HANDLERS_SENDS_H
#define PWC_HANDLERS_SENDS_H

#include "daemon/handlers/run.h"

enum {
    SEND_BYTES_MAX = 4096, /* of what is copied */
    SEND_COUNTER = 15,
    SEND_QUIET = 16,
    SEND_FLAGS = SEND_COUNTER | SEND_QUIET,
};

uint64_t send_put(struct run *r, const uint64_t *reg);
uint64_t send_put_host(struct run *r, const uint64_t *reg);
uint64_t send_get(struct run *r, const uint64_t *reg);
uint64_t send_atomic(struct run *r, const uint64_t *reg);
uint64_t send_message(struct run *r, const uint64_t *reg);
uint64_t send_reply(struct run *r, const uint64_t *reg);
uint64_t send_event(struct run *r, const uint64_t *reg);

uint64_t ask_target_of(struct run *r, const uint64_t *reg);
uint64_t ask_counter(struct run *r, const uint64_t *reg);
uint64_t ask_now(struct run *r, const uint64_t *reg);
uint64_t do_counter_add(struct run *r, const uint64_t *reg);
uint64_t do_counter_set(struct run *r, const uint64_t *reg);
uint64_t do_trace(struct run *r, const uint64_t *reg);

#endif
