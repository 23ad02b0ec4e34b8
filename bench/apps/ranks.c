/* Start and end of the applications over MPI; see ranks.h. */
#include "bench/apps/ranks.h"
#include "bench/mpi/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP_MAX 64

const struct way *apps_start(struct app *app, const struct way *ways, int argc, char **argv)
{
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    app->rank = (uint32_t)rank;
    app->ranks = (uint32_t)size;
    app->way = argc > 1 ? argv[1] : "";
    apps_demand(size > 1, "give it two ranks or more");
    apps_demand(argc > 1 && app_parse(app, argc - 1, argv + 1), "usage: PROGRAM WAY [OPTION]...");
    while (ways->name && strcmp(ways->name, app->way) != 0)
        ways++;
    apps_demand(ways->name != NULL, "unknown way");
    return ways;
}

void apps_demand(bool right, const char *what)
{
    if (right)
        return;
    fprintf(stderr, "%s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

void *apps_window(size_t bytes, MPI_Win *window)
{
    void *memory;

    /* MPICH 4.0, with a window of 84 bytes in each of two ranks, puts 4 bytes before the right
     * place; so the length is rounded up. */
    bytes = (bytes + 63) & ~(size_t)63;
    MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, window);
    memset(memory, 0, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    return memory;
}

MPI_Group apps_group(const uint32_t *ranks, uint32_t count)
{
    int numbers[GROUP_MAX];
    MPI_Group world, group;

    apps_demand(count <= GROUP_MAX, "too many ranks for a group");
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = (int)ranks[i];
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, (int)count, numbers, &group);
    MPI_Group_free(&world);
    return group;
}

int apps_end(const struct app *app, bool right, const char *unit, double work)
{
    int mine = right, all;

    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (all && app->rank == 0)
        app_report(app, unit, work);
    ranks_end();
    return all ? 0 : 1;
}
