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

/* Starts the library; ends the program where that fails, as all of these do. */
struct calls *calls_start(int *argc, char ***argv);
uint32_t calls_rank(const struct calls *calls);
uint32_t calls_size(const struct calls *calls);

/* Begins a collective: a bcast of rank 0, an allreduce that adds doubles. `bytes` is a multiple of
 * 8, up to those that calls_memory was asked for. */
void calls_memory(struct calls *calls, size_t bytes);
void calls_begin(struct calls *calls, enum kind kind, size_t bytes);
void calls_wait(struct calls *calls);

/* The sum of all ranks' values, at all ranks. */
double calls_sum(struct calls *calls, double value);

void calls_end(struct calls *calls);

#endif
