/*
 * Messages between two ranks of MPI, each matched by a receive:
 *
 *     two_sided latency|rate|bandwidth [options]
 *
 * `latency` is half a round trip. `rate` and `bandwidth` send windows of --window messages, and the
 * clock stops when the receiver has answered that it has the last one. Each rank is one process
 * with one thread.
 */
#include "bench/mpi/ranks.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define TAG 7

static void latency(const struct ranks *r, uint8_t *buffer)
{
    int measured = r->options.iterations, warm = measured / 10, size = r->options.size;
    double *samples = ranks_memory(sizeof(double) * (size_t)measured);

    for (int i = 0; i < warm + measured; i++) {
        double start = ranks_now();

        if (r->me == 0)
            MPI_Send(buffer, size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        MPI_Recv(buffer, size, MPI_BYTE, r->other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (r->me == 1)
            MPI_Send(buffer, size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        if (i >= warm)
            samples[i - warm] = (ranks_now() - start) / 2;
    }
    ranks_report(r, "p50_us", ranks_median(samples, measured));
    free(samples);
}

static void windows(const struct ranks *r, uint8_t *buffer, MPI_Request *requests, int count)
{
    for (int i = 0; i < count; i++) {
        for (int n = 0; n < r->options.window; n++)
            if (r->me == 0)
                MPI_Isend(buffer, r->options.size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &requests[n]);
            else
                MPI_Irecv(buffer, r->options.size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[n]);
        MPI_Waitall(r->options.window, requests, MPI_STATUSES_IGNORE);
    }
    if (r->me == 0)
        MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
}

static void throughput(const struct ranks *r, uint8_t *buffer)
{
    int count = (r->options.iterations + r->options.window - 1) / r->options.window;
    MPI_Request *requests = ranks_memory(sizeof(*requests) * (size_t)r->options.window);
    double start, whole, messages = (double)count * r->options.window;

    windows(r, buffer, requests, count / 10 + 1);
    MPI_Barrier(MPI_COMM_WORLD);
    start = ranks_now();
    windows(r, buffer, requests, count);
    whole = ranks_now() - start;
    if (strcmp(r->options.what, "rate") == 0)
        ranks_report(r, "rate_mps", messages / whole);
    else
        ranks_report(r, "bw_mbps", messages * r->options.size / whole);
    free(requests);
}

int main(int argc, char **argv)
{
    struct ranks ranks;
    uint8_t *buffer;
    int rc = 0;

    ranks_start(&ranks, argc, argv, "latency|rate|bandwidth");
    buffer = ranks_memory((size_t)ranks.options.size);
    if (strcmp(ranks.options.what, "latency") == 0)
        latency(&ranks, buffer);
    else if (strcmp(ranks.options.what, "rate") == 0 ||
             strcmp(ranks.options.what, "bandwidth") == 0)
        throughput(&ranks, buffer);
    else
        rc = 2;
    free(buffer);
    ranks_end();
    return rc;
}
