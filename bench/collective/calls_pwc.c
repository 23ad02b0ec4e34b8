/* Collectives of a team of all ranks, each with a request (calls.h). */
#include "bench/collective/calls.h"

#include <errno.h>
#include <pwc/collective.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench/rank.h"

struct calls {
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_team *team;
    pwc_request *request;
    pwc_region *region; /* the input, then the output */
    double *in, *out;
};

struct calls *calls_start(int *argc, char ***argv)
{
    struct calls *c = calloc(1, sizeof(*c));

    (void)argc, (void)argv;
    CHECK(pwc_init(NULL, &c->client));
    CHECK(pwc_ctx_create(c->client, NULL, &c->ctx));
    CHECK(pwc_team_world(c->ctx, NULL, &c->team));
    CHECK(pwc_request_create(c->ctx, &c->request));
    return c;
}

uint32_t calls_rank(const struct calls *c)
{
    return pwc_team_rank(c->team);
}

uint32_t calls_size(const struct calls *c)
{
    return pwc_team_size(c->team);
}

void calls_memory(struct calls *c, size_t bytes)
{
    CHECK(pwc_alloc(c->client, 2 * (bytes + 8), PWC_REMOTE_RW, &c->region));
    c->in = pwc_region_addr(c->region);
    c->out = (double *)((char *)c->in + bytes + 8);
    memset(c->in, 0, 2 * (bytes + 8));
}

static int begin(struct calls *c, enum kind kind, size_t bytes, const double *in, double *out)
{
    pwc_cid lid = pwc_cid_request(c->request);

    switch (kind) {
    case BARRIER:
        return pwc_team_barrier(c->team, lid, 0);
    case BCAST:
        return pwc_team_bcast(c->team, out, bytes, 0, lid, 0);
    default:
        return pwc_team_allreduce(c->team, in, out, bytes / 8, PWC_F64, PWC_ADD, lid, 0);
    }
}

/* Begins the call; if there is no room, makes room first. */
static void begin_surely(struct calls *c, enum kind kind, size_t bytes, const double *in,
                         double *out)
{
    struct pwc_event event;
    int rc;

    while ((rc = begin(c, kind, bytes, in, out)) == -EAGAIN)
        CHECK(pwc_probe(c->ctx, PWC_ANY, PWC_LOCAL, &event));
    CHECK(rc);
}

void calls_begin(struct calls *c, enum kind kind, size_t bytes)
{
    begin_surely(c, kind, bytes, c->in, c->out);
}

void calls_wait(struct calls *c)
{
    struct pwc_status status;

    CHECK(pwc_request_wait(c->request, &status, -1));
    checked("the collective", status.status);
}

void calls_do(struct calls *c, enum kind kind, size_t bytes)
{
    calls_begin(c, kind, bytes);
    calls_wait(c);
}

double calls_sum(struct calls *c, double value)
{
    double sum = 0;

    begin_surely(c, ALLREDUCE, sizeof(value), &value, &sum);
    calls_wait(c);
    return sum;
}

void calls_end(struct calls *c)
{
    CHECK(pwc_request_free(c->request));
    CHECK(pwc_team_free(c->team));
    CHECK(pwc_finalize(c->client));
    free(c);
}
