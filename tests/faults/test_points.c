/*
 * A client dies by SIGKILL at every named fault point (fault.h), in every role, in its own code or
 * in the middle of a daemon's step. The other ranks get one end for each operation, their bytes are
 * right, and the daemons give back all. Then calls fail within the daemon; and daemons die at each
 * step of forming teams and of collectives, and are restarted, which no rank may notice.
 *
 *     test_points PWCD VICTIM [PASSINGS]
 *
 * A first run of each role counts how often each point is passed. Then the victim dies at PASSINGS
 * passings of each point, among them the first and the last. Points that a client passes while it
 * attaches are the same in every role, so they are tested in the first role only.
 *
 * Without PASSINGS the number is two, and the test runs a sample of the table, as large as BUDGET_S
 * seconds allow. The sample follows from the day, or from PWC_SEED; the seed is printed.
 *
 * Needs a build with -Dfaults=true.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/suite.h"
#include "shm_ring/fault.h"
#include "tests/faults/trial.h"
#include "tests/lib/rank.h"

enum {
    BUDGET_S = 13, /* seconds for each of three tables */
    PASSINGS = 2,
    PASSINGS_MAX = 64,
    FAILURES = 6, /* passings at which a call fails */
    ROWS_MAX = FAULT_POINTS * ROLES * PASSINGS_MAX,
};

#define FIRST_OF_DAEMON   FAULT_CLIENT_ACCEPTED
#define FIRST_OF_CALLS    FAULT_SEGMENT_REGISTER
#define FIRST_OF_TEAMS    FAULT_TEAM_CALLED
#define LAST_OF_TEAMS     FAULT_INSTANCE_SHOWN
#define FIRST_OF_HANDLERS FAULT_PROGRAM_TAKEN
#define LAST_OF_HANDLERS  FAULT_PROGRAM_UNLOADED

struct counts {
    uint64_t before[FAULT_POINTS]; /* passings until the victim has bound the others */
    uint64_t all[FAULT_POINTS];
};

/* The role, the fault and its place in one run. */
struct plan {
    enum role role;
    enum fault_point point;
    enum fault_action action; /* 0: only count passings */
    uint64_t at;
    int error;
    bool passes; /* the library tries again, so the run must end with 0 */
};

/* main sets these before the tests run; the processes of a run share the boards. */
static struct {
    struct trial plain, kept; /* `kept` has daemons with a keeper */
    struct trial *trial;      /* one of the two */
    bool whole;
    const char *victim; /* path of the program */
    uint64_t passings, seed;
    struct fault_board *own, *served; /* boards of the victim, and of both daemons */
    int own_fd, served_fd;
    struct counts own_counts[ROLES], served_counts[ROLES];
    unsigned reached[FAULT_POINTS]; /* runs in which the victim died at this point */
    struct plan rows[ROWS_MAX];
    uint32_t row_count;
} t;

/* ---- one run --------------------------------------------------------------------------------- */

static void arm(const struct plan *plan)
{
    struct fault_board *board = plan->point < FIRST_OF_DAEMON ? t.own : t.served;

    memset(t.own, 0, sizeof(*t.own));
    memset(t.served, 0, sizeof(*t.served));
    board->at = plan->at;
    board->point = plan->point;
    board->error = plan->error;
    board->action = plan->action;
}

static void in_victim(void *context)
{
    stage_name_path("PWC_FAULT_BOARD", t.own_fd);
    t.served->victim = getpid();
}

static void note_counts(void *context)
{
    const enum role *role = context;

    memcpy(t.own_counts[*role].before, (const void *)t.own->passed, sizeof(t.own->passed));
    memcpy(t.served_counts[*role].before, (const void *)t.served->passed, sizeof(t.served->passed));
}

/* Makes one run, and stores the victim's exit status in *status. Returns false when a check has
 * failed, after printing it. */
static bool run(const struct plan *plan, int *status)
{
    enum role role = plan->role;
    const struct trial_plan trial = {
        .role = role,
        .may_fail = plan->point >= FIRST_OF_CALLS && plan->action != 0 ? TRIAL_IN_TIME : TRIAL_NONE,
        .context = &role,
        .in_victim = in_victim,
        .bound = plan->action == 0 ? note_counts : NULL,
    };
    bool good;

    arm(plan);
    good = trial_run(t.trial, &trial, status);
    t.served->action = 0;
    return trial_settles(t.trial) && good;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void count(void)
{
    for (enum role role = 0; role < ROLES; role++) {
        const struct plan plan = {.role = role, .point = FAULT_POINTS};
        int status;

        CU_ASSERT(run(&plan, &status));
        CU_ASSERT_EQUAL(status, 0);
        memcpy(t.own_counts[role].all, (const void *)t.own->passed, sizeof(t.own->passed));
        memcpy(t.served_counts[role].all, (const void *)t.served->passed, sizeof(t.served->passed));
    }
}

static void die_at(const struct plan *plan)
{
    bool own = plan->point < FIRST_OF_DAEMON;
    int status = 0;
    bool good = run(plan, &status);
    bool died = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

    /* The victim need not die: the number of sleeps and wake-ups differs from run to run, and so
     * does the number of steps that a daemon takes after the victim's end. */
    good = good && (died || (status == 0 && (!own || t.own->passed[plan->point] < plan->at)));
    t.reached[plan->point] += died || (!own && t.served->done);
    CU_ASSERT(good);
    if (!good)
        fprintf(stderr, "dies at %s, passing %llu, as %s: status %x\n", fault_name(plan->point),
                (unsigned long long)plan->at, player_role(plan->role), (unsigned)status);
}

static void add_row(const struct plan *plan)
{
    if (t.row_count < ROWS_MAX)
        t.rows[t.row_count++] = *plan;
}

static const struct counts *counts_of(enum fault_point point, enum role role)
{
    return point < FIRST_OF_DAEMON ? &t.own_counts[role] : &t.served_counts[role];
}

static void add_deaths(enum fault_point point, enum role role)
{
    const struct counts *counts = counts_of(point, role);
    bool alike = role > 0 && counts_of(point, (enum role)0)->before[point] > 0;
    uint64_t first = alike ? counts->before[point] : 0, number = counts->all[point] - first;
    uint64_t times = number < t.passings ? number : t.passings;
    struct plan plan = {
        .role = role, .point = point, .action = point < FIRST_OF_DAEMON ? FAULT_DIE : FAULT_KILL};

    for (uint64_t i = 0; i < times; i++) {
        plan.at = first + 1 + (times > 1 ? i * (number - 1) / (times - 1) : 0);
        add_row(&plan);
    }
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Shuffles the rows by the seed, so that the rows for which there is time are a random sample. */
static void shuffle_rows(void)
{
    uint64_t state = t.seed;

    for (uint32_t i = t.row_count; i > 1; i--) {
        uint32_t other = (uint32_t)(next_random(&state) % i);
        struct plan row = t.rows[i - 1];

        t.rows[i - 1] = t.rows[other];
        t.rows[other] = row;
    }
}

static void run_rows(void (*one)(const struct plan *plan))
{
    time_t end = time(NULL) + BUDGET_S;
    uint32_t done = 0;

    if (!t.whole)
        shuffle_rows();
    for (; done < t.row_count && (t.whole || time(NULL) < end); done++)
        one(&t.rows[done]);
    CU_ASSERT(done > 0);
    printf("\n    %u of %u rows, seed %llu ", done, t.row_count, (unsigned long long)t.seed);
}

static void die_everywhere(enum fault_point from, enum fault_point to)
{
    t.row_count = 0;
    for (enum fault_point point = from; point < to; point++) {
        uint32_t before = t.row_count;

        CU_ASSERT_PTR_NOT_NULL(fault_name(point));
        for (enum role role = 0; role < ROLES; role++)
            add_deaths(point, role);
        if (t.row_count == before)
            fprintf(stderr, "nobody passes %s\n", fault_name(point));
        CU_ASSERT(t.row_count > before);
    }
    run_rows(die_at);
    for (enum fault_point point = from; t.whole && point < to; point++) {
        if (t.reached[point] == 0)
            fprintf(stderr, "nobody dies at %s\n", fault_name(point));
        CU_ASSERT(t.reached[point] > 0);
    }
}

/* Deaths in the client's own code, while bystanders put to each other. */
static void by_own_hand(void)
{
    struct bystanders others;

    CU_ASSERT_EQUAL_FATAL(bystanders_start(&others, &t.trial->cluster, "bystanders"), 0);
    CU_ASSERT_FATAL(trial_note_quiet(t.trial));
    die_everywhere((enum fault_point)0, FIRST_OF_DAEMON);
    CU_ASSERT(bystanders_go_on(&others));
    CU_ASSERT(bystanders_stop(&others));
    CU_ASSERT_FATAL(trial_note_quiet(t.trial));
}

/* Deaths in the middle of a daemon's step. No bystanders run, so that the counts show when the
 * victim's steps pass each point. */
static void within_a_daemons_step(void)
{
    die_everywhere(FIRST_OF_DAEMON, FIRST_OF_CALLS);
    CU_ASSERT(trial_serves(t.trial));
}

/* ---- calls that fail ------------------------------------------------------------------------- */

static void fail_at(const struct plan *plan)
{
    int status = 0;
    bool good = run(plan, &status) && WIFEXITED(status) && (status == 0 || !plan->passes);

    CU_ASSERT(good);
    if (!good)
        fprintf(stderr, "%s gives %d at passing %llu, %s: status %x\n", fault_name(plan->point),
                plan->error, (unsigned long long)plan->at, player_role(plan->role),
                (unsigned)status);
}

/* Where room is missing the library tries again; every other failure is an error for the caller. No
 * rank waits forever. */
static void failing_calls(void)
{
    static const struct plan calls[] = {
        {ROLE_ORIGIN, FAULT_SEGMENT_REGISTER, FAULT_FAIL, 0, -ENOMEM, false},
        {ROLE_ORIGIN, FAULT_PUT_POST, FAULT_FAIL, 0, -EAGAIN, true},
        {ROLE_LARGE, FAULT_PUT_POST, FAULT_FAIL, 0, -EAGAIN, true},
        {ROLE_LARGE, FAULT_PUT_POST, FAULT_FAIL, 0, -EIO, false},
        {ROLE_OWNER, FAULT_GET_POST, FAULT_FAIL, 0, -EAGAIN, true},
        {ROLE_ORIGIN, FAULT_GET_POST, FAULT_FAIL, 0, -EIO, false},
        {ROLE_ORIGIN, FAULT_RUN_POST, FAULT_FAIL, 0, -EAGAIN, true},
        {ROLE_TARGET, FAULT_RUN_POST, FAULT_FAIL, 0, -EAGAIN, true},
        {ROLE_ORIGIN, FAULT_QUEUE_ROOM, FAULT_FAIL, 0, -EAGAIN, true},
        {ROLE_ORIGIN, FAULT_NOTE_ROOM, FAULT_FAIL, 0, -ENOBUFS, false},
        {ROLE_TARGET, FAULT_NOTE_ROOM, FAULT_FAIL, 0, -ENOBUFS, false},
    };

    t.row_count = 0;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        uint64_t number = t.served_counts[calls[i].role].all[calls[i].point];
        uint64_t times = number < FAILURES ? number : FAILURES;
        struct plan row = calls[i];

        CU_ASSERT(number > 0);
        for (uint64_t n = 0; n < times; n++) {
            row.at = 1 + n * number / times;
            add_row(&row);
        }
    }
    run_rows(fail_at);
    CU_ASSERT(trial_serves(t.trial));
}

/* ---- daemons that die ------------------------------------------------------------------------ */

static void daemon_dies_at(const struct plan *plan)
{
    int status = 0;
    bool good = run(plan, &status) && status == 0;

    CU_ASSERT(good);
    if (!good)
        fprintf(stderr, "a daemon dies at %s, passing %llu: status %x\n", fault_name(plan->point),
                (unsigned long long)plan->at, (unsigned)status);
}

static bool start_on(struct trial *trial, const struct cluster_options *options)
{
    t.trial = trial;
    stage_name_path("PWC_FAULT_BOARD", t.served_fd);
    if (!trial_open(trial, options, t.victim))
        return false;
    unsetenv("PWC_FAULT_BOARD");
    /* Links and teams of engines are made once, so by now all are there. */
    return trial_serves(trial) && trial_note_quiet(trial);
}

/* Daemons die at each of these points, in this role. The victim lives, and may lose nothing: so any
 * error shows that a rank has noticed. */
static void daemons_die(enum role role, enum fault_point from, enum fault_point to)
{
    const struct plan counted = {.role = role, .point = FAULT_POINTS};
    const struct counts *counts = &t.served_counts[role];
    int status;

    CU_ASSERT(run(&counted, &status));
    CU_ASSERT_EQUAL(status, 0);
    memcpy(t.served_counts[role].all, (const void *)t.served->passed, sizeof(t.served->passed));
    t.row_count = 0;
    for (enum fault_point point = from; point <= to; point++) {
        struct plan plan = {.role = role, .point = point, .action = FAULT_DIE};
        uint64_t first = role == ROLE_MEMBER ? counts->before[point] : 0;
        uint64_t number = counts->all[point] - first;
        uint64_t times = number < t.passings ? number : t.passings;

        for (uint64_t i = 0; i < times; i++) {
            plan.at = first + 1 + (times > 1 ? i * (number - 1) / (times - 1) : 0);
            add_row(&plan);
        }
    }
    run_rows(daemon_dies_at);
}

/* ---- a daemon that dies while a neighbour leaves ----------------------------------------------
 */

enum { NEIGHBOURS = 2, NEIGHBOUR_BYTES = 4096, LOST_WITHIN_S = 10 };

/* Attaches one of two neighbours of node 0, and returns when each has bound the other. */
static int meet_neighbour(struct rank *r, const char *job, uint32_t number)
{
    int rc =
        rank_attach(r, t.trial->cluster.nodes[0].socket, job, number, NEIGHBOURS, NEIGHBOUR_BYTES);

    if (rc == 0)
        rc = rank_bind_other(r);
    return rc < 0 ? rc : pwc_barrier(r->ctx);
}

/* The status with which puts to the neighbour end, once one of them fails; 0 if none does. */
static int fails_with(struct rank *r)
{
    time_t end = time(NULL) + LOST_WITHIN_S;
    struct pwc_event event = {0};

    while (event.status == 0 && time(NULL) < end) {
        int rc = pwc_put(r->remote, 0, r->memory, 8, pwc_cid_u64(1), pwc_cid_u64(2), 0);

        if (rc < 0 && rc != -EAGAIN)
            return rc;
        if (pwc_wait(r->ctx, PWC_ANY, PWC_LOCAL, &event, 10) < 0)
            return 0;
    }
    return event.status;
}

/* One of two neighbours dies, and so does the daemon at `point`, in the middle of the neighbour's
 * end. The next daemon finds only one side of their pair. */
static void dies_beside_pair(enum fault_point point)
{
    const struct plan plan = {.point = point, .action = FAULT_DIE, .at = 1};
    char job[40];
    struct rank r;
    pid_t child;

    snprintf(job, sizeof(job), "beside-%d", (int)point);
    memset(t.served, 0, sizeof(*t.served));
    child = fork();
    if (child == 0) {
        struct rank other;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (meet_neighbour(&other, job, 1) == 0)
            pause();
        _exit(1);
    }
    CU_ASSERT_EQUAL_FATAL(meet_neighbour(&r, job, 0), 0);
    arm(&plan);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CU_ASSERT_EQUAL(fails_with(&r), -EHOSTDOWN);
    CU_ASSERT(t.served->passed[point] > 0);
    t.served->action = 0;
    rank_detach(&r);
    CU_ASSERT(trial_settles(t.trial));
}

static void a_neighbour_leaves(void)
{
    dies_beside_pair(FAULT_CLIENT_ENDS);
    dies_beside_pair(FAULT_SESSION_LEFT);
}

/* A daemon cannot map or register the memory of a client that it takes over. The client ends;
 * otherwise each operation with this memory would fail, or never end. */
static void memory_is_not_taken_over(const struct plan *plan)
{
    const struct cluster *cluster = &t.trial->cluster;
    pid_t daemon = cluster_kept(cluster, 0);
    struct pwc_event event;
    struct rank r;

    CU_ASSERT_EQUAL_FATAL(
        rank_attach(&r, cluster->nodes[0].socket, "untaken", 0, 1, NEIGHBOUR_BYTES), 0);
    arm(plan);
    kill(daemon, SIGKILL);
    CU_ASSERT_NOT_EQUAL(cluster_next(cluster, 0, daemon), 0);
    CU_ASSERT_EQUAL(pwc_wait(r.ctx, PWC_ANY, PWC_LOCAL, &event, LOST_WITHIN_S * 1000), -ESHUTDOWN);
    CU_ASSERT(t.served->done);
    t.served->action = 0;
    rank_detach(&r);
    CU_ASSERT(trial_settles(t.trial));
}

static void a_daemon_dies(void)
{
    static const char *const more[] = {"--keep", "--peer-deadline-ms", "20000", NULL};
    const struct cluster_options options = {
        .pwcd = t.trial->cluster.options.pwcd, .provider = "stream", .more = more, .nodes = 2};

    static const struct plan lost[] = {
        {.point = FAULT_SEGMENT_REGISTER, .action = FAULT_FAIL, .at = 1, .error = -ENOMEM},
        {.point = FAULT_MEMORY_MAP, .action = FAULT_FAIL, .at = 1, .error = -ENOMEM}, /* session */
        {.point = FAULT_MEMORY_MAP, .action = FAULT_FAIL, .at = 2, .error = -ENOMEM}, /* segment */
    };

    CU_ASSERT_FATAL(start_on(&t.kept, &options));
    daemons_die(ROLE_HANDLERS, FIRST_OF_HANDLERS, LAST_OF_HANDLERS);
    daemons_die(ROLE_MEMBER, FIRST_OF_TEAMS, LAST_OF_TEAMS);
    a_neighbour_leaves();
    for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++)
        memory_is_not_taken_over(&lost[i]);
    CU_ASSERT(trial_close(&t.kept));
    t.trial = &t.plain;
}

/* ---- the program ----------------------------------------------------------------------------- */

static bool start(const char *pwcd)
{
    const struct cluster_options options = {.pwcd = pwcd, .provider = "tcp;ofi_rxm", .nodes = 2};

    t.own = stage_share(sizeof(*t.own), &t.own_fd);
    t.served = stage_share(sizeof(*t.served), &t.served_fd);
    if (!t.own || !t.served)
        return false;
    setenv("PWC_TEST_LOG", "error", 0);
    return start_on(&t.plain, &options);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"each role is played, and counted", count},
                           {"a client dies by its own hand", by_own_hand},
                           {"a client dies within a daemon's step", within_a_daemons_step},
                           {"calls fail in a daemon", failing_calls},
                           {"a daemon dies, and another one goes on", a_daemon_dies},
                           CU_TEST_INFO_NULL};
    const char *seed = getenv("PWC_SEED");
    int failed = 1;

    signal(SIGPIPE, SIG_IGN);
    if (argc < 3)
        return 2;
    t.whole = argc > 3;
    t.passings = t.whole ? strtoull(argv[3], NULL, 10) : PASSINGS;
    if (t.passings == 0 || t.passings > PASSINGS_MAX)
        return 2;
    t.seed = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL) / 86400;
    t.victim = argv[2];
    if (start(argv[1]))
        failed = suite_run("points", tests);
    if (!trial_close(t.trial))
        failed = 1;
    printf("%u runs\n", t.plain.runs + t.kept.runs);
    return failed;
}
