/*
 * A vector is spread over the ranks. In each round, each rank sums its part and puts the result
 * into its own place in rank 0's memory. The event of the put says that the number is there; then
 * rank 0 answers each rank with a put without bytes, which says that the number was used.
 *
 *     vector_sum [ROUNDS [SLOW_RANK]]    the slow rank computes a hundred times as long
 *
 * docs/first-hour.md explains this program, and finds the slow rank from outside.
 */
#include <pwc/pwc.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PART       100000u /* numbers of a rank */
#define RANKS_MAX  64u
#define TIMEOUT_MS 60000

static uint64_t sum_of_part(uint32_t rank, unsigned times)
{
    volatile uint64_t sum = 0;

    while (times-- > 0) {
        sum = 0;
        for (uint64_t i = 0; i < PART; i++)
            sum += rank * (uint64_t)PART + i;
    }
    return sum;
}

struct gathering {
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_remote *others[RANKS_MAX]; /* by rank; each is bound when it is first used */
    uint64_t *places; /* rank 0: a number for each rank; elsewhere: the first is the put's source */
    uint32_t rank, size;
};

static int await(const struct gathering *g, struct pwc_event *event)
{
    int rc = pwc_wait(g->ctx, PWC_ANY, PWC_REMOTE, event, TIMEOUT_MS);

    if (rc <= 0)
        return rc < 0 ? rc : -ETIMEDOUT;
    return event->status;
}

/* Rank 0 adds a number from each other rank to its own; then it lets all continue. */
static int gather(const struct gathering *g, unsigned round, uint64_t own, uint64_t *sum)
{
    struct pwc_event event;
    int rc = 0;

    *sum = own;
    for (uint32_t i = 1; rc == 0 && i < g->size; i++) {
        rc = await(g, &event);
        if (rc == 0)
            *sum += g->places[pwc_peer_rank(event.peer)];
    }
    for (uint32_t i = 1; rc == 0 && i < g->size; i++)
        rc = pwc_put(g->others[i], 0, NULL, 0, pwc_cid_u64(0), pwc_cid_u64(round), PWC_NO_LCE);
    return rc;
}

/* Each other rank puts its number, and waits until rank 0 has the sum. */
static int contribute(const struct gathering *g, unsigned round, uint64_t part)
{
    struct pwc_event event;
    int rc;

    *g->places = part;
    rc = pwc_put(g->others[0], g->rank * sizeof(part), g->places, sizeof(part), pwc_cid_u64(0),
                 pwc_cid_u64(round), PWC_NO_LCE);
    return rc == 0 ? await(g, &event) : rc;
}

static int open_gathering(struct gathering *g)
{
    pwc_region *region;
    int rc;

    g->rank = pwc_rank(g->client);
    g->size = pwc_size(g->client);
    rc = g->size <= RANKS_MAX ? pwc_ctx_create(g->client, NULL, &g->ctx) : -ERANGE;
    if (rc == 0)
        rc = pwc_alloc(g->client, RANKS_MAX * sizeof(uint64_t), PWC_REMOTE_WRITE, &region);
    if (rc == 0)
        rc = pwc_bind_all(g->ctx, region, g->others);
    if (rc == 0)
        g->places = pwc_region_addr(region);
    return rc;
}

static int run(struct gathering *g, unsigned rounds, uint32_t slow)
{
    uint64_t sum = 0, numbers = (uint64_t)g->size * PART;
    int rc = 0;

    for (unsigned round = 0; rc == 0 && round < rounds; round++) {
        uint64_t part = sum_of_part(g->rank, g->rank == slow ? 100 : 1);

        rc = g->rank == 0 ? gather(g, round, part, &sum) : contribute(g, round, part);
    }
    if (rc < 0 || g->rank != 0)
        return rc;
    printf("the sum of %llu numbers is %llu\n", (unsigned long long)numbers,
           (unsigned long long)sum);
    return sum == numbers * (numbers - 1) / 2 ? 0 : -EBADMSG;
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
    uint32_t slow = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : UINT32_MAX;
    char why[256] = "";
    /* pwc_init takes socket, job, rank and size from the environment, and writes into `why` which
     * of them is missing. */
    struct pwc_attr attr = {.error = why, .error_size = sizeof(why)};
    struct gathering g = {0};
    int rc = pwc_init(&attr, &g.client);

    if (rc == 0)
        rc = open_gathering(&g);
    if (rc == 0)
        rc = run(&g, rounds, slow);
    if (rc < 0)
        fprintf(stderr, "vector_sum: %s\n", *why ? why : pwc_strerror(rc));
    if (g.client && pwc_finalize(g.client) != 0) /* pwc_finalize completes what was submitted */
        rc = -EIO;
    return rc < 0;
}
