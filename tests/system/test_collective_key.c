/*
 * Nodes whose configuration names different algorithms for collectives form no team: each member's
 * call ends with -EPROTO, and its text names the kind and both algorithms. Nodes that agree again
 * do.
 *
 *     test_collective_key PWCD
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "pwc/team.h"
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"
#include "tests/suite.h"

enum { NODES = 2 };

/* main sets this once; then it is only read. */
static const char *pwcd;

struct former {
    const struct cluster *cluster;
    uint32_t rank;
    int attached, formed;
    char why[256];
};

static void *form(void *argument)
{
    struct former *f = argument;
    pwc_team *team = NULL;
    struct rank rank;

    f->attached =
        rank_attach(&rank, f->cluster->nodes[f->rank].socket, "choices", f->rank, NODES, 4096);
    if (f->attached < 0)
        return NULL;
    f->formed = pwc_team_world(rank.ctx, NULL, &team);
    pwc_error_text(rank.client, f->why, sizeof(f->why));
    if (f->formed == 0)
        f->formed = pwc_team_free(team);
    rank_detach(&rank);
    return NULL;
}

/* Each node has its own arguments; a rank of each tries to form a team. */
static void form_with(const char *const *first, const char *const *second, struct former *formers)
{
    struct cluster_options options = {
        .pwcd = pwcd, .provider = "stream", .nodes = NODES, .one_more = {first, second}};
    pthread_t threads[NODES];
    struct cluster cluster;

    CU_ASSERT_EQUAL_FATAL(cluster_open(&cluster, &options), 0);
    for (uint32_t r = 0; r < NODES; r++) {
        formers[r] = (struct former){.cluster = &cluster, .rank = r};
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[r], NULL, form, &formers[r]), 0);
    }
    for (uint32_t r = 0; r < NODES; r++) {
        pthread_join(threads[r], NULL);
        CU_ASSERT_EQUAL(formers[r].attached, 0);
    }
    CU_ASSERT_EQUAL(cluster_end(&cluster, 0), 0);
}

static void different(void)
{
    static const char *const rings[] = {"--collective", "allreduce ring, bcast tree", NULL};
    static const char *const trees[] = {"--collective", "bcast tree", NULL};
    struct former formers[NODES];

    form_with(rings, trees, formers);
    for (uint32_t r = 0; r < NODES; r++) {
        CU_ASSERT_EQUAL(formers[r].formed, -EPROTO);
        CU_ASSERT_PTR_NOT_NULL(strstr(formers[r].why, "allreduce goes by "));
        CU_ASSERT_PTR_NOT_NULL(strstr(formers[r].why, "ring"));
        CU_ASSERT_PTR_NOT_NULL(strstr(formers[r].why, "the daemon's own choice"));
    }
}

static void alike(void)
{
    static const char *const one[] = {"--collective", "allreduce ring, bcast tree", NULL};
    static const char *const other[] = {"--collective", " bcast  tree,allreduce ring ", NULL};
    struct former formers[NODES];

    form_with(one, other, formers);
    for (uint32_t r = 0; r < NODES; r++)
        CU_ASSERT_EQUAL(formers[r].formed, 0);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"nodes that choose differently form no team", different},
                           {"nodes that say alike what they choose do", alike},
                           CU_TEST_INFO_NULL};

    if (argc < 2)
        return 2;
    pwcd = argv[1];
    return suite_run("collective_key", tests);
}
