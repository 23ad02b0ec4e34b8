/*
 * Rank 0 adds up the numbers of all other ranks, and fetches the next block while it adds up the
 * last one. Rank 0 gets a block of each other rank into one of two buffers, and a request says when
 * a buffer is full. The two gets of a block, one for each half, share a request.
 *
 *     rank 0        gets of rank 1 -> buffer 0 (request 0)
 *                   gets of rank 2 -> buffer 1 (request 1)
 *                   wait_any -> add up that buffer, get the next rank's block into it
 */
#include <pwc/request.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define NUMBERS 1024u /* in a block */
#define HALF    (NUMBERS / 2 * sizeof(uint64_t))
#define BUFFERS 2u

#define CHECK(call) check(#call, call)
static int check(const char *call, int rc)
{
    if (rc < 0) {
        fprintf(stderr, "requests: %s: %s\n", call, pwc_strerror(rc));
        exit(1);
    }
    return rc;
}

static void get_block(pwc_remote *from, uint64_t *buffer, pwc_request *request)
{
    pwc_cid lid = pwc_cid_request(request);
    CHECK(pwc_get(from, 0, buffer, HALF, lid, PWC_CID_NONE, PWC_NO_RCE));
    CHECK(pwc_get(from, HALF, buffer + NUMBERS / 2, HALF, lid, PWC_CID_NONE, PWC_NO_RCE));
}

static uint64_t sum_of(const uint64_t *numbers)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < NUMBERS; i++)
        sum += numbers[i];
    return sum;
}

/* The sum of the blocks of all ranks but this one. */
static uint64_t sum_all(pwc_client *client, pwc_ctx *ctx, pwc_remote **remotes)
{
    pwc_region *buffers;
    pwc_request *requests[BUFFERS];
    uint32_t next = 1, size = pwc_size(client);
    uint64_t sum = 0, *numbers;
    struct pwc_status status;
    size_t which;

    CHECK(pwc_alloc(client, BUFFERS * 2 * HALF, 0, &buffers));
    numbers = pwc_region_addr(buffers);
    for (which = 0; which < BUFFERS; which++) {
        CHECK(pwc_request_create(ctx, &requests[which]));
        if (next < size)
            get_block(remotes[next++], numbers + which * NUMBERS, requests[which]);
    }
    for (uint32_t blocks = 1; blocks < size; blocks++) {
        CHECK(pwc_wait_any(requests, BUFFERS, &which, &status, -1));
        CHECK(status.status); /* the first error of the two gets */
        sum += sum_of(numbers + which * NUMBERS);
        if (next < size)
            get_block(remotes[next++], numbers + which * NUMBERS, requests[which]);
    }
    return sum;
}

int main(void)
{
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_region *region;
    uint64_t sum, expected = 0;
    int wrong = 0;

    CHECK(pwc_init(NULL, &client));
    CHECK(pwc_ctx_create(client, NULL, &ctx));
    CHECK(pwc_alloc(client, 2 * HALF, PWC_REMOTE_READ, &region));
    for (uint64_t i = 0; i < NUMBERS; i++)
        ((uint64_t *)pwc_region_addr(region))[i] = pwc_rank(client) + i;

    uint32_t size = pwc_size(client);
    pwc_remote **remotes = calloc(size, sizeof(*remotes));
    CHECK(pwc_bind_all(ctx, region, remotes)); /* returns when all blocks are filled */
    if (pwc_rank(client) == 0) {
        sum = sum_all(client, ctx, remotes);
        for (uint64_t rank = 1; rank < size; rank++)
            expected += NUMBERS * rank + (uint64_t)NUMBERS * (NUMBERS - 1) / 2;
        wrong = sum != expected;
        printf("requests: the blocks of %u ranks add up to %llu%s\n", size - 1,
               (unsigned long long)sum, wrong ? ": wrong" : "");
    }
    CHECK(pwc_barrier(ctx)); /* each rank keeps its block until rank 0 has read it */
    free(remotes);
    CHECK(pwc_finalize(client));
    return wrong;
}
