/*
 * Nodes whose configuration names different algorithms for collectives cannot form a team: each
 * member's call ends with -EPROTO, and its text names the kind and both algorithms. Once the nodes
 * agree again, they can. When daemons are restarted with a changed configuration, existing teams
 * and calls under way keep their algorithms, and later teams use the new ones. No rank hangs.
 *
 *     test_collective_key PWCD
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "pwc/collective.h"
#include "pwc/team.h"
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"
#include "tests/lib/raw/look.h"
#include "tests/suite.h"

enum { NODES = 2, LIMIT_S = 30, CHANGES = 8, ROUNDS = 3 };

/* The path of pwcd, which main sets once. */
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

/* Starts both nodes with their own arguments; one rank on each tries to form a team. */
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

/* ---- a configuration that changes ------------------------------------------------------------ */

static struct cluster cluster;
static char file_name[] = "/tmp/pwc-collective-XXXXXX";
static pthread_barrier_t together; /* for both ranks and the main thread */

static void choose(const char *what)
{
    FILE *file = fopen(file_name, "we");

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fprintf(file, "collective = %s\n", what);
    CU_ASSERT_EQUAL(fclose(file), 0);
}

/* Replaces a node's daemon, by a hand-over or after its death. The next daemon reads the file. */
static void start_anew(unsigned node, bool dies)
{
    pid_t daemon = cluster_kept(&cluster, node), next = daemon;

    CU_ASSERT_FATAL(daemon > 0);
    CU_ASSERT_EQUAL(dies ? kill(daemon, SIGKILL) : kill(cluster.nodes[node].pid, SIGUSR2), 0);
    for (time_t end = time(NULL) + LIMIT_S;
         (next == daemon || next == 0 || kill(daemon, 0) == 0) && time(NULL) < end;) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        next = cluster_kept(&cluster, node);
    }
    CU_ASSERT_FATAL(next != daemon && next > 0);
}

/* The number of allreduces by this algorithm that the node's daemon has counted. */
static int calls_by(unsigned node, const char *algorithm)
{
    struct daemon d = {0};
    json_t *document, *row;
    int calls = 0;
    size_t at;

    snprintf(d.socket, sizeof(d.socket), "%s", cluster.nodes[node].socket);
    document = look_at(&d, "collectives");
    CU_ASSERT_PTR_NOT_NULL(document);
    json_array_foreach(
        json_object_get(document, "collectives"), at,
        row) if (strcmp(json_string_value(json_object_get(row, "kind")), "allreduce") == 0 &&
                 strcmp(json_string_value(json_object_get(row, "algorithm")), algorithm) == 0)
        calls += (int)json_integer_value(json_object_get(row, "calls"));
    json_decref(document);
    return calls;
}

struct member {
    struct rank rank;
    pwc_team *world;
    pwc_request *request;
    uint64_t sum;
    _Atomic int wrong; /* the line of the first failure; 0: none */
    _Atomic unsigned rounds, formed;
    _Atomic bool *stop;
};

static void must(struct member *m, bool holds, int line)
{
    int none = 0;

    if (!holds)
        (void)atomic_compare_exchange_strong(&m->wrong, &none, line);
}

#define MUST(m, holds) must(m, holds, __LINE__)

static void begin(struct member *m, pwc_team *t, const uint64_t *mine)
{
    MUST(m, pwc_team_allreduce(t, mine, &m->sum, 1, PWC_U64, PWC_ADD, pwc_cid_request(m->request),
                               0) == 0);
}

static uint64_t end(struct member *m)
{
    struct pwc_status status = {.status = 1};

    MUST(m, pwc_request_wait(m->request, &status, LIMIT_S * 1000) == 1 && status.status == 0);
    return m->sum;
}

static void join(struct member *m)
{
    MUST(m, rank_attach(&m->rank, cluster.nodes[m->rank.number].socket, "reload", m->rank.number,
                        NODES, 4096) == 0);
    MUST(m, pwc_team_world(m->rank.ctx, NULL, &m->world) == 0);
    MUST(m, pwc_request_create(m->rank.ctx, &m->request) == 0);
}

/* One rank calls before the daemons are restarted, the other one after that. */
static void *under_way(void *argument)
{
    struct member *m = argument;
    uint64_t mine = m->rank.number + 1;
    pwc_team *next = NULL;

    join(m);
    if (m->rank.number == 0)
        begin(m, m->world, &mine);
    (void)pthread_barrier_wait(&together);
    (void)pthread_barrier_wait(&together);
    if (m->rank.number == 1)
        begin(m, m->world, &mine);
    MUST(m, end(m) == 3);
    (void)pthread_barrier_wait(&together);
    (void)pthread_barrier_wait(&together);
    MUST(m, pwc_team_dup(m->world, NULL, &next) == 0);
    begin(m, next, &mine);
    MUST(m, end(m) == 3);
    (void)pthread_barrier_wait(&together);
    MUST(m, pwc_team_free(next) == 0);
    MUST(m, pwc_request_free(m->request) == 0);
    rank_detach(&m->rank);
    return NULL;
}

/* Forms a team in each round, or gets the error that the nodes' algorithms differ. */
static void form_one(struct member *m)
{
    uint64_t mine = m->rank.number + 1;
    pwc_team *next = NULL;
    char why[256] = "";
    int rc = pwc_team_dup(m->world, NULL, &next);

    pwc_error_text(m->rank.client, why, sizeof(why));
    MUST(m, rc == 0 || (rc == -EPROTO && (strstr(why, "allreduce goes by") != NULL ||
                                          strstr(why, "another `collective`") != NULL)));
    if (rc < 0)
        return;
    begin(m, next, &mine);
    MUST(m, end(m) == 3);
    MUST(m, pwc_team_free(next) == 0);
    m->formed++;
}

static void *forming(void *argument)
{
    struct member *m = argument;
    uint64_t stop = 0, stops = 0;

    join(m);
    while (m->wrong == 0 && stops == 0) {
        stop = *m->stop && m->rank.number == 0;
        begin(m, m->world, &stop);
        stops = end(m);
        if (stops == 0)
            form_one(m);
        m->rounds++;
    }
    MUST(m, pwc_request_free(m->request) == 0);
    rank_detach(&m->rank);
    return NULL;
}

/* Starts both nodes with the first configuration; one rank on each runs the script. */
static void begin_both(struct member *members, pthread_t *threads, void *(*script)(void *),
                       _Atomic bool *stop)
{
    static const char *const more[] = {
        "--keep", "--peer-deadline-ms", "20000", "--config", file_name, NULL};
    struct cluster_options options = {
        .pwcd = pwcd, .provider = "stream", .nodes = NODES, .more = more};

    choose("allreduce ring");
    CU_ASSERT_EQUAL_FATAL(cluster_open(&cluster, &options), 0);
    for (uint32_t r = 0; r < NODES; r++) {
        members[r] = (struct member){.rank = {.number = r}, .stop = stop};
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[r], NULL, script, &members[r]), 0);
    }
}

static void end_both(struct member *members, const pthread_t *threads)
{
    for (uint32_t r = 0; r < NODES; r++) {
        pthread_join(threads[r], NULL);
        if (members[r].wrong != 0)
            printf("rank %u: wrong in line %d\n", r, members[r].wrong);
        CU_ASSERT_EQUAL(members[r].wrong, 0);
    }
    CU_ASSERT_EQUAL(cluster_end(&cluster, 0), 0);
}

static void changed_under_way(void)
{
    struct member members[NODES];
    pthread_t threads[NODES];

    CU_ASSERT_EQUAL_FATAL(pthread_barrier_init(&together, NULL, NODES + 1), 0);
    begin_both(members, threads, under_way, NULL);
    (void)pthread_barrier_wait(&together);
    choose("allreduce doubling");
    for (unsigned node = 0; node < NODES; node++)
        start_anew(node, node == 1);
    (void)pthread_barrier_wait(&together);
    (void)pthread_barrier_wait(&together);
    for (unsigned node = 0; node < NODES; node++) {
        CU_ASSERT_EQUAL(calls_by(node, "ring"), 1);
        CU_ASSERT_EQUAL(calls_by(node, "doubling"), 0);
    }
    (void)pthread_barrier_wait(&together);
    (void)pthread_barrier_wait(&together);
    for (unsigned node = 0; node < NODES; node++)
        CU_ASSERT_EQUAL(calls_by(node, "doubling"), 1);
    end_both(members, threads);
    pthread_barrier_destroy(&together);
}

/* Waits until the ranks have made `more` further rounds, or one has failed. */
static void await_rounds(const struct member *members, unsigned more)
{
    unsigned enough = members[0].rounds + more;

    for (time_t end = time(NULL) + LIMIT_S; members[0].rounds < enough && members[0].wrong == 0 &&
                                            members[1].wrong == 0 && time(NULL) < end;)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    CU_ASSERT(members[0].rounds >= enough);
}

static void changed_while_teams_form(void)
{
    static const char *const choices[] = {"allreduce doubling", "allreduce ring"};
    struct member members[NODES];
    pthread_t threads[NODES];
    _Atomic bool stop = false;
    unsigned formed;

    begin_both(members, threads, forming, &stop);
    await_rounds(members, ROUNDS);
    for (unsigned i = 0; i < CHANGES && members[0].wrong == 0 && members[1].wrong == 0; i++) {
        if (i % 2 == 0)
            choose(choices[i / 2 % 2]);
        start_anew(i % 2, i / 2 % 2);
        await_rounds(members, ROUNDS);
    }
    formed = members[0].formed;
    await_rounds(members, ROUNDS);
    CU_ASSERT(members[0].formed > formed); /* teams form again with equal files */
    stop = true;
    end_both(members, threads);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"nodes that choose differently form no team", different},
                           {"nodes that say alike what they choose do", alike},
                           {"a choice that changes under way", changed_under_way},
                           {"a choice that changes while teams form", changed_while_teams_form},
                           CU_TEST_INFO_NULL};
    int descriptor, status;

    if (argc < 2)
        return 2;
    pwcd = argv[1];
    descriptor = mkstemp(file_name);
    if (descriptor < 0)
        return 1;
    close(descriptor);
    status = suite_run("collective_key", tests);
    unlink(file_name);
    return status;
}
