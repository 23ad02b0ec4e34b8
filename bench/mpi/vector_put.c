/*
 * MPI_Put of blocks of a matrix with a vector type on both sides. A block has 64 KiB: rows of 64
 * bytes, out of a matrix with rows of 1 KiB into another such matrix. A flush ends each window of
 * --window blocks. The target waits in a barrier, where it makes progress, and is not notified.
 *
 *     vector_put block [options]
 *
 * Reports the median time of a block over all windows. The target checks every byte at the end.
 * Each rank is one process with one thread.
 */
#include "bench/mpi/ranks.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define ROW   64
#define ROWS  1024
#define PITCH 1024
#define BYTES (ROWS * PITCH)

static void origin(struct ranks *ranks, MPI_Win window, MPI_Datatype rows)
{
    const struct ranks_options *o = &ranks->options;
    int windows = o->iterations / o->window;
    unsigned char *source = ranks_memory(BYTES);
    double *times = ranks_memory(sizeof(*times) * (size_t)windows);

    for (int i = 0; i < BYTES; i++)
        source[i] = (unsigned char)(i * 7 + i / PITCH);
    for (int i = 0; i < windows; i++) {
        double start = ranks_now();

        for (int n = 0; n < o->window; n++)
            MPI_Put(source, 1, rows, ranks->other, 0, 1, rows, window);
        MPI_Win_flush(ranks->other, window);
        times[i] = (ranks_now() - start) / o->window;
    }
    ranks_report(ranks, "p50_us", ranks_median(times, windows));
    free(times);
    free(source);
}

static void check(const unsigned char *memory)
{
    for (int i = 0; i < BYTES; i++)
        if (memory[i] != (i % PITCH < ROW ? (unsigned char)(i * 7 + i / PITCH) : 0)) {
            (void)fprintf(stderr, "vector_put: byte %d is wrong\n", i);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
}

int main(int argc, char **argv)
{
    struct ranks ranks;
    MPI_Datatype rows;
    MPI_Win window;
    unsigned char *memory;

    ranks_start(&ranks, argc, argv, "block");
    MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    for (int i = 0; i < BYTES; i++)
        memory[i] = 0;
    MPI_Type_vector(ROWS, ROW, PITCH, MPI_BYTE, &rows);
    MPI_Type_commit(&rows);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (ranks.me == 0)
        origin(&ranks, window, rows);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window);
    if (ranks.me == 1)
        check(memory);
    MPI_Win_unlock_all(window);
    MPI_Type_free(&rows);
    MPI_Win_free(&window);
    ranks_end();
    return 0;
}
