/*
 * Conjugate gradients: each rank has a strip of a grid. In each iteration neighbours get the
 * strip's edge rows by notified puts, and two numbers are summed over all ranks. The sum is begun
 * before the product with the matrix and waited for after it: it continues while the rank computes.
 *
 *     pwcrun --nodes 2 -n 4 -- ./conjugate [blocking] [--size N] [--rounds N] [--cpu A,B]
 *
 * With `blocking` the rank waits for the sum before the product, for comparison.
 *
 * A round solves the whole equation once. Two places for edge rows are used in turn: a rank that
 * has the sum of an iteration knows that all others have used the rows of the iteration before.
 */
#include "examples/apps/poisson.h"
#include "examples/apps/team.h"

#include <errno.h>
#include <pwc/collective.h>
#include <stdio.h>
#include <string.h>

enum { FROM_ABOVE = 0, FROM_BELOW = 1, SIDES }; /* tags, and places of the two edge rows */
enum { TURNS = 2 };

struct solver {
    struct app app;
    struct team team;
    struct poisson poisson;
    pwc_team *all;
    pwc_request *summed, *sent, *above, *below; /* above, below: NULL where there is no rank */
    double sums[POISSON_SUMS], total[POISSON_SUMS];
    uint32_t turn; /* says which places for edge rows are in use */
};

/* Where an edge row is in a region: for each of two turns the region has a row from above and a row
 * from below, and after these the rank's own strip. */
static size_t row_offset(const struct solver *s, int from, uint32_t turn)
{
    return (turn % TURNS * SIDES + (size_t)from) * s->app.size * sizeof(double);
}

static double *row_here(struct solver *s, int from)
{
    return (double *)((char *)s->team.memory + row_offset(s, from, s->turn));
}

static void send_edges(struct solver *s)
{
    const struct poisson *p = &s->poisson;
    const double *last = p->w + (size_t)(p->rows - 1) * p->columns;
    size_t bytes = p->columns * sizeof(double);

    if (s->above)
        team_put(&s->team, s->app.rank - 1, row_offset(s, FROM_BELOW, s->turn), p->w, bytes,
                 FROM_BELOW, s->sent);
    if (s->below)
        team_put(&s->team, s->app.rank + 1, row_offset(s, FROM_ABOVE, s->turn), last, bytes,
                 FROM_ABOVE, s->sent);
}

static void begin_sum(struct solver *s)
{
    struct pwc_event event;
    int rc;

    while ((rc = pwc_team_allreduce(s->all, s->sums, s->total, POISSON_SUMS, PWC_F64, PWC_ADD,
                                    pwc_cid_request(s->summed), 0)) == -EAGAIN)
        CHECK(pwc_probe(s->team.ctx, PWC_ANY, PWC_LOCAL, &event));
    CHECK(rc);
}

static void wait_for(pwc_request *request)
{
    struct pwc_status status;

    CHECK(pwc_request_wait(request, &status, -1));
    CHECK(status.status);
}

static void multiply(struct solver *s)
{
    if (s->above)
        team_wait(s->above);
    if (s->below)
        team_wait(s->below);
    poisson_apply(&s->poisson, s->above ? row_here(s, FROM_ABOVE) : NULL,
                  s->below ? row_here(s, FROM_BELOW) : NULL);
}

static void solve(struct solver *s, bool blocking)
{
    poisson_start(&s->poisson);
    do {
        s->turn++;
        send_edges(s);
        poisson_dots(&s->poisson, s->sums);
        begin_sum(s);
        if (blocking)
            wait_for(s->summed);
        multiply(s);
        if (!blocking)
            wait_for(s->summed);
        wait_for(s->sent); /* the next step changes the strip's edges */
    } while (poisson_step(&s->poisson, s->total));
}

static bool start(struct solver *s)
{
    uint32_t rank = s->app.rank, ranks = s->app.ranks;
    size_t edges = (size_t)TURNS * SIDES * s->app.size * sizeof(double);

    if (s->app.size < ranks) {
        fprintf(stderr, "conjugate: %u rows are too few for %u ranks\n", s->app.size, ranks);
        return false;
    }
    team_share(&s->team, edges + poisson_cells(s->app.size, rank, ranks) * sizeof(double));
    if (!poisson_open(&s->poisson, s->app.size, rank, ranks,
                      (double *)((char *)s->team.memory + edges)))
        return false;
    CHECK(pwc_team_world(s->team.ctx, NULL, &s->all));
    CHECK(pwc_request_create(s->team.ctx, &s->summed));
    CHECK(pwc_request_create(s->team.ctx, &s->sent));
    if (rank > 0)
        s->above = team_request(&s->team, rank - 1, FROM_ABOVE, 1);
    if (rank + 1 < ranks)
        s->below = team_request(&s->team, rank + 1, FROM_BELOW, 1);
    return true;
}

static int end(struct solver *s)
{
    pwc_request *const requests[] = {s->summed, s->sent, s->above, s->below};
    bool right = poisson_check(&s->poisson, s->app.size);
    uint32_t iterations = s->poisson.iterations;

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
        if (requests[i])
            CHECK(pwc_request_free(requests[i]));
    CHECK(pwc_team_free(s->all));
    poisson_close(&s->poisson);
    return team_end(&s->team, &s->app, right, "iterations_per_s", iterations);
}

int main(int argc, char **argv)
{
    struct solver s = {.app = {.name = "conjugate", .way = "overlapped", .size = 64, .rounds = 3}};
    bool blocking = argc > 1 && strcmp(argv[1], "blocking") == 0;

    if (blocking)
        s.app.way = argv[1];
    team_open(&s.team, &s.app, argc - blocking, argv + blocking);
    if (!start(&s))
        return 1;
    for (uint32_t round = 0; round < s.app.rounds; round++) {
        solve(&s, blocking);
        app_round(&s.app, round);
    }
    return end(&s);
}
