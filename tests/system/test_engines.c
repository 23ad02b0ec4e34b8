/*
 * Nodes with different numbers of progress threads: ranks on all engines reach each other; and when
 * a node is restarted with fewer threads, operations towards its missing engines end.
 *
 *     test_engines PWCD PROVIDER
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "tests/suite.h"
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"

#define RANKS        7u
#define FIRST_OF_ONE 2u /* lower ranks are on node 0, with one engine, the others on node 1 */
#define PART         (64u << 10)
#define REGION_BYTES (RANKS * PART)

/* Set by main before the tests run. */
static struct cluster cluster;

static unsigned node_of(uint32_t rank)
{
    return rank < FIRST_OF_ONE ? 0 : 1;
}

static bool wait_for(const struct rank *r, unsigned kind, uint64_t id)
{
    struct pwc_event event;

    return pwc_wait(r->ctx, PWC_ANY, kind, &event, RANK_WAIT_MS) == 1 && event.status == 0 &&
           event.id == id;
}

/* A small put, a large put, and a get of the bytes, from one rank to a part of another rank's
 * memory. */
static bool exchange(struct rank *from, const struct rank *to)
{
    static const size_t lengths[] = {8, PART};
    uint8_t *source = from->memory + from->number * PART;
    size_t at = from->number * (size_t)PART;
    uint64_t id = from->number * 100 + to->number;

    for (size_t i = 0; i < 2; i++) {
        rank_fill(source, lengths[i], id + i);
        if (pwc_put(from->remote, at, source, lengths[i], pwc_cid_u64(id), pwc_cid_u64(~id), 0) <
                0 ||
            !wait_for(to, PWC_REMOTE, ~id) || rank_check(to->memory + at, lengths[i], id + i) < 0 ||
            !wait_for(from, PWC_LOCAL, id))
            return false;
    }
    memset(source, 0, PART);
    return pwc_get(from->remote, at, source, PART, pwc_cid_u64(id), pwc_cid_u64(0), PWC_NO_RCE) ==
               0 &&
           wait_for(from, PWC_LOCAL, id) && rank_check(source, PART, id + 1) == 0;
}

static bool is_rejected(const struct rank *r)
{
    struct pwc_event event = {0};
    int rc = pwc_put(r->remote, 0, r->memory, 8, pwc_cid_u64(1), pwc_cid_u64(1), 0);

    return rc == -EKEYREJECTED ||
           (rc == 0 && pwc_wait(r->ctx, PWC_ANY, PWC_LOCAL, &event, RANK_WAIT_MS) == 1 &&
            event.status == -EKEYREJECTED);
}

static void all_reach_all(void)
{
    struct rank ranks[RANKS];

    for (uint32_t i = 0; i < RANKS; i++)
        CU_ASSERT_EQUAL_FATAL(
            rank_attach(&ranks[i], cluster.nodes[node_of(i)].socket, "all", i, RANKS, REGION_BYTES),
            0);
    for (uint32_t i = 0; i < RANKS; i++)
        for (uint32_t j = 0; j < RANKS; j++) {
            bool right;

            CU_ASSERT_EQUAL_FATAL(rank_bind(&ranks[i], &ranks[j]), 0);
            right = i == j || exchange(&ranks[i], &ranks[j]);
            if (!right)
                printf("\n    from rank %u to rank %u ", i, j);
            CU_ASSERT(right);
        }
    /* pwc_region_free returns when no engine can reach the region any more. */
    CU_ASSERT_EQUAL_FATAL(rank_bind(&ranks[0], &ranks[RANKS - 1]), 0);
    CU_ASSERT_EQUAL_FATAL(rank_bind(&ranks[RANKS - 2], &ranks[RANKS - 1]), 0);
    CU_ASSERT_EQUAL(pwc_region_free(ranks[RANKS - 1].region), 0);
    CU_ASSERT_TRUE(is_rejected(&ranks[0]));
    CU_ASSERT_TRUE(is_rejected(&ranks[RANKS - 2]));
    for (uint32_t i = 0; i < RANKS; i++)
        rank_detach(&ranks[i]);
    CU_ASSERT_TRUE(cluster_runs(&cluster));
}

/* A node is restarted with one engine: operations to its last engine end soon with an error, and
 * its first engine serves as before. */
static void comes_back_with_fewer(void)
{
    static const char *const one[] = {"--progress-threads", "1", NULL};
    struct rank ranks[4], again;
    struct pwc_event event = {0};
    int rc;

    for (uint32_t i = 0; i < 4; i++) /* rank 0 on node 0, others on engines 0 to 2 of node 1 */
        CU_ASSERT_EQUAL_FATAL(
            rank_attach(&ranks[i], cluster.nodes[i > 0].socket, "fewer", i, 5, REGION_BYTES), 0);
    CU_ASSERT_EQUAL_FATAL(rank_bind(&ranks[0], &ranks[3]), 0);
    CU_ASSERT_TRUE(exchange(&ranks[0], &ranks[3]));
    cluster_kill(&cluster, 1);
    cluster.options.one_more[1] = one;
    CU_ASSERT_EQUAL_FATAL(cluster_restart(&cluster, 1), 0);
    rc = pwc_put(ranks[0].remote, 0, ranks[0].memory, 8, pwc_cid_u64(1), pwc_cid_u64(1), 0);
    if (rc == 0)
        rc = pwc_wait(ranks[0].ctx, PWC_ANY, PWC_LOCAL, &event, RANK_WAIT_MS) == 1 ? event.status
                                                                                   : -ETIMEDOUT;
    printf("%s ", pwc_strerror(rc));
    CU_ASSERT(rc == -EHOSTDOWN || rc == -EKEYREJECTED || rc == -ECONNABORTED);
    for (uint32_t i = 1; i < 4; i++)
        rank_detach(&ranks[i]);
    CU_ASSERT_EQUAL_FATAL(rank_attach(&again, cluster.nodes[1].socket, "fewer", 3, 5, REGION_BYTES),
                          0);
    /* The first bind may fail, because it makes a new link to that engine, which ends what was
     * under way. */
    if (rank_bind(&ranks[0], &again) < 0)
        CU_ASSERT_EQUAL_FATAL(rank_bind(&ranks[0], &again), 0);
    CU_ASSERT_TRUE(exchange(&ranks[0], &again));
    rank_detach(&again);
    rank_detach(&ranks[0]);
    CU_ASSERT_TRUE(cluster_runs(&cluster));
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"all reach all", all_reach_all},
                           {"a node comes back with fewer", comes_back_with_fewer},
                           CU_TEST_INFO_NULL};
    static const char *const three[] = {"--progress-threads", "3", NULL};
    struct cluster_options options = {.nodes = 2, .one_more = {NULL, three}};
    int status = 1;

    if (!cluster_arguments(&options, argc, argv))
        return 2;
    if (cluster_open(&cluster, &options) == 0)
        status = suite_run("engines", tests);
    return cluster_end(&cluster, status);
}
