/*
 * Rank 0 puts blocks of a matrix to rank 1. A block has 64 KiB: rows of 64 bytes, out of a matrix
 * with rows of 1 KiB into another such matrix. A block is put as one shape, or row by row:
 *
 *     pwcrun --nodes 2 -n 2 --pin -- vector_put shape|puts WINDOW [BLOCKS]
 *
 * A window of blocks is submitted, then the origin waits until all are placed; the target gets one
 * event a block. Prints the median time of a block over all windows, in microseconds, as JSON. The
 * target checks every byte at the end. One thread a rank.
 */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pwc/vector.h>
#include "bench/rank.h"

#define ROW        64u
#define ROWS       1024u
#define PITCH      1024u
#define BYTES      ((size_t)ROWS * PITCH)
#define BLOCKS     2000u
#define TIMEOUT_MS 30000

struct bench {
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_region *region;
    pwc_remote *other;
    uint8_t *memory;
    uint32_t window, blocks;
};

static void check(const char *what, int rc)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "vector_put: %s: %s\n", what, pwc_strerror(rc));
    exit(1);
}

/* Waits for a local event, which says that a block is placed. */
static void await_block(struct bench *b)
{
    struct pwc_event event;
    int rc = pwc_wait(b->ctx, PWC_ANY, PWC_LOCAL, &event, TIMEOUT_MS);

    check("waiting for a block", rc == 0 ? -ETIMEDOUT : rc);
    check("a block", event.status);
}

/* This function and the next put one block. -EAGAIN: nothing more of the block was submitted; call
 * again. */
static int put_shape(struct bench *b)
{
    static const struct pwc_shape shape = {.dims = 1,
                                           .element = ROW,
                                           .count = {ROWS},
                                           .local_stride = {PITCH},
                                           .remote_stride = {PITCH}};

    return pwc_put_shape(b->other, 0, b->memory, &shape, pwc_cid_u64(1), pwc_cid_u64(2), 0);
}

static int put_rows(struct bench *b)
{
    static uint32_t next; /* row to put */
    int rc = 0;

    for (; next < ROWS && rc == 0; next += rc == 0)
        rc = pwc_put(b->other, (uint64_t)next * PITCH, b->memory + (size_t)next * PITCH, ROW,
                     pwc_cid_u64(1), pwc_cid_u64(2), next + 1 < ROWS ? PWC_NO_LCE | PWC_NO_RCE : 0);
    if (rc == 0)
        next = 0;
    return rc;
}

/* Puts a window of blocks. Returns the microseconds for one block. */
static double run_window(struct bench *b, int (*put)(struct bench *b))
{
    double start = now_us();
    uint32_t flying = 0;

    for (uint32_t i = 0; i < b->window; i++, flying++) {
        int rc;

        while ((rc = put(b)) == -EAGAIN) {
            struct pwc_event event;

            rc = pwc_probe(b->ctx, PWC_ANY, PWC_LOCAL, &event);
            check("probing", rc);
            if (rc == 1)
                flying--;
            else
                sched_yield();
        }
        check("putting", rc);
    }
    for (; flying > 0; flying--)
        await_block(b);
    return (now_us() - start) / b->window;
}

static void origin(struct bench *b, const char *how)
{
    int (*put)(struct bench * b) = strcmp(how, "shape") == 0 ? put_shape : put_rows;
    uint32_t windows = b->blocks / b->window;
    double *times = calloc(windows, sizeof(*times));

    if (!times)
        check("memory", -ENOMEM);
    for (uint32_t i = 0; i < windows; i++)
        times[i] = run_window(b, put);
    printf("{\"test\":\"%s\",\"window\":%u,\"p50_us\":%.3f}\n", how, b->window,
           median(times, windows));
    free(times);
}

static void target(struct bench *b)
{
    struct pwc_event event;

    for (uint32_t i = 0; i < b->blocks / b->window * b->window; i++) {
        int rc = pwc_wait(b->ctx, PWC_ANY, PWC_REMOTE, &event, TIMEOUT_MS);

        check("waiting for a block's event", rc == 0 ? -ETIMEDOUT : rc);
    }
    for (size_t i = 0; i < BYTES; i++)
        if (b->memory[i] != (i % PITCH < ROW ? (uint8_t)(i * 7 + i / PITCH) : 0)) {
            fprintf(stderr, "vector_put: byte %zu is wrong\n", i);
            exit(1);
        }
}

int main(int argc, char **argv)
{
    struct bench b = {.blocks = BLOCKS};
    struct pwc_key mine, keys[2];
    uint32_t rank;

    if (argc < 3 || (strcmp(argv[1], "shape") != 0 && strcmp(argv[1], "puts") != 0)) {
        fprintf(stderr, "usage: %s shape|puts WINDOW [BLOCKS], with two ranks\n", argv[0]);
        return 2;
    }
    b.window = (uint32_t)atoi(argv[2]);
    b.blocks = argc > 3 ? (uint32_t)atoi(argv[3]) : BLOCKS;
    check("attaching", pwc_init(NULL, &b.client));
    rank = pwc_rank(b.client);
    if (pwc_size(b.client) != 2 || b.window == 0 || b.blocks < b.window)
        check("two ranks, a window and as many blocks are needed", -EINVAL);
    check("a context", pwc_ctx_create(b.client, NULL, &b.ctx));
    check("memory", pwc_alloc(b.client, BYTES, PWC_REMOTE_WRITE, &b.region));
    b.memory = pwc_region_addr(b.region);
    for (size_t i = 0; i < BYTES && rank == 0; i++)
        b.memory[i] = (uint8_t)(i * 7 + i / PITCH);
    check("a key", pwc_region_key(b.region, &mine));
    check("exchanging keys", pwc_exchange(b.ctx, &mine, sizeof(mine), keys));
    check("binding", pwc_bind(b.ctx, 1 - rank, &keys[1 - rank], &b.other));
    check("a barrier", pwc_barrier(b.ctx));
    if (rank == 0)
        origin(&b, argv[1]);
    else
        target(&b);
    check("a barrier", pwc_barrier(b.ctx));
    check("leaving", pwc_finalize(b.client));
    return 0;
}
