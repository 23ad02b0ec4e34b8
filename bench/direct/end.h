/*
 * One end of a bare libfabric connection: endpoint, memory that the other writes into, and writes
 * with data towards it. Each end is a process with one thread, which alone makes its progress.
 */
#ifndef BENCH_DIRECT_END_H
#define BENCH_DIRECT_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct end;

struct end_options {
    const char *provider;
    const char *bind; /* an IPv4 address, if the provider uses such addresses */
    size_t size;      /* of each write */
    uint32_t window;  /* writes in flight, at least 1 */
    bool yield;       /* yield the processor whenever the queue is empty */
    bool inject;
};

/* Opens an end, and exchanges addresses over a connected socket. NULL after a message: it failed.
 */
struct end *end_open(const struct end_options *options, int socket);
void end_close(struct end *end);

/* All calls below return 0, or a negative libfabric error after a message. */

int end_progress(struct end *end);

/* Waits while the window is full, then writes with data. */
int end_send(struct end *end);

/* Waits until all writes have completed, except injected ones, which report no completion. */
int end_drain(struct end *end);

/* Waits until this many writes have arrived since end_open. */
int end_await(struct end *end, uint64_t arrivals);

#endif
