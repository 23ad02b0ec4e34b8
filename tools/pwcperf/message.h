/*
 * Sends what --kind says, puts or active messages, and handles the active messages that arrive.
 *
 * Every active message has one argument, its number; messages must be handled in the order of their
 * numbers. With --check the handler compares the payload. If a reply is asked for, the handler
 * replies with a message of the same kind, size and number.
 */
#ifndef PWCPERF_MESSAGE_H
#define PWCPERF_MESSAGE_H

#include "tools/pwcperf/pair.h"

/* Arrived messages of one size. Written by the handler, which runs in probe, wait and flush. */
struct messages {
    struct pair *pair;
    uint64_t size;
    uint64_t slots; /* of each half of the region, a power of two: message i has slot i % slots */
    uint64_t handled;
    int rc; /* the first failure, which was printed */
};

/* Uses up to `slots` slots. Registers the handler, and with --check fills the bytes of message 0.
 * With --check a handler that has replied fills the bytes of its next reply.
 * Collective: no rank sends before all have registered. */
int messages_open(struct messages *messages, struct pair *pair, uint64_t size, uint64_t slots);

/* Fills our source of message `number` with its bytes. */
void messages_fill(const struct messages *messages, uint64_t number);

/* Submits message `number`, with the flags of its kind: 0, -EAGAIN, or an error, without a message
 * on stderr. A put's remote event has the number. */
int messages_send(const struct messages *messages, uint64_t number, uint64_t lid, unsigned flags);

/* Waits until this many have been handled. */
int messages_await(struct messages *messages, uint64_t handled);

#endif
