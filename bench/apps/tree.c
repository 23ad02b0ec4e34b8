/*
 * The reduction over a 16-ary tree (examples/apps/sums.h) over MPI, in four ways:
 *
 *     tree send|fence|pscw|reduce [--cpu A,B] [--size NUMBERS] [--rounds N]
 *
 *   send    each child sends its vector; a message from rank 0 down the tree releases all
 *   fence   each child puts its vector; a fence of all ranks ends each stage; one more releases all
 *   pscw    each child puts its vector between start and complete; parents post, and wait; the
 *           release is as in `send`
 *   reduce  MPI_Reduce; MPI_Bcast of a byte releases all
 */
#include "bench/apps/ranks.h"
#include "examples/apps/sums.h"

#define TAG_UP   1
#define TAG_DOWN 2

struct tree {
    struct app app;
    struct sums sums;
    MPI_Win window; /* of the inbox */
    bool right;
};

static bool root(const struct tree *t)
{
    return t->sums.rank == 0;
}

/* Ends a round; rank 0 checks the sum. */
static void end_round(struct tree *t, uint32_t round)
{
    if (root(t))
        t->right = t->right && sums_check(&t->sums, round);
    app_round(&t->app, round);
}

/* Sends a message without bytes down the tree. */
static void release(const struct tree *t)
{
    if (!root(t))
        MPI_Recv(NULL, 0, MPI_BYTE, (int)t->sums.parent, TAG_DOWN, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (uint32_t i = 0; i < t->sums.children; i++)
        MPI_Send(NULL, 0, MPI_BYTE, (int)(t->sums.first + i), TAG_DOWN, MPI_COMM_WORLD);
}

static void run_send(void *state)
{
    struct tree *t = state;
    const struct sums *sums = &t->sums;
    MPI_Request requests[SUMS_ARITY];

    for (uint32_t round = 0; round < t->app.rounds; round++) {
        sums_contribute(&t->sums, round);
        for (uint32_t i = 0; i < sums->children; i++)
            MPI_Irecv(sums->inbox + (size_t)i * sums->count, (int)sums->count, MPI_DOUBLE,
                      (int)(sums->first + i), TAG_UP, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall((int)sums->children, requests, MPI_STATUSES_IGNORE);
        sums_add(&t->sums);
        if (!root(t))
            MPI_Send(sums->own, (int)sums->count, MPI_DOUBLE, (int)sums->parent, TAG_UP,
                     MPI_COMM_WORLD);
        release(t);
        end_round(t, round);
    }
}

static void put_up(const struct tree *t)
{
    const struct sums *sums = &t->sums;
    size_t bytes = sums->count * sizeof(double);

    MPI_Put(sums->own, (int)sums->count, MPI_DOUBLE, (int)sums->parent,
            (MPI_Aint)(sums->place * bytes), (int)sums->count, MPI_DOUBLE, t->window);
}

/* Returns how many stages are below a rank, which has its children's sums after as many fences. */
static uint32_t stages(uint32_t rank, uint32_t ranks)
{
    uint32_t first = rank * SUMS_ARITY + 1;

    return first < ranks ? 1 + stages(first, ranks) : 0;
}

static void run_fence(void *state)
{
    struct tree *t = state;
    uint32_t all = stages(0, t->sums.ranks), mine = stages(t->sums.rank, t->sums.ranks);

    MPI_Win_fence(0, t->window);
    for (uint32_t round = 0; round < t->app.rounds; round++) {
        sums_contribute(&t->sums, round);
        for (uint32_t stage = 0; stage < all; stage++) {
            if (stage == mine) {
                sums_add(&t->sums);
                put_up(t);
            }
            MPI_Win_fence(0, t->window);
        }
        if (root(t))
            sums_add(&t->sums);
        MPI_Win_fence(0, t->window); /* no rank puts into an inbox that is still read */
        end_round(t, round);
    }
}

static void run_pscw(void *state)
{
    struct tree *t = state;
    uint32_t children[SUMS_ARITY];
    MPI_Group below, above = apps_group(&t->sums.parent, 1);

    for (uint32_t i = 0; i < t->sums.children; i++)
        children[i] = t->sums.first + i;
    below = apps_group(children, t->sums.children);
    for (uint32_t round = 0; round < t->app.rounds; round++) {
        sums_contribute(&t->sums, round);
        if (t->sums.children > 0) {
            MPI_Win_post(below, 0, t->window);
            MPI_Win_wait(t->window);
        }
        sums_add(&t->sums);
        if (!root(t)) {
            MPI_Win_start(above, 0, t->window);
            put_up(t);
            MPI_Win_complete(t->window);
        }
        release(t);
        end_round(t, round);
    }
    MPI_Group_free(&below);
    MPI_Group_free(&above);
}

static void run_reduce(void *state)
{
    struct tree *t = state;
    char released = 0;

    for (uint32_t round = 0; round < t->app.rounds; round++) {
        sums_contribute(&t->sums, round);
        MPI_Reduce(root(t) ? MPI_IN_PLACE : t->sums.own, t->sums.own, (int)t->sums.count,
                   MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        MPI_Bcast(&released, 1, MPI_CHAR, 0, MPI_COMM_WORLD);
        end_round(t, round);
    }
}

int main(int argc, char **argv)
{
    static const struct way ways[] = {{"send", run_send},
                                      {"fence", run_fence},
                                      {"pscw", run_pscw},
                                      {"reduce", run_reduce},
                                      {NULL, NULL}};
    struct tree t = {.app = {.name = "tree", .size = 1, .rounds = 1000}, .right = true};
    const struct way *way = apps_start(&t.app, ways, argc, argv);
    double *memory = apps_window(sums_bytes(t.app.size), &t.window);

    sums_open(&t.sums, t.app.rank, t.app.ranks, t.app.size, memory);
    way->run(&t);
    MPI_Win_free(&t.window);
    return apps_end(&t.app, t.right, "rounds_per_s", 1);
}
