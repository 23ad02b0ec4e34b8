/*
 * Mistakes of programs, over two nodes: each gets an error that names the mistake, and the daemons
 * work on.
 *
 *     test_mistakes PWCD
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"
#include "tests/suite.h"

enum { NODES = 2, RANKS = 3 };

/* Rank 0 is on node 0, ranks 1 and 2 on node 1. The tests' thread owns this. */
static struct {
    struct cluster cluster;
    struct rank ranks[RANKS];
} all;

/* Whether the text about a rank's last call holds `words`; prints it if not. */
static bool says(const struct rank *r, const char *words)
{
    char text[256];

    (void)pwc_error_text(r->client, text, sizeof(text));
    if (strstr(text, words))
        return true;
    fprintf(stderr, "rank %u: \"%s\" does not hold \"%s\"\n", r->number, text, words);
    return false;
}

static void key_of_another_node(void)
{
    static const struct {
        uint32_t origin, peer, owner;
        int expected;
        const char *words;
    } rows[] = {
        {0, 1, 1, 0, ""},
        {1, 0, 2, -EKEYREJECTED, "it is of node 1, and this rank is on node 0"},
        {0, 0, 2, -EKEYREJECTED, "it is of node 1, and this rank is on node 0"},
        {2, 1, 0, -EKEYREJECTED, "it is of node 0, and this rank is on node 1"},
        {0, 7, 2, -EHOSTUNREACH, "no such rank or context"},
        {0, 7, 0, -EHOSTUNREACH, "no such rank or context"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rank *r = &all.ranks[rows[i].origin];
        pwc_remote *remote;
        struct pwc_key key;

        CU_ASSERT_EQUAL(pwc_region_key(all.ranks[rows[i].owner].region, &key), 0);
        CU_ASSERT_EQUAL(pwc_bind(r->ctx, pwc_peer_of(rows[i].peer, 0), &key, &remote),
                        rows[i].expected);
        CU_ASSERT_TRUE(says(r, rows[i].words));
    }
}

struct giver {
    struct rank *rank;
    size_t length;
    int result;
};

static void *give(void *argument)
{
    struct giver *g = argument;
    uint8_t mine[64] = {0}, got[RANKS * sizeof(mine)];

    g->result = pwc_exchange(g->rank->ctx, mine, g->length, got);
    return NULL;
}

static void exchange(struct giver givers[RANKS])
{
    pthread_t threads[RANKS];

    for (uint32_t i = 0; i < RANKS; i++) {
        givers[i].rank = &all.ranks[i];
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, give, &givers[i]), 0);
    }
    for (uint32_t i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
}

/* One rank gives another length: all get the same error, whichever rank calls first. */
static void different_lengths(void)
{
    struct giver givers[RANKS] = {{.length = 8}, {.length = 8}, {.length = 12}};

    exchange(givers);
    for (uint32_t i = 0; i < RANKS; i++) {
        CU_ASSERT_EQUAL(givers[i].result, -EINVAL);
        CU_ASSERT_TRUE(says(&all.ranks[i], ", and a rank before it an exchange of "));
        CU_ASSERT_TRUE(says(&all.ranks[i], "an exchange of 12 bytes"));
        CU_ASSERT_TRUE(says(&all.ranks[i], "an exchange of 8 bytes"));
    }
    for (uint32_t i = 0; i < RANKS; i++)
        givers[i].length = 8;
    exchange(givers); /* the next exchange works again */
    for (uint32_t i = 0; i < RANKS; i++)
        CU_ASSERT_EQUAL(givers[i].result, 0);
}

/* One rank calls a barrier while the others exchange: the text names both calls. */
static void barrier_against_exchange(void)
{
    struct giver givers[RANKS] = {{.length = 8}, {.length = 0}, {.length = 8}};

    exchange(givers);
    for (uint32_t i = 0; i < RANKS; i++) {
        CU_ASSERT_EQUAL(givers[i].result, -EINVAL);
        CU_ASSERT_TRUE(says(&all.ranks[i], "a barrier"));
        CU_ASSERT_TRUE(says(&all.ranks[i], "an exchange of 8 bytes"));
    }
}

/* Errors that the library finds itself have a text, too, always about the last call only. */
static void memory_and_rings(void)
{
    static const struct pwc_ctx_attr large = {.local_bytes = UINT32_C(1) << 30};
    struct rank *r = &all.ranks[0];
    pwc_region *region;
    pwc_ctx *ctx;
    char here[64];

    CU_ASSERT_EQUAL(pwc_alloc(r->client, 0, PWC_REMOTE_RW, &region), -EINVAL);
    CU_ASSERT_TRUE(says(r, "memory of 0 bytes, or unknown rights"));
    CU_ASSERT_EQUAL(pwc_register(r->client, here, sizeof(here), 0, 99, &region), -EINVAL);
    CU_ASSERT_TRUE(says(r, "unknown rights or flags"));
    CU_ASSERT_EQUAL(pwc_register(r->client, here, sizeof(here), PWC_REMOTE_RW, PWC_MOVE, &region),
                    -EINVAL);
    CU_ASSERT_TRUE(says(r, "64 bytes at 0x"));
    CU_ASSERT_EQUAL(pwc_register(r->client, here, SIZE_MAX / 4, 0, 0, &region), -EINVAL);
    CU_ASSERT_TRUE(says(r, "bytes to go through a copy: the daemon allows 4194304"));
    CU_ASSERT_EQUAL(pwc_ctx_create(r->client, &large, &ctx), -EINVAL);
    CU_ASSERT_TRUE(says(r, "more than 64 MiB"));
}

/* A rank leaves without a barrier that another rank waits in, or calls later: the text names the
 * rank that left. */
static void barrier_without_a_rank(void)
{
    struct rank ranks[2] = {{0}};

    for (uint32_t i = 0; i < 2; i++)
        CU_ASSERT_EQUAL_FATAL(
            rank_attach(&ranks[i], all.cluster.nodes[i].socket, "leaves", i, 2, 4096), 0);
    rank_detach(&ranks[1]);
    for (int calls = 0; calls < 2; calls++) {
        CU_ASSERT_EQUAL(pwc_barrier(ranks[0].ctx), -EHOSTDOWN);
        CU_ASSERT_TRUE(says(&ranks[0], "rank 1 left, or its node cannot be reached"));
    }
    rank_detach(&ranks[0]);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"a bind with the key of another node's rank", key_of_another_node},
                           {"an exchange of different lengths", different_lengths},
                           {"a barrier against an exchange", barrier_against_exchange},
                           {"a barrier without a rank", barrier_without_a_rank},
                           {"memory and rings", memory_and_rings},
                           CU_TEST_INFO_NULL};
    struct cluster_options options = {.provider = "stream", .nodes = NODES};
    int status = 1;

    if (argc < 2)
        return 2;
    options.pwcd = argv[1];
    if (cluster_open(&all.cluster, &options) == 0) {
        status = 0;
        for (uint32_t i = 0; i < RANKS && status == 0; i++)
            status = rank_attach(&all.ranks[i], all.cluster.nodes[i > 0].socket, "mistakes", i,
                                 RANKS, 4096) < 0;
        if (status == 0)
            status = suite_run("mistakes", tests);
    }
    for (uint32_t i = 0; i < RANKS; i++)
        rank_detach(&all.ranks[i]);
    return cluster_end(&all.cluster, status);
}
