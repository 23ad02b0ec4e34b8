/*
 * The helpers that the host carries out: puts, gets, atomics, messages, replies, events, counters,
 * and questions. This module checks their arguments, and turns addresses into bytes; then it calls
 * the host (struct run_host, run.h).
 *
 * Only five registers hold the arguments, so some registers have two numbers:
 *
 *     put, put_host, get, atomic     1: target in the low half, flags in the high one
 *     atomic                         3: operation in the low byte, type in the next
 *     message                        1: target in the low half, index in the high one
 *
 *     flags   bits 0 to 3: 0, or 1 + the counter to increment when the operation has ended
 *             bit 4: no event at the target
 *
 * Thread: the thread that runs the handler.
 */
#ifndef PWC_HANDLERS_SENDS_H
#define PWC_HANDLERS_SENDS_H

#include "daemon/handlers/run.h"

enum {
    SEND_BYTES_MAX = 4096, /* most bytes of a payload, which the host copies */
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
