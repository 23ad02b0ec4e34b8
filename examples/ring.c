/*
 * A token goes round a ring of ranks: each rank adds its part to the token, and puts the token into
 * the memory of the next rank. The token is a row of counters, one for each rank. Each round adds 1
 * to every counter.
 *
 *     rank 0 --put--> rank 1 --put--> ... --put--> rank n-1 --put--> rank 0
 */
#include <pwc/pwc.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS     1000u
#define RANKS_MAX  512u
#define TIMEOUT_MS 30000

struct ring {
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_region *region;
    pwc_remote *next;
    uint32_t rank, size;
    uint64_t *token; /* in the region */
};

static int fail(const char *what, int rc)
{
    fprintf(stderr, "ring: %s: %s\n", what, pwc_strerror(rc));
    return rc;
}

static int ring_open(struct ring *ring)
{
    struct pwc_attr attr = {0};
    pwc_remote *ranks[RANKS_MAX];
    int rc = pwc_init(&attr, &ring->client);
    if (rc < 0)
        return fail("attaching", rc);
    ring->rank = pwc_rank(ring->client);
    ring->size = pwc_size(ring->client);
    if (ring->size > RANKS_MAX)
        return fail("too many ranks", -ERANGE);
    rc = pwc_ctx_create(ring->client, NULL, &ring->ctx);
    if (rc == 0)
        rc = pwc_alloc(ring->client, ring->size * sizeof(*ring->token), PWC_REMOTE_WRITE,
                       &ring->region);
    if (rc == 0)
        rc = pwc_bind_all(ring->ctx, ring->region, ranks);
    if (rc < 0)
        return fail("setting up", rc);
    ring->next = ranks[(ring->rank + 1) % ring->size]; /* remotes without use are never bound */
    ring->token = pwc_region_addr(ring->region);
    return 0;
}

/* Waits for the event of the put that brings the token. The event's id is the round. */
static int await_token(struct ring *ring, uint32_t round)
{
    struct pwc_event event;
    int rc = pwc_wait(ring->ctx, PWC_ANY, PWC_REMOTE, &event, TIMEOUT_MS);
    if (rc <= 0)
        return fail("waiting for the token", rc < 0 ? rc : -ETIMEDOUT);
    if (event.status < 0 || event.id != round)
        return fail("wrong token", event.status < 0 ? event.status : -EBADMSG);
    return 0;
}

static int pass_token(struct ring *ring, uint32_t round)
{
    /* The token has the same offset in the region of every rank, so it is put on as it arrived. No
     * local event is needed: when the token is back, this put has been placed. */
    int rc = pwc_put(ring->next, 0, ring->token, ring->size * sizeof(*ring->token), pwc_cid_u64(0),
                     pwc_cid_u64(round), PWC_NO_LCE);
    return rc < 0 ? fail("passing the token on", rc) : 0;
}

static int go_round(struct ring *ring)
{
    int rc = 0;
    for (uint32_t round = 0; rc == 0 && round < ROUNDS; round++) {
        if (ring->rank != 0)
            rc = await_token(ring, round);
        ring->token[ring->rank]++;
        if (rc == 0)
            rc = pass_token(ring, round);
        if (rc == 0 && ring->rank == 0)
            rc = await_token(ring, round);
    }
    return rc;
}

int main(void)
{
    struct ring ring = {0};
    int rc = ring_open(&ring);
    if (rc == 0)
        rc = go_round(&ring);
    if (rc == 0 && ring.rank == 0) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < ring.size; i++)
            sum += ring.token[i];
        printf("ring: %u ranks, %u rounds, the token says %llu\n", ring.size, ROUNDS,
               (unsigned long long)sum);
        if (sum != (uint64_t)ring.size * ROUNDS)
            rc = fail("wrong sum", -EBADMSG);
    }
    /* pwc_finalize completes the last put, which may still be on its way. */
    if (ring.client != NULL && pwc_finalize(ring.client) != 0)
        rc = fail("not all that was put has arrived", -EIO);
    return rc < 0;
}
