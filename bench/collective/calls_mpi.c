/* Collectives of MPI, non-blocking and blocking (calls.h). */
#include "bench/collective/calls.h"

#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FINALIZE_SECONDS 5

struct calls {
    int rank, size;
    double *in, *out;
    MPI_Request request;
};

struct calls *calls_start(int *argc, char ***argv)
{
    struct calls *c = calloc(1, sizeof(*c));

    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &c->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &c->size);
    return c;
}

uint32_t calls_rank(const struct calls *c)
{
    return (uint32_t)c->rank;
}

uint32_t calls_size(const struct calls *c)
{
    return (uint32_t)c->size;
}

void calls_memory(struct calls *c, size_t bytes)
{
    c->in = malloc(bytes + 8);
    c->out = malloc(bytes + 8);
    if (!c->in || !c->out)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(c->in, 0, bytes + 8);
    memset(c->out, 0, bytes + 8);
}

void calls_begin(struct calls *c, enum kind kind, size_t bytes)
{
    switch (kind) {
    case BARRIER:
        MPI_Ibarrier(MPI_COMM_WORLD, &c->request);
        break;
    case BCAST:
        MPI_Ibcast(c->in, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &c->request);
        break;
    case ALLREDUCE:
        MPI_Iallreduce(c->in, c->out, (int)(bytes / 8), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                       &c->request);
        break;
    }
}

void calls_wait(struct calls *c)
{
    MPI_Wait(&c->request, MPI_STATUS_IGNORE);
}

void calls_do(struct calls *c, enum kind kind, size_t bytes)
{
    switch (kind) {
    case BARRIER:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    case BCAST:
        MPI_Bcast(c->in, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        break;
    case ALLREDUCE:
        MPI_Allreduce(c->in, c->out, (int)(bytes / 8), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        break;
    }
}

double calls_sum(struct calls *c, double value)
{
    double sum;

    (void)c;
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static void leave(int number)
{
    (void)number;
    _exit(0);
}

/* MPICH 4.0 over UCX's tcp sometimes hangs in MPI_Finalize. Everything is measured by then, so the
 * process leaves after FINALIZE_SECONDS. */
void calls_end(struct calls *c)
{
    (void)signal(SIGALRM, leave);
    (void)alarm(FINALIZE_SECONDS);
    MPI_Finalize();
    free(c->in);
    free(c->out);
    free(c);
}
