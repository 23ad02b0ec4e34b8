/*
 * A put whose origin computes: when its data arrives, and how much of the put's time is hidden
 * behind the computing. Both ranks are on one machine, whose clock they share.
 *
 *     pwcrun --nodes 2 -n 2 --pin -- departure SIZE COMPUTE_US ITERATIONS
 *
 * In each turn rank 0 submits one put, computes for COMPUTE_US without a call, and waits for the
 * local event. Rank 1 waits for the remote event, and answers. Rank 0 prints one JSON line with
 * medians:
 *
 *     arrival_us   from the call to the remote event, with computing
 *     alone_us     from the call to the local event, without computing
 *     more_us      from the call to the local event, with computing in between, less that time
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench/rank.h"

struct bench {
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_region *region; /* the other rank puts into the lower half */
    pwc_remote *remote;
    size_t size;
    double *samples;
};

static void compute(double us)
{
    double end = now_us() + us;

    while (now_us() < end)
        continue;
}

static double *own_half(const struct bench *b)
{
    return (double *)((char *)pwc_region_addr(b->region) + b->size);
}

static struct pwc_event await(struct bench *b, unsigned kinds)
{
    struct pwc_event event;

    CHECK(pwc_wait(b->ctx, PWC_ANY, kinds, &event, -1));
    checked("the operation", event.status);
    return event;
}

/* One turn of rank 0. Returns the time to the local event, less that of computing. */
static double turn(struct bench *b, double compute_us)
{
    pwc_cid id = pwc_cid_u64(1);
    double start = now_us(), took;

    own_half(b)[0] = start;
    CHECK(pwc_put(b->remote, 0, own_half(b), b->size, id, id, 0));
    if (compute_us > 0)
        compute(compute_us);
    (void)await(b, PWC_LOCAL);
    took = now_us() - start - compute_us;
    (void)await(b, PWC_REMOTE);
    return took;
}

/* One turn of rank 1. Returns the time from the call of the put to its arrival. */
static double answer(struct bench *b)
{
    double took;

    (void)await(b, PWC_REMOTE);
    took = now_us() - *(double *)pwc_region_addr(b->region);
    CHECK(pwc_put(b->remote, 0, NULL, 0, PWC_CID_NONE, pwc_cid_u64(2), PWC_NO_LCE));
    return took;
}

static double turns(struct bench *b, double compute_us, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        b->samples[i] = pwc_rank(b->client) == 0 ? turn(b, compute_us) : answer(b);
    return median(b->samples, count);
}

static void open_bench(struct bench *b)
{
    struct pwc_key mine, keys[2];
    uint32_t other;

    CHECK(pwc_init(NULL, &b->client));
    if (pwc_size(b->client) != 2) {
        (void)fprintf(stderr, "departure: %u ranks; start two (-n 2)\n", pwc_size(b->client));
        exit(2);
    }
    CHECK(pwc_ctx_create(b->client, NULL, &b->ctx));
    CHECK(pwc_alloc(b->client, 2 * b->size, PWC_REMOTE_RW, &b->region));
    memset(pwc_region_addr(b->region), 0, 2 * b->size);
    CHECK(pwc_region_key(b->region, &mine));
    CHECK(pwc_exchange(b->ctx, &mine, sizeof(mine), keys));
    other = 1 - pwc_rank(b->client);
    CHECK(pwc_bind(b->ctx, pwc_peer_of(other, 0), &keys[other], &b->remote));
}

int main(int argc, char **argv)
{
    unsigned count = argc == 4 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    struct bench b = {.size = count > 0 ? strtoull(argv[1], NULL, 10) : 0};
    double compute_us, alone, more, both[2]; /* rank 1's is the time of arrival */

    if (count == 0 || b.size < sizeof(double) || b.size % sizeof(double) != 0) {
        (void)fprintf(stderr, "usage: departure SIZE COMPUTE_US ITERATIONS\n");
        return 2;
    }
    b.samples = calloc(count, sizeof(b.samples[0]));
    if (!b.samples)
        return 1;
    compute_us = strtod(argv[2], NULL);
    open_bench(&b);
    alone = turns(&b, 0, count);
    more = turns(&b, compute_us, count);
    CHECK(pwc_exchange(b.ctx, &more, sizeof(more), both));
    if (pwc_rank(b.client) == 0)
        (void)printf("{\"size\":%zu,\"compute_us\":%.0f,\"arrival_us\":%.1f,"
                     "\"alone_us\":%.1f,\"more_us\":%.1f}\n",
                     b.size, compute_us, both[1], alone, more);
    CHECK(pwc_finalize(b.client));
    free(b.samples);
    return 0;
}
