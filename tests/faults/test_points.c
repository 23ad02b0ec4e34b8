/*
 * Every named fault point (fault.h) in every role of a client that dies there by SIGKILL, by its
 * own hand or in the middle of a step of a daemon: the others get one end for each operation, their
 * bytes are right, and the daemons give all back. Then calls that fail within the daemon.
 *
 *     test_points PWCD VICTIM [whole]
 *
 * A first run of each role counts how often each point is passed; then the victim dies at the first
 * passing and the last, with `whole` also at as many in between as make TIMES_WHOLE. Points of the
 * way in are passed in every role alike: the first role has them.
 *
 * Needs a build with -Dfaults=true.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../control/look.h"
#include "../suite.h"
#include "../system/bystanders.h"
#include "../system/cluster.h"
#include "fault.h"
#include "player.h"

enum {
    TIMES = 2,
    TIMES_WHOLE = 6,
    LIMIT_MS = 20000,
    BYSTANDER_ROUNDS = 12,
};

#define FIRST_OF_DAEMON FAULT_CLIENT_ACCEPTED
#define FIRST_OF_CALLS  FAULT_SEGMENT_REGISTER

struct counts {
    uint64_t before[FAULT_POINTS]; /* the victim has bound the others */
    uint64_t all[FAULT_POINTS];
};

/* Set by main before the tests run; processes see boards and stage. */
static struct {
    struct cluster cluster;
    struct daemon daemons[2];
    struct holdings quiet[2];
    const char *victim;
    unsigned times;
    struct stage *stage;
    struct fault_board *own, *served; /* the victim's, both daemons' */
    int stage_fd, own_fd, served_fd;
    unsigned rows;
    struct counts own_counts[ROLES], served_counts[ROLES];
    unsigned reached[FAULT_POINTS]; /* rows in which the victim died there */
} t;

/* What is to happen in one run. */
struct plan {
    enum role role;
    enum fault_point point;
    enum fault_action action; /* 0: only count */
    uint64_t at;
    int error;
};

struct survivor {
    struct player player;
    pthread_t thread;
    const struct plan *plan;
    const char *job;
    uint32_t number;
    int rc;
};

/* ---- one run --------------------------------------------------------------------------------- */

static struct fault_board *board_of(const struct plan *plan)
{
    return plan->point < FIRST_OF_DAEMON ? t.own : t.served;
}

static void arm(const struct plan *plan)
{
    struct fault_board *board = board_of(plan);

    memset(t.own, 0, sizeof(*t.own));
    memset(t.served, 0, sizeof(*t.served));
    memset(t.stage, 0, sizeof(*t.stage));
    board->at = plan->at;
    board->point = plan->point;
    board->error = plan->error;
    board->action = plan->action;
}

static void disarm(void)
{
    t.served->action = 0;
}

static pid_t start_victim(const struct plan *plan, const char *job)
{
    char role[8];
    pid_t pid;

    snprintf(role, sizeof(role), "%d", (int)plan->role);
    pid = fork();
    if (pid == 0) {
        stage_name("PWC_FAULT_FD", t.own_fd);
        t.served->victim = getpid();
        execl(t.victim, t.victim, t.cluster.nodes[0].socket, job, role, NULL);
        _exit(127);
    }
    return pid;
}

static void *survive(void *argument)
{
    struct survivor *s = argument;

    s->rc = player_run(&s->player, t.stage, s->plan->role, s->number,
                       t.cluster.nodes[s->number == FAR ? 1 : 0].socket, s->job);
    return NULL;
}

/* Its status, or -1 when it had to be killed. Notes where the counts stand when its part begins. */
static int await_victim(pid_t pid, uint64_t *own_before, uint64_t *served_before)
{
    struct pollfd exited = {.fd = pidfd_open(pid, 0), .events = POLLIN};
    bool noted = false;
    int status = -1, left = LIMIT_MS;

    while (poll(&exited, 1, 1) == 0 && left-- > 0) {
        if (noted || !t.stage->begun)
            continue;
        noted = true;
        if (own_before) {
            memcpy(own_before, (const void *)t.own->passed, sizeof(t.own->passed));
            memcpy(served_before, (const void *)t.served->passed, sizeof(t.served->passed));
        }
    }
    if (left <= 0)
        kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    close(exited.fd);
    return left <= 0 ? -1 : status;
}

static bool check_survivors(struct survivor *survivors, bool may_fail)
{
    bool good = true;

    for (int i = 0; i < 2; i++) {
        pthread_join(survivors[i].thread, NULL);
        if (survivors[i].rc == 0 || (may_fail && survivors[i].rc != -ETIMEDOUT))
            continue;
        fprintf(stderr, "rank %u: %s\n", survivors[i].number, survivors[i].player.why);
        good = false;
    }
    return good;
}

static bool daemons_return(void)
{
    bool good = cluster_runs(&t.cluster);

    if (!good)
        fprintf(stderr, "%s\n", t.cluster.failure);
    for (int i = 0; good && i < 2; i++)
        good = look_returns_to(&t.daemons[i], &t.quiet[i]);
    return good;
}

/* The victim's status in *status. False: something is wrong, and has been said. */
static bool run(const struct plan *plan, struct counts *own, struct counts *served, int *status)
{
    struct survivor survivors[2] = {{.number = FAR}, {.number = NEAR}};
    bool may_fail = plan->point >= FIRST_OF_CALLS && plan->action != 0;
    char job[32];
    bool good;
    pid_t pid;

    snprintf(job, sizeof(job), "points-%u", t.rows++);
    arm(plan);
    pid = start_victim(plan, job);
    for (int i = 0; i < 2; i++) {
        survivors[i].plan = plan;
        survivors[i].job = job;
        pthread_create(&survivors[i].thread, NULL, survive, &survivors[i]);
    }
    *status = await_victim(pid, own ? own->before : NULL, own ? served->before : NULL);
    t.stage->over = 1;
    good = check_survivors(survivors, may_fail);
    disarm();
    if (*status == -1)
        fprintf(stderr, "the victim does not end\n");
    if (own) {
        memcpy(own->all, (const void *)t.own->passed, sizeof(own->all));
        memcpy(served->all, (const void *)t.served->passed, sizeof(served->all));
    }
    return daemons_return() && good && *status != -1;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void count(void)
{
    for (enum role role = 0; role < ROLES; role++) {
        const struct plan plan = {.role = role, .point = FAULT_POINTS};
        int status;

        CU_ASSERT(run(&plan, &t.own_counts[role], &t.served_counts[role], &status));
        CU_ASSERT_EQUAL(status, 0);
    }
}

static void die_at(const struct plan *plan)
{
    bool own = plan->point < FIRST_OF_DAEMON;
    int status = 0;
    bool good = run(plan, NULL, NULL, &status);
    bool died = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

    /* How often somebody sleeps, and is woken, differs from run to run; and of a daemon's steps as
     * many are taken for others, behind the victim's end. */
    good = good && (died || (status == 0 && (!own || t.own->passed[plan->point] < plan->at)));
    t.reached[plan->point] += died || (!own && t.served->done);
    CU_ASSERT(good);
    if (!good)
        fprintf(stderr, "dies at %s, passing %llu, as %s: status %x\n", fault_name(plan->point),
                (unsigned long long)plan->at, player_role(plan->role), (unsigned)status);
}

static void die_in_role(enum fault_point point, enum role role)
{
    const struct counts *counts =
        point < FIRST_OF_DAEMON ? &t.own_counts[role] : &t.served_counts[role];
    uint64_t first = role == 0 ? 0 : counts->before[point], number = counts->all[point] - first;
    uint64_t times = number < t.times ? number : t.times;
    struct plan plan = {
        .role = role, .point = point, .action = point < FIRST_OF_DAEMON ? FAULT_DIE : FAULT_KILL};

    for (uint64_t i = 0; i < times; i++) {
        plan.at = first + 1 + (times > 1 ? i * (number - 1) / (times - 1) : 0);
        die_at(&plan);
    }
}

static void die_everywhere(enum fault_point from, enum fault_point to)
{
    for (enum fault_point point = from; point < to; point++) {
        CU_ASSERT_PTR_NOT_NULL(fault_name(point));
        for (enum role role = 0; role < ROLES; role++)
            die_in_role(point, role);
        if (t.reached[point] == 0)
            fprintf(stderr, "nobody dies at %s\n", fault_name(point));
        CU_ASSERT(t.reached[point] > 0);
    }
}

/* While others put to each other. */
static void by_own_hand(void)
{
    struct bystanders others;

    CU_ASSERT_EQUAL_FATAL(bystanders_start(&others, &t.cluster), 0);
    for (int i = 0; i < 2; i++)
        CU_ASSERT_FATAL(look_holdings(&t.daemons[i], &t.quiet[i]));
    die_everywhere((enum fault_point)0, FIRST_OF_DAEMON);
    CU_ASSERT(bystanders_go_on(&others, BYSTANDER_ROUNDS));
    CU_ASSERT(bystanders_stop(&others));
    for (int i = 0; i < 2; i++)
        CU_ASSERT_FATAL(look_holdings(&t.daemons[i], &t.quiet[i]));
}

static bool others_are_served(void)
{
    struct bystanders others;

    if (bystanders_start(&others, &t.cluster) < 0)
        return false;
    bystanders_go_on(&others, BYSTANDER_ROUNDS);
    return bystanders_stop(&others);
}

/* Alone, so that the counts tell when. */
static void within_a_daemons_step(void)
{
    die_everywhere(FIRST_OF_DAEMON, FIRST_OF_CALLS);
    CU_ASSERT(others_are_served());
}

/* ---- calls that fail ------------------------------------------------------------------------- */

/* What is for want of room passes, all else is an error of who asked; nobody waits for ever. */
static void failing_calls(void)
{
    static const struct {
        enum fault_point point;
        enum role role;
        int error;
        bool passes;
    } rows[] = {
        {FAULT_SEGMENT_REGISTER, ROLE_ORIGIN, -ENOMEM, false},
        {FAULT_PUT_POST, ROLE_ORIGIN, -EAGAIN, true},
        {FAULT_PUT_POST, ROLE_LARGE, -EAGAIN, true},
        {FAULT_PUT_POST, ROLE_LARGE, -EIO, false},
        {FAULT_GET_POST, ROLE_OWNER, -EAGAIN, true},
        {FAULT_GET_POST, ROLE_ORIGIN, -EIO, false},
        {FAULT_RUN_POST, ROLE_ORIGIN, -EAGAIN, true},
        {FAULT_RUN_POST, ROLE_TARGET, -EAGAIN, true},
        {FAULT_QUEUE_ROOM, ROLE_ORIGIN, -EAGAIN, true},
        {FAULT_NOTE_ROOM, ROLE_ORIGIN, -ENOBUFS, false},
        {FAULT_NOTE_ROOM, ROLE_TARGET, -ENOBUFS, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t number = t.served_counts[rows[i].role].all[rows[i].point];
        uint64_t times = number < TIMES_WHOLE ? number : TIMES_WHOLE;

        CU_ASSERT(number > 0);
        for (uint64_t n = 0; n < times; n++) {
            const struct plan plan = {.role = rows[i].role,
                                      .point = rows[i].point,
                                      .action = FAULT_FAIL,
                                      .error = rows[i].error,
                                      .at = 1 + n * number / times};
            int status;
            bool good = run(&plan, NULL, NULL, &status) && WIFEXITED(status) &&
                        (status == 0 || !rows[i].passes);

            CU_ASSERT(good);
            if (!good)
                fprintf(stderr, "%s gives %d at passing %llu, %s: status %x\n",
                        fault_name(plan.point), plan.error, (unsigned long long)plan.at,
                        player_role(plan.role), (unsigned)status);
        }
    }
    CU_ASSERT(others_are_served());
}

/* ---- the program ----------------------------------------------------------------------------- */

static bool start(const char *pwcd)
{
    const struct cluster_options options = {.pwcd = pwcd, .provider = "tcp;ofi_rxm", .nodes = 2};
    const char *level = getenv("PWC_TEST_LOG");

    t.stage = stage_share(sizeof(*t.stage), &t.stage_fd);
    t.own = stage_share(sizeof(*t.own), &t.own_fd);
    t.served = stage_share(sizeof(*t.served), &t.served_fd);
    if (!t.stage || !t.own || !t.served)
        return false;
    if (!level)
        setenv("PWC_TEST_LOG", "error", 1);
    stage_name(STAGE_FD, t.stage_fd);
    stage_name("PWC_FAULT_FD", t.served_fd);
    if (cluster_open(&t.cluster, &options) < 0) {
        fprintf(stderr, "%s\n", t.cluster.failure);
        return false;
    }
    unsetenv("PWC_FAULT_FD");
    if (!others_are_served()) /* and so what is made once is made */
        return false;
    for (int i = 0; i < 2; i++) {
        t.daemons[i].pid = t.cluster.nodes[i].pid;
        memcpy(t.daemons[i].socket, t.cluster.nodes[i].socket, sizeof(t.daemons[i].socket));
        if (!look_holdings(&t.daemons[i], &t.quiet[i]))
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"each role is played, and counted", count},
                           {"a client dies by its own hand", by_own_hand},
                           {"a client dies within a daemon's step", within_a_daemons_step},
                           {"calls fail in a daemon", failing_calls},
                           CU_TEST_INFO_NULL};
    int failed = 1;

    signal(SIGPIPE, SIG_IGN);
    if (argc < 3)
        return 2;
    t.victim = argv[2];
    t.times = argc > 3 && strcmp(argv[3], "whole") == 0 ? TIMES_WHOLE : TIMES;
    if (start(argv[1]))
        failed = suite_run("points", tests);
    if (cluster_close(&t.cluster) != 0)
        failed = 1;
    printf("%u runs\n", t.rows);
    return failed;
}
