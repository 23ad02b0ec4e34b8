/*
 * Collectives of one library, as bench/collective/measure.c makes them: calls_pwc.c is ours,
 * calls_mpi.c is plain MPI-3.1. One thread a process; one collective under way at a time.
 */
#ifndef BENCH_COLLECTIVE_CALLS_H
#define BENCH_COLLECTIVE_CALLS_H

#include <stddef.h>
#include <stdint.h>

struct calls;

enum kind { BARRIER, BCAST, ALLREDUCE };

/* Starts the library. This call and all others below end the program if they fail. */
struct calls *calls_start(int *argc, char ***argv);
uint32_t calls_rank(const struct calls *calls);
uint32_t calls_size(const struct calls *calls);

/* calls_begin begins a collective: a barrier, a bcast of rank 0, or an allreduce that adds doubles.
 * `bytes` is a multiple of 8, and at most the bytes that calls_memory was called with. */
void calls_memory(struct calls *calls, size_t bytes);
void calls_begin(struct calls *calls, enum kind kind, size_t bytes);
void calls_wait(struct calls *calls);
/* Makes the same collective as a program does that does not compute meanwhile: by the library's
 * blocking call; begins and waits, where the library has none. */
void calls_do(struct calls *calls, enum kind kind, size_t bytes);

/* Returns the sum of all ranks' values, at all ranks. */
double calls_sum(struct calls *calls, double value);

void calls_end(struct calls *calls);

#endif
