/*
 * A task pool without a master: the number of the next task is a word in rank 0's memory. Each
 * rank, on any node, takes task numbers by fetch-and-add until there are none left, and adds its
 * result to a second word. Rank 0 runs no code to serve the others.
 *
 * Run: pwcrun --nodes 2 -n 4 -- ./work_queue
 */
#include <pwc/atomic.h>
#include <pwc/request.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { TASKS = 1000 };

/* The region of rank 0. */
struct queue {
    uint64_t next; /* number of the next task */
    uint64_t sum;  /* of results */
};

#define CHECK(call) check(#call, call)
static void check(const char *call, int rc)
{
    if (rc < 0) {
        fprintf(stderr, "%s: %s\n", call, pwc_strerror(rc));
        exit(1);
    }
}

/* Adds to a word of the queue, and returns the value that the word had before. */
static uint64_t fetch_add(pwc_remote *queue, pwc_request *request, uint64_t off, uint64_t value)
{
    struct pwc_status status;
    uint64_t before;

    CHECK(pwc_fetch_atomic(queue, off, PWC_ADD, PWC_U64, &value, 1, &before,
                           pwc_cid_request(request), PWC_CID_NONE, PWC_NO_RCE));
    CHECK(pwc_request_wait(request, &status, -1));
    CHECK(status.status);
    return before;
}

int main(void)
{
    uint64_t task, done = 0, sum = 0, expected = (uint64_t)TASKS * (TASKS - 1) / 2;
    pwc_remote **ranks;
    pwc_request *request;
    pwc_client *client;
    pwc_region *region;
    pwc_ctx *ctx;

    CHECK(pwc_init(NULL, &client));
    CHECK(pwc_ctx_create(client, NULL, &ctx));
    CHECK(pwc_alloc(client, sizeof(struct queue), PWC_REMOTE_RW, &region));
    ranks = calloc(pwc_size(client), sizeof(pwc_remote *));
    if (!ranks)
        return 1;
    CHECK(pwc_bind_all(ctx, region, ranks));
    CHECK(pwc_request_create(ctx, &request));

    while ((task = fetch_add(ranks[0], request, offsetof(struct queue, next), 1)) < TASKS) {
        sum += task; /* the work */
        done++;
    }
    (void)fetch_add(ranks[0], request, offsetof(struct queue, sum), sum);
    printf("rank %u did %u of %u tasks\n", pwc_rank(client), (unsigned)done, TASKS);

    CHECK(pwc_barrier(ctx)); /* all sums are added: fetch_add has waited until its own was */
    if (pwc_rank(client) == 0) {
        const struct queue *all = pwc_region_addr(region);

        printf("sum %llu, expected %llu\n", (unsigned long long)all->sum,
               (unsigned long long)expected);
        expected -= all->sum;
    } else {
        expected = 0;
    }
    CHECK(pwc_barrier(ctx));
    free(ranks);
    CHECK(pwc_finalize(client));
    return expected != 0;
}
