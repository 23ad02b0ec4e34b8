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
    const char *bind; /* an IPv4 address, where the provider has such */
    size_t size;      /* of each write */
    uint32_t window;  /* writes in flight, at least 1 */
    bool yield;       /* whenever the queue is empty */
    bool inject;
};

/* Opens, and trades addresses over a connected socket. Says what failed; returns NULL then. */
struct end *end_open(const struct end_options *options, int socket);
void end_close(struct end *end);

/* All below return 0 or a negative libfabric error, having said which. */

int end_progress(struct end *end);

/* Waits while the window is full, then writes with data. */
int end_send(struct end *end);

/* Waits until all writes have completed, except injected ones, which report no completion. */
int end_drain(struct end *end);

/* Returns whether this many writes have arrived since the opening. */
int end_await(struct end *end, uint64_t arrivals);

#endif
