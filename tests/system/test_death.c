/*
 * Clients and daemons that die by SIGKILL in the middle of large transfers: each operation of the
 * other side ends once, the daemons work on and give everything back, and other clients notice
 * nothing.
 *
 *     test_death PWCD PWCCTL PROVIDER [--KEY VALUE]...    keys of the daemons
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/suite.h"
#include "tests/lib/bystanders.h"
#include "tests/lib/raw/look.h"
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"

#define LARGE     (32u << 20)
#define TRANSFERS 6u
#define QUIET_MS  50
#define VICTIM    0u /* rank 0, on node 0 */
#define SURVIVOR  1u

/* Set by main before the tests run. */
static struct cluster cluster;
static bool survives_daemons; /* the provider survives the death of a daemon */
/* Belongs to no single test, because a failed test leaves the bystanders running. */
static struct bystanders others;

static const struct death_row {
    const char *name;
    const char *job;
    bool victim_begins; /* the victim makes the transfers; else the survivor does */
    bool get;
} rows[] = {
    {"the origin of a put dies", "put-origin", true, false},
    {"the target of a put dies", "put-target", false, false},
    {"the origin of a get dies", "get-origin", true, true},
    {"the owner of what is got dies", "get-owner", false, true},
};

/* Whether the transfers' bytes arrive in the victim's memory. */
static bool lands_at_victim(const struct death_row *row)
{
    return row->victim_begins == row->get;
}

static int begin(struct rank *r, const struct death_row *row, uint64_t number)
{
    return row->get ? pwc_get(r->remote, 0, r->memory, LARGE, pwc_cid_u64(number),
                              pwc_cid_u64(number), 0)
                    : pwc_put(r->remote, 0, r->memory, LARGE, pwc_cid_u64(number),
                              pwc_cid_u64(number), 0);
}

static int begin_all(struct rank *r, const struct death_row *row)
{
    int rc = 0;

    for (uint64_t i = 0; rc == 0 && i < TRANSFERS; i++)
        rc = begin(r, row, i);
    return rc;
}

/* Waits until the first bytes of a transfer have arrived. The wait polls, because no bell rings for
 * bytes. The wait takes no events: on a busy machine the transfer's event can be there first. */
static bool await_bytes(const struct rank *r)
{
    const volatile uint8_t *first = r->memory;
    time_t end = time(NULL) + RANK_WAIT_MS / 1000;

    while (*first != 0xff && time(NULL) < end)
        sched_yield();
    return *first == 0xff;
}

/* Attaches a rank. Sources are filled with 0xff, destinations with 0. */
static int attach(struct rank *r, uint32_t number, const struct death_row *row)
{
    bool lands_here = (number == VICTIM) == lands_at_victim(row);
    int rc = rank_attach(r, cluster.nodes[number].socket, row->job, number, 2, LARGE);

    if (rc == 0 && !lands_here)
        memset(r->memory, 0xff, LARGE);
    if (rc == 0)
        rc = rank_bind_other(r);
    return rc < 0 ? rc : pwc_barrier(r->ctx);
}

/* The victim, in a process of its own: kills itself when the first bytes arrive here, or waits to
 * be killed. */
static void be_victim(const struct death_row *row)
{
    struct rank r;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (attach(&r, VICTIM, row) == 0 && (!row->victim_begins || begin_all(&r, row) == 0) &&
        (!lands_at_victim(row) || await_bytes(&r))) {
        if (lands_at_victim(row))
            raise(SIGKILL);
        alarm(RANK_WAIT_MS / 1000);
        pause();
    }
    _exit(1);
}

static bool is_loss(int status)
{
    return status == -EHOSTDOWN || status == -EKEYREJECTED || status == -ECONNABORTED;
}

/* Checks that each transfer of the survivor ends once, in order. After each success another
 * transfer is begun, until one reports the loss: from then on all that are under way must fail. */
static void check_ends(struct rank *r, const struct death_row *row)
{
    uint64_t begun = TRANSFERS;
    bool lost = false;

    for (uint64_t i = 0; i < begun; i++) {
        struct pwc_event event = {0};

        CU_ASSERT_EQUAL_FATAL(pwc_wait(r->ctx, PWC_ANY, PWC_LOCAL, &event, RANK_WAIT_MS), 1);
        CU_ASSERT_EQUAL(event.id, i);
        CU_ASSERT(lost ? is_loss(event.status) : event.status == 0 || is_loss(event.status));
        lost = event.status != 0;
        if (!lost)
            CU_ASSERT_EQUAL_FATAL(begin(r, row, begun++), 0);
    }
}

static int end_of_put(struct rank *r, uint64_t id, unsigned flags)
{
    struct pwc_event event = {0};

    CU_ASSERT_EQUAL_FATAL(
        pwc_put(r->remote, 0, r->memory, 8, pwc_cid_u64(id), pwc_cid_u64(id), flags), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_wait(r->ctx, PWC_ANY, PWC_LOCAL, &event, RANK_WAIT_MS), 1);
    CU_ASSERT_EQUAL(event.id, id);
    return event.status;
}

/* Checks that operations towards the dead rank fail, once its daemon has noticed the death, also
 * with PWC_NO_LCE. */
static void check_dead(struct rank *r)
{
    uint64_t id = 1000;
    int status = 0;

    for (time_t end = time(NULL) + RANK_WAIT_MS / 1000; status == 0 && time(NULL) < end; id++)
        status = end_of_put(r, id, 0);
    CU_ASSERT_EQUAL_FATAL(status, -EHOSTDOWN);
    CU_ASSERT_EQUAL(end_of_put(r, id, PWC_NO_LCE), -EHOSTDOWN);
}

/* Checks the events that are left when the victim's daemon has given back all: only transfers that
 * the victim had begun, in order, with all their data. */
static void check_rest(struct rank *r, const struct death_row *row)
{
    struct pwc_event event;
    uint64_t count = 0;

    while (pwc_wait(r->ctx, PWC_ANY, 0, &event, QUIET_MS) == 1) {
        CU_ASSERT(row->victim_begins && count < TRANSFERS);
        CU_ASSERT_EQUAL(event.kind, PWC_REMOTE);
        CU_ASSERT_EQUAL(event.id, count);
        CU_ASSERT_EQUAL(event.status, 0);
        CU_ASSERT(r->memory[0] == 0xff && memcmp(r->memory, r->memory + 1, LARGE - 1) == 0);
        count++;
    }
}

static void survive(struct rank *r, pid_t victim, const struct death_row *row)
{
    int status = 0;

    CU_ASSERT_EQUAL_FATAL(attach(r, SURVIVOR, row), 0);
    if (!row->victim_begins)
        CU_ASSERT_EQUAL_FATAL(begin_all(r, row), 0);
    if (!lands_at_victim(row)) {
        CU_ASSERT_FATAL(await_bytes(r));
        kill(victim, SIGKILL);
    }
    CU_ASSERT_EQUAL_FATAL(waitpid(victim, &status, 0), victim);
    CU_ASSERT_FATAL(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    if (!row->victim_begins)
        check_ends(r, row);
    check_dead(r);
}

/* Engines link when they first need each other, and stay linked. This links the engines of all rows
 * in advance, so that no row counts a link as something that was not given back. */
static void link_engines(void)
{
    struct rank ends[2];
    struct pwc_event event;

    for (uint32_t i = 0; i < 2; i++)
        CU_ASSERT_EQUAL_FATAL(rank_attach(&ends[i], cluster.nodes[i].socket, "link", i, 2, LARGE),
                              0);
    for (uint32_t i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL_FATAL(rank_bind(&ends[i], &ends[1 - i]), 0);
        CU_ASSERT_EQUAL(
            pwc_put(ends[i].remote, 0, ends[i].memory, LARGE, pwc_cid_u64(1), pwc_cid_u64(2), 0),
            0);
        CU_ASSERT_EQUAL(pwc_wait(ends[i].ctx, PWC_ANY, PWC_LOCAL, &event, RANK_WAIT_MS), 1);
    }
    for (uint32_t i = 0; i < 2; i++)
        rank_detach(&ends[i]);
}

static void test_client_dies(void)
{
    struct holdings before[2];

    CU_ASSERT_EQUAL_FATAL(bystanders_start(&others, &cluster, "bystanders"), 0);
    CU_ASSERT_FATAL(bystanders_go_on(&others));
    link_engines();
    for (int n = 0; n < 2; n++)
        CU_ASSERT_TRUE_FATAL(look_node_holdings(&cluster.nodes[n], &before[n]));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rank survivor;
        pid_t victim;

        printf("\n    %s ", rows[i].name);
        fflush(NULL);
        victim = fork();
        if (victim == 0)
            be_victim(&rows[i]);
        survive(&survivor, victim, &rows[i]);
        CU_ASSERT(bystanders_go_on(&others));
        CU_ASSERT(look_node_returns_to(&cluster.nodes[VICTIM], &before[VICTIM]));
        check_rest(&survivor, &rows[i]);
        rank_detach(&survivor);
        for (int n = 0; n < 2; n++)
            CU_ASSERT(look_node_returns_to(&cluster.nodes[n], &before[n]));
        CU_ASSERT_FATAL(cluster_runs(&cluster));
    }
    CU_ASSERT(bystanders_stop(&others));
}

/* The survivor's transfers to the dead node end; transfers on its own node are not affected; the
 * restarted daemon serves as before. */
static void test_daemon_dies(void)
{
    static const struct death_row put = {.job = "daemon"};
    struct rank survivor, victim, neighbour;
    struct pwc_event event;
    int rc;

    CU_ASSERT_EQUAL_FATAL(rank_attach(&survivor, cluster.nodes[0].socket, put.job, 0, 3, LARGE), 0);
    CU_ASSERT_EQUAL_FATAL(rank_attach(&victim, cluster.nodes[1].socket, put.job, 1, 3, LARGE), 0);
    CU_ASSERT_EQUAL_FATAL(rank_attach(&neighbour, cluster.nodes[0].socket, put.job, 2, 3, LARGE),
                          0);
    CU_ASSERT_EQUAL_FATAL(rank_bind(&survivor, &victim), 0);
    CU_ASSERT_EQUAL_FATAL(rank_bind(&neighbour, &survivor), 0);
    memset(survivor.memory, 0xff, LARGE);
    CU_ASSERT_EQUAL_FATAL(begin_all(&survivor, &put), 0);
    CU_ASSERT_FATAL(await_bytes(&victim));
    cluster_kill(&cluster, 1);
    do /* some may have succeeded before */
        rc = pwc_wait(victim.ctx, PWC_ANY, 0, &event, RANK_WAIT_MS);
    while (rc == 1);
    CU_ASSERT_EQUAL(rc, -ESHUTDOWN);
    check_ends(&survivor, &put);

    CU_ASSERT_EQUAL(
        pwc_put(neighbour.remote, 0, neighbour.memory, LARGE, pwc_cid_u64(1), pwc_cid_u64(2), 0),
        0);
    CU_ASSERT_EQUAL(pwc_wait(survivor.ctx, PWC_ANY, PWC_REMOTE, &event, RANK_WAIT_MS), 1);
    CU_ASSERT_EQUAL(event.id, 2);
    CU_ASSERT_EQUAL(pwc_wait(neighbour.ctx, PWC_ANY, PWC_LOCAL, &event, RANK_WAIT_MS), 1);
    CU_ASSERT_EQUAL(event.status, 0);
    rank_detach(&victim);

    CU_ASSERT_EQUAL_FATAL(cluster_restart(&cluster, 1), 0);
    CU_ASSERT_EQUAL_FATAL(bystanders_start(&others, &cluster, "bystanders"), 0);
    CU_ASSERT(bystanders_go_on(&others));
    CU_ASSERT(bystanders_stop(&others));
    rank_detach(&neighbour);
    rank_detach(&survivor);
}

/* Checks that transfers end once each, in order and in time, until the context itself has ended. */
static void check_ends_somehow(struct rank *r)
{
    time_t end = time(NULL) + RANK_WAIT_MS / 2000;
    uint64_t ended = 0;
    int rc = 1;

    while (ended < TRANSFERS && rc == 1) {
        struct pwc_event event = {0};

        rc = pwc_wait(r->ctx, PWC_ANY, PWC_LOCAL, &event, RANK_WAIT_MS);
        CU_ASSERT(rc == 1 || rc == -ESHUTDOWN);
        CU_ASSERT(rc != 1 || (event.id == ended && (event.status == 0 || is_loss(event.status))));
        ended += rc == 1;
    }
    CU_ASSERT(time(NULL) <= end);
}

/*
 * The shm provider does not survive the death of another process during a transfer: the other
 * daemon ends, too. After a restart both serve again.
 */
static void test_daemon_takes_other_along(void)
{
    static const struct death_row put = {.job = "along"};
    struct rank survivor, victim;

    CU_ASSERT_EQUAL_FATAL(rank_attach(&survivor, cluster.nodes[0].socket, put.job, 0, 2, LARGE), 0);
    CU_ASSERT_EQUAL_FATAL(rank_attach(&victim, cluster.nodes[1].socket, put.job, 1, 2, LARGE), 0);
    CU_ASSERT_EQUAL_FATAL(rank_bind(&survivor, &victim), 0);
    memset(survivor.memory, 0xff, LARGE);
    CU_ASSERT_EQUAL_FATAL(begin_all(&survivor, &put), 0);
    CU_ASSERT_FATAL(await_bytes(&victim));
    cluster_kill(&cluster, 1);
    check_ends_somehow(&survivor);
    rank_detach(&victim);
    rank_detach(&survivor);

    cluster_kill(&cluster, 0); /* if it still runs */
    CU_ASSERT_EQUAL_FATAL(cluster_restart(&cluster, 0), 0);
    CU_ASSERT_EQUAL_FATAL(cluster_restart(&cluster, 1), 0);
    CU_ASSERT_EQUAL_FATAL(bystanders_start(&others, &cluster, "bystanders"), 0);
    CU_ASSERT(bystanders_go_on(&others));
    CU_ASSERT(bystanders_stop(&others));
}

static void test_a_daemon_dies(void)
{
    if (others.runs)
        bystanders_stop(&others);
    if (survives_daemons)
        test_daemon_dies();
    else
        test_daemon_takes_other_along();
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"a client dies", test_client_dies},
                           {"a daemon dies", test_a_daemon_dies},
                           CU_TEST_INFO_NULL};
    struct cluster_options options = {.nodes = 2};
    int status = 1;

    if (!cluster_arguments(&options, argc, argv))
        return 2;
    survives_daemons = strcmp(argv[2], "shm") != 0;
    if (cluster_open(&cluster, &options) == 0)
        status = suite_run("death", tests);
    if (others.runs)
        bystanders_stop(&others);
    return cluster_end(&cluster, status);
}
