/*
 * Teams over whole daemons, each rank a process: shapes, quotas, members and nodes that die while
 * teams form and work, and daemons that are restarted meanwhile.
 *
 *     test_teams PWCD NODES [KILLS [ARGUMENT...]]
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "proto/clock.h"
#include "pwc/atomic.h"
#include "pwc/collective.h"
#include "pwc/request.h"
#include "pwc/team.h"
#include "tests/lib/cluster.h"
#include "tests/suite.h"

#define RANKS    6u
#define WAIT_MS  20000
#define LIMIT_S  50 /* time for a script, or for one of its rounds: a rank that hangs fails */
#define MORE_MAX 12
#define QUOTA    16       /* teams that a client may have, the world among them */
#define MEMORY   67108864 /* bytes that a client may have */
#define PIECE    262144   /* bytes allocated at a time */
#define STR(x)   STR_(x)
#define STR_(x)  #x

/* Set by main before the tests run. */
static struct cluster cluster;
static struct cluster_options options;
static unsigned nodes, kills;

/* Memory shared by the test and the ranks, which are processes. */
static struct shared {
    _Atomic uint32_t entered;        /* ranks that run, where a script counts them */
    _Atomic uint32_t reached[RANKS]; /* the step of the script that the rank has reached */
    _Atomic bool stop;
} * shared;

/* ---- ranks ----------------------------------------------------------------------------------- */

struct rank {
    uint32_t number;
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_team *world;
    pwc_request *request;
};

/* A check in a rank: a failure ends the process. */
#define MUST(rank, condition) must(rank, condition, #condition, __LINE__)

static void must(const struct rank *r, bool holds, const char *what, int line)
{
    char why[256] = "";

    if (holds)
        return;
    pwc_error_text(r->client, why, sizeof(why));
    fprintf(stderr, "rank %u, line %d: %s does not hold. %s\n", r->number, line, what, why);
    _exit(1);
}

static unsigned node_of(uint32_t rank)
{
    return rank * nodes / RANKS;
}

/* `timeout_ms` is that of the client's calls; 0: the default. */
static void attach_within(struct rank *r, uint32_t number, const char *job, int timeout_ms)
{
    const struct pwc_attr attr = {.socket = cluster.nodes[node_of(number)].socket,
                                  .job = job,
                                  .rank = number,
                                  .size = RANKS,
                                  .timeout_ms = timeout_ms};

    *r = (struct rank){.number = number};
    MUST(r, pwc_init(&attr, &r->client) == 0);
    MUST(r, pwc_ctx_create(r->client, NULL, &r->ctx) == 0);
    MUST(r, pwc_request_create(r->ctx, &r->request) == 0);
    MUST(r, pwc_team_world(r->ctx, NULL, &r->world) == 0);
}

static void attach(struct rank *r, uint32_t number, const char *job)
{
    attach_within(r, number, job, 0);
}

static void reach(const struct rank *r, uint32_t step)
{
    atomic_store(&shared->reached[r->number], step);
}

/* Sums the members' ranks in the job by an allreduce. Returns the sum, or a negative errno. */
static int64_t sum_over(struct rank *r, pwc_team *team)
{
    int64_t mine = r->number, sum = -1;
    struct pwc_status status;
    int rc =
        pwc_team_allreduce(team, &mine, &sum, 1, PWC_I64, PWC_ADD, pwc_cid_request(r->request), 0);

    if (rc == 0)
        rc = pwc_request_wait(r->request, &status, WAIT_MS) == 1 ? status.status : -ETIMEDOUT;
    return rc < 0 ? rc : sum;
}

/* Starts a process for each rank, which runs the script. */
static void start_ranks(pid_t pids[RANKS], const char *job,
                        void (*script)(struct rank *r, uint32_t number, const char *job))
{
    memset(shared, 0, sizeof(*shared));
    for (uint32_t i = 0; i < RANKS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            struct rank r;

            alarm(LIMIT_S);
            script(&r, i, job);
            _exit(0);
        }
    }
}

static void kill_rank(pid_t pids[RANKS], uint32_t rank)
{
    kill(pids[rank], SIGKILL);
    waitpid(pids[rank], NULL, 0);
    pids[rank] = 0;
}

/* Checks that all ranks that were not killed have succeeded. */
static void expect_ends(const pid_t pids[RANKS])
{
    for (uint32_t i = 0; i < RANKS; i++) {
        int status = 0;

        if (pids[i] == 0)
            continue;
        CU_ASSERT_EQUAL(waitpid(pids[i], &status, 0), pids[i]);
        CU_ASSERT_EQUAL(status, 0);
    }
}

/* Waits until these ranks have reached the step. */
static bool all_reach(uint32_t from, uint32_t to, uint32_t step)
{
    int64_t end = now_ms() + WAIT_MS;

    for (uint32_t i = from; i < to; i++)
        while (atomic_load(&shared->reached[i]) < step) {
            if (now_ms() > end)
                return false;
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
    return true;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void shapes_script(struct rank *r, uint32_t number, const char *job)
{
    pwc_team *split, *strided, *here, *copy;
    uint32_t first = 0, last = RANKS - 1;
    pwc_ctx *other;
    pwc_peer peer;

    attach(r, number, job);
    MUST(r, pwc_team_rank(r->world) == number && pwc_team_size(r->world) == RANKS);
    MUST(r, sum_over(r, r->world) == RANKS * (RANKS - 1) / 2);
    /* Odd ranks are in one team, 0 and 4 in another, both in descending order; 2 is in none. */
    MUST(r, pwc_team_split(r->world, number == 2 ? -1 : (int)(number % 2), -(int)number, NULL,
                           &split) == 0);
    MUST(r, (split == NULL) == (number == 2));
    if (split) {
        MUST(r, pwc_team_size(split) == (number % 2 ? 3 : 2));
        MUST(r, pwc_team_peer(split, 0, &peer) == 0 && (uint32_t)peer == (number % 2 ? 5 : 4));
        MUST(r, sum_over(r, split) == (number % 2 ? 9 : 4));
    }
    /* A team of ranks 4, 2 and 0. */
    MUST(r, pwc_team_split_strided(r->world, 4, -2, 3, &strided) == 0);
    MUST(r, (strided == NULL) == (number % 2 == 1));
    MUST(r, !strided || (pwc_team_rank(strided) == (4 - number) / 2 && sum_over(r, strided) == 6));
    MUST(r, pwc_team_split_node(r->world, &here) == 0);
    while (node_of(first) != node_of(number))
        first++;
    while (node_of(last) != node_of(number))
        last--;
    MUST(r, pwc_team_size(here) == last - first + 1 && pwc_team_rank(here) == number - first);
    MUST(r, sum_over(r, here) == (int64_t)(first + last) * (last - first + 1) / 2);
    MUST(r, pwc_ctx_create(r->client, NULL, &other) == 0);
    MUST(r, pwc_team_dup(r->world, other, &copy) == 0);
    MUST(r, pwc_team_peer(copy, 3, &peer) == 0 && peer == pwc_peer_of(3, 1));
    MUST(r, !split || pwc_team_free(split) == 0);
    MUST(r, !strided || pwc_team_free(strided) == 0);
    MUST(r, pwc_team_free(here) == 0);
    MUST(r, pwc_team_free(copy) == 0);
    MUST(r, pwc_team_free(r->world) == 0);
    MUST(r, pwc_finalize(r->client) == 0);
}

static void shapes(void)
{
    pid_t pids[RANKS];

    start_ranks(pids, "shapes", shapes_script);
    expect_ends(pids);
}

/* ---- quotas ---------------------------------------------------------------------------------- */

static void quota_script(struct rank *r, uint32_t number, const char *job)
{
    pwc_team *teams[QUOTA], *more;
    char why[256];

    attach(r, number, job);
    for (int round = 0; round < 2; round++) {
        for (int i = 1; i < QUOTA; i++)
            MUST(r, pwc_team_dup(r->world, NULL, &teams[i]) == 0);
        MUST(r, pwc_team_dup(r->world, NULL, &more) == -EDQUOT);
        pwc_error_text(r->client, why, sizeof(why));
        MUST(r, strstr(why, "(client-teams) is " STR(QUOTA)) != NULL);
        for (int i = 1; i < QUOTA; i++)
            MUST(r, pwc_team_free(teams[i]) == 0);
    }
    pwc_finalize(r->client);
}

static void at_the_quota(void)
{
    pid_t pids[RANKS];

    start_ranks(pids, "quota", quota_script);
    expect_ends(pids);
}

/* The last rank has no memory left for its share of the area. All others get the same error,
 * although their daemons have opened the team already. The nodes stay linked: teams form and work
 * afterwards. */
static void unopened_script(struct rank *r, uint32_t number, const char *job)
{
    pwc_region *pieces[MEMORY / PIECE];
    pwc_team *team;
    uint32_t count = 0;

    attach(r, number, job);
    for (int round = 0; round < 3; round++) {
        while (number == RANKS - 1 && count < MEMORY / PIECE &&
               pwc_alloc(r->client, PIECE, PWC_REMOTE_WRITE, &pieces[count]) == 0)
            count++;
        MUST(r, pwc_team_dup(r->world, NULL, &team) == -EDQUOT);
        while (count > 0)
            MUST(r, pwc_region_free(pieces[--count]) == 0);
        MUST(r, sum_over(r, r->world) == RANKS * (RANKS - 1) / 2);
        MUST(r, pwc_team_dup(r->world, NULL, &team) == 0);
        MUST(r, sum_over(r, team) == RANKS * (RANKS - 1) / 2);
        MUST(r, pwc_team_free(team) == 0);
    }
    MUST(r, pwc_team_free(r->world) == 0);
    MUST(r, pwc_finalize(r->client) == 0);
}

static void a_team_that_one_node_cannot_open(void)
{
    pid_t pids[RANKS];

    start_ranks(pids, "unopened", unopened_script);
    expect_ends(pids);
}

/* ---- members that cannot take part ----------------------------------------------------------- */

/* The largest limit of descriptors that still allows no new one. */
static struct rlimit no_descriptors(const struct rlimit *before)
{
    int lowest = dup(0);

    close(lowest);
    return (struct rlimit){.rlim_cur = (rlim_t)lowest, .rlim_max = before->rlim_max};
}

/* The last rank cannot receive the area. The others have the team already, so it breaks. */
static void no_descriptor_script(struct rank *r, uint32_t number, const char *job)
{
    struct rlimit before, none;
    pwc_team *team, *left;
    char why[256];

    attach(r, number, job);
    if (number == RANKS - 1) {
        MUST(r, getrlimit(RLIMIT_NOFILE, &before) == 0);
        none = no_descriptors(&before);
        MUST(r, setrlimit(RLIMIT_NOFILE, &none) == 0);
        MUST(r, pwc_team_dup(r->world, NULL, &team) == -EMFILE);
        MUST(r, setrlimit(RLIMIT_NOFILE, &before) == 0);
    } else {
        MUST(r, pwc_team_dup(r->world, NULL, &team) == 0);
        MUST(r, sum_over(r, team) == -EHOSTDOWN);
        MUST(r, pwc_team_error_text(team, why, sizeof(why)) > 0 && strstr(why, "take part"));
        MUST(r, pwc_team_shrink(team, &left) == 0);
        MUST(r, pwc_team_size(left) == RANKS - 1);
        MUST(r, pwc_team_free(left) == 0);
        MUST(r, pwc_team_free(team) == 0);
    }
    MUST(r, sum_over(r, r->world) == RANKS * (RANKS - 1) / 2);
    MUST(r, pwc_team_free(r->world) == 0);
    MUST(r, pwc_finalize(r->client) == 0);
}

static void a_member_without_descriptors(void)
{
    pid_t pids[RANKS];

    start_ranks(pids, "no-descriptor", no_descriptor_script);
    expect_ends(pids);
}

static pid_t daemon_of(uint32_t rank)
{
    return kills > 0 ? cluster_kept(&cluster, node_of(rank)) : cluster.nodes[node_of(rank)].pid;
}

/* Sets the daemon's limit of descriptors for one call, in which the last rank's node takes part. */
static int dup_within(struct rank *r, rlim_t limit, pwc_team **team)
{
    pid_t daemon = daemon_of(r->number);
    struct rlimit before, few;
    int rc;

    if (r->number != RANKS - 1)
        return pwc_team_dup(r->world, NULL, team);
    MUST(r, prlimit(daemon, RLIMIT_NOFILE, NULL, &before) == 0);
    few = (struct rlimit){.rlim_cur = limit, .rlim_max = before.rlim_max};
    MUST(r, prlimit(daemon, RLIMIT_NOFILE, &few, NULL) == 0);
    rc = pwc_team_dup(r->world, NULL, team);
    MUST(r, prlimit(daemon, RLIMIT_NOFILE, &before, NULL) == 0);
    return rc;
}

/* The last rank's daemon has few descriptors: from none up to as many as a team needs. In between,
 * the daemon opens the team, and cannot send the area to all members. */
static void few_descriptors_script(struct rank *r, uint32_t number, const char *job)
{
    enum { FIRST = 3, LAST = 200, ALL = RANKS * (RANKS - 1) / 2 };
    uint64_t fine, all = 0;
    struct pwc_status status;

    attach(r, number, job);
    MUST(r, sum_over(r, r->world) == ALL); /* all are attached, so nobody needs descriptors yet */
    for (rlim_t limit = FIRST; all < RANKS; limit++) {
        pwc_team *team;
        int rc;

        MUST(r, limit < LAST);
        rc = dup_within(r, limit, &team);
        MUST(r, rc == 0 || rc == -EMFILE || rc == -ENOSPC);
        fine = rc == 0;
        MUST(r, pwc_team_allreduce(r->world, &fine, &all, 1, PWC_U64, PWC_ADD,
                                   pwc_cid_request(r->request), 0) == 0);
        MUST(r, pwc_request_wait(r->request, &status, WAIT_MS) == 1 && status.status == 0);
        if (rc < 0)
            continue;
        MUST(r, sum_over(r, team) == (all < RANKS ? -EHOSTDOWN : ALL));
        MUST(r, pwc_team_free(team) == 0);
    }
    MUST(r, pwc_team_free(r->world) == 0);
    MUST(r, pwc_finalize(r->client) == 0);
}

static void a_daemon_with_few_descriptors(void)
{
    pid_t pids[RANKS];

    start_ranks(pids, "few-descriptors", few_descriptors_script);
    expect_ends(pids);
}

/* Rank 0 calls before the others, gives up, and makes no call any more, so that it does not read
 * what its daemon answers. Guards that the team which the others then get breaks. */
static void gave_up_script(struct rank *r, uint32_t number, const char *job)
{
    enum { SHORT_MS = 2000 };
    pwc_team *team;

    /* The start of the processes is not to count among the time that rank 0 has. */
    atomic_fetch_add(&shared->entered, 1);
    while (atomic_load(&shared->entered) < RANKS)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    attach_within(r, number, job, number == 0 ? SHORT_MS : 0);
    if (number == 0) {
        MUST(r, pwc_team_dup(r->world, NULL, &team) == -ETIMEDOUT);
        reach(r, 1);
        while (!atomic_load(&shared->stop))
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    } else {
        while (atomic_load(&shared->reached[0]) < 1)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        MUST(r, pwc_team_dup(r->world, NULL, &team) == 0);
        MUST(r, sum_over(r, team) == -EHOSTDOWN);
        MUST(r, pwc_team_free(team) == 0);
        reach(r, 1);
    }
    MUST(r, sum_over(r, r->world) == RANKS * (RANKS - 1) / 2);
    MUST(r, pwc_team_dup(r->world, NULL, &team) == 0);
    MUST(r, sum_over(r, team) == RANKS * (RANKS - 1) / 2);
    MUST(r, pwc_team_free(team) == 0);
    MUST(r, pwc_team_free(r->world) == 0);
    MUST(r, pwc_finalize(r->client) == 0);
}

static void a_member_that_gave_up(void)
{
    pid_t pids[RANKS];

    start_ranks(pids, "gave-up", gave_up_script);
    CU_ASSERT_TRUE(all_reach(0, RANKS, 1));
    atomic_store(&shared->stop, true);
    expect_ends(pids);
}

/* ---- deaths ---------------------------------------------------------------------------------- */

/* The last rank is killed before it takes part in the next call for a team (`forming`), or in the
 * next collective. */
static void survive(struct rank *r, bool forming)
{
    pwc_team *left, *next;

    reach(r, 1);
    if (r->number == RANKS - 1)
        for (;;)
            pause();
    if (forming)
        MUST(r, pwc_team_split(r->world, 0, 0, NULL, &next) == -EHOSTDOWN);
    else
        MUST(r, sum_over(r, r->world) == -EHOSTDOWN);
    MUST(r, pwc_team_split(r->world, 0, 0, NULL, &next) == -EHOSTDOWN);
    MUST(r, pwc_team_shrink(r->world, &left) == 0);
    MUST(r, pwc_team_size(left) == RANKS - 1 && pwc_team_rank(left) == r->number);
    MUST(r, sum_over(r, left) == (RANKS - 1) * (RANKS - 2) / 2);
    MUST(r, pwc_team_free(left) == 0);
    MUST(r, pwc_team_free(r->world) == 0);
    MUST(r, pwc_finalize(r->client) == 0);
}

static void forming_script(struct rank *r, uint32_t number, const char *job)
{
    attach(r, number, job);
    survive(r, true);
}

static void working_script(struct rank *r, uint32_t number, const char *job)
{
    attach(r, number, job);
    survive(r, false);
}

static void a_death(const char *job,
                    void (*script)(struct rank *r, uint32_t number, const char *job))
{
    pid_t pids[RANKS];

    start_ranks(pids, job, script);
    CU_ASSERT_TRUE(all_reach(0, RANKS, 1));
    kill_rank(pids, RANKS - 1);
    expect_ends(pids);
}

static void a_death_while_a_team_forms(void)
{
    a_death("forming", forming_script);
}

static void a_death_in_a_collective(void)
{
    a_death("working", working_script);
}

/* ---- daemons that are restarted -------------------------------------------------------------- */

/* Teams are formed, used and freed, one after another. */
static void churn_script(struct rank *r, uint32_t number, const char *job)
{
    attach(r, number, job);
    for (uint32_t round = 0;; round++) {
        int64_t stops = 0, stop = number == 0 && atomic_load(&shared->stop);
        struct pwc_status status;
        pwc_team *team;

        alarm(LIMIT_S);
        MUST(r, pwc_team_split(r->world, (int)((number + round) % 3) - 1, (int)number, NULL,
                               &team) == 0);
        MUST(r, (team == NULL) == ((number + round) % 3 == 0));
        MUST(r, !team || (pwc_team_size(team) == 2 && sum_over(r, team) >= 0));
        MUST(r, !team || pwc_team_free(team) == 0);
        MUST(r, pwc_team_allreduce(r->world, &stop, &stops, 1, PWC_I64, PWC_ADD,
                                   pwc_cid_request(r->request), 0) == 0);
        MUST(r, pwc_request_wait(r->request, &status, WAIT_MS) == 1 && status.status == 0);
        reach(r, round + 1);
        if (stops > 0)
            break;
    }
    MUST(r, pwc_team_free(r->world) == 0);
    MUST(r, pwc_finalize(r->client) == 0);
}

static void daemons_started_anew(void)
{
    pid_t pids[RANKS], killed[CLUSTER_NODES_MAX] = {0};

    start_ranks(pids, "churn", churn_script);
    for (unsigned i = 0; i < kills; i++) {
        unsigned node = i % nodes;
        pid_t daemon;

        CU_ASSERT_TRUE_FATAL(all_reach(0, RANKS, atomic_load(&shared->reached[0]) + 3));
        while ((daemon = cluster_kept(&cluster, node)) == 0 || daemon == killed[node])
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        killed[node] = daemon;
        kill(daemon, SIGKILL);
    }
    CU_ASSERT_TRUE(all_reach(0, RANKS, atomic_load(&shared->reached[0]) + 3));
    atomic_store(&shared->stop, true);
    expect_ends(pids);
}

/* Rank 0 has freed a broken team when its daemon is restarted: it stays no member, so that the
 * others shrink the team, and its quota is not charged again. */
static void left_script(struct rank *r, uint32_t number, const char *job)
{
    pwc_team *team, *left, *more[QUOTA];
    struct pwc_status status;

    attach(r, number, job);
    MUST(r, pwc_team_dup(r->world, NULL, &team) == 0);
    if (number == 0) {
        int rc = pwc_team_barrier(team, pwc_cid_request(r->request), 0);

        if (rc == 0)
            rc = pwc_request_wait(r->request, &status, WAIT_MS) == 1 ? status.status : -ETIMEDOUT;
        MUST(r, rc == -EBADMSG);
        MUST(r, pwc_team_free(team) == 0);
    } else {
        MUST(r, sum_over(r, team) == -EBADMSG);
    }
    reach(r, 1);
    while (!atomic_load(&shared->stop))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (number > 0) {
        MUST(r, pwc_team_shrink(team, &left) == 0);
        MUST(r, pwc_team_size(left) == RANKS - 1 && pwc_team_rank(left) == number - 1);
        MUST(r, sum_over(r, left) == RANKS * (RANKS - 1) / 2);
        MUST(r, pwc_team_free(left) == 0);
        MUST(r, pwc_team_free(team) == 0);
    }
    for (int i = 1; i < QUOTA; i++)
        MUST(r, pwc_team_dup(r->world, NULL, &more[i]) == 0);
    for (int i = 1; i < QUOTA; i++)
        MUST(r, pwc_team_free(more[i]) == 0);
    MUST(r, pwc_team_free(r->world) == 0);
    MUST(r, pwc_finalize(r->client) == 0);
}

static void a_daemon_started_anew_after_a_free(void)
{
    pid_t pids[RANKS], daemon = cluster_kept(&cluster, 0);

    start_ranks(pids, "left", left_script);
    CU_ASSERT_TRUE(all_reach(0, RANKS, 1));
    kill(daemon, SIGKILL);
    CU_ASSERT_NOT_EQUAL(cluster_next(&cluster, 0, daemon), 0);
    atomic_store(&shared->stop, true);
    expect_ends(pids);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"shapes", shapes},
                           {"at the quota", at_the_quota},
                           {"a team that one node cannot open", a_team_that_one_node_cannot_open},
                           {"a member without descriptors", a_member_without_descriptors},
                           {"a daemon with few descriptors", a_daemon_with_few_descriptors},
                           {"a member that gave up", a_member_that_gave_up},
                           {"a death while a team forms", a_death_while_a_team_forms},
                           {"a death in a collective", a_death_in_a_collective},
                           CU_TEST_INFO_NULL,
                           CU_TEST_INFO_NULL,
                           CU_TEST_INFO_NULL};
    const char *more[MORE_MAX] = {"--client-teams", STR(QUOTA), "--client-memory", STR(MEMORY)};
    int count = 4;

    if (argc < 3)
        return 2;
    nodes = (unsigned)strtoul(argv[2], NULL, 10);
    kills = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    if (kills > 0) {
        tests[8] = (CU_TestInfo){"daemons started anew", daemons_started_anew};
        tests[9] =
            (CU_TestInfo){"a daemon started anew after a free", a_daemon_started_anew_after_a_free};
        more[count++] = "--keep";
        more[count++] = "--peer-deadline-ms";
        more[count++] = "20000";
    }
    for (int i = 4; i < argc && count < MORE_MAX - 1; i++)
        more[count++] = argv[i];
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    options = (struct cluster_options){
        .pwcd = argv[1], .provider = "stream", .more = more, .nodes = nodes};
    if (cluster_open(&cluster, &options) < 0) {
        fprintf(stderr, "%s\n", cluster.failure);
        return 1;
    }
    return cluster_end(&cluster, suite_run("teams", tests));
}
