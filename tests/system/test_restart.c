/*
 * Daemons that are restarted under load, by SIGKILL and by a planned hand-over: every operation
 * ends once, and is seen once, with the right bytes; results of collectives are right; a client
 * that sleeps is woken; and the death of a client meanwhile is noticed.
 *
 *     test_restart PWCD PWCCTL PROVIDER [KILLS [HAND_OVERS [GIB [ARGUMENT...]]]]
 *
 * With GIB (1, 4, ...) only the pauses of hand-overs are measured, with up to GIB of memory.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/suite.h"
#include "tests/lib/raw/look.h"
#include "tests/lib/cluster.h"
#include "tests/lib/process.h"
#include "tests/system/lib/ledger.h"
#include "tests/lib/rank.h"
#include "tests/system/lib/requester.h"
#include "tests/system/lib/summers.h"
#include "proto/clock.h"

#define STEP_OPS 200u /* operations that must end between two kills */
#define LIMIT_S  30
#define MEASURED 10u
#define MORE_MAX 12u /* most arguments of the daemons */

/* Set by main before the tests run. */
static struct cluster cluster;
static const char *pwcctl;
static char configuration[] = "/tmp/pwc-restart.XXXXXX";
static unsigned kills = 10, hand_overs = 4, registered;
static bool directly = true; /* neighbours use the direct path */

static void nap_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Waits until this many further operations have ended. */
static bool goes_on(struct ledger *l, uint64_t more)
{
    uint64_t until = ledger_ended(l) + more;
    time_t end = time(NULL) + LIMIT_S;

    while (ledger_ended(l) < until && !l->failed && time(NULL) < end)
        nap_ms(1);
    return ledger_ended(l) >= until && !l->failed;
}

/* Waits for a node's next daemon, other than `than`, and returns it. */
static pid_t next_daemon(unsigned node, pid_t than)
{
    time_t end = time(NULL) + LIMIT_S;
    pid_t pid;

    while (((pid = cluster_kept(&cluster, node)) == 0 || pid == than) && time(NULL) < end)
        nap_ms(1);
    return pid;
}

static void start_both(struct ledger *between, struct ledger *within, const char *job)
{
    const char *const apart[] = {cluster.nodes[0].socket, cluster.nodes[1].socket};
    const char *const together[] = {cluster.nodes[0].socket, cluster.nodes[0].socket};
    char name[40];

    snprintf(name, sizeof(name), "%s-between", job);
    CU_ASSERT_EQUAL_FATAL(ledger_start(between, name, apart), 0);
    snprintf(name, sizeof(name), "%s-within", job);
    CU_ASSERT_EQUAL_FATAL(ledger_start(within, name, together), 0);
}

static void test_killed(void)
{
    static struct ledger between, within;
    static struct requester requester;
    struct holdings before[2];

    for (int n = 0; n < 2; n++)
        CU_ASSERT_TRUE_FATAL(look_node_holdings(&cluster.nodes[n], &before[n]));
    CU_ASSERT_EQUAL_FATAL(requester_start(&requester, cluster.nodes[0].socket, "asks", true), 0);
    start_both(&between, &within, "killed");
    for (unsigned i = 0; i < kills && goes_on(&between, STEP_OPS) && goes_on(&within, 1); i++) {
        unsigned node = i % 3 == 2; /* more often the node with three ranks */
        pid_t pid = cluster_kept(&cluster, node);

        nap_ms(rand() % 20);
        if (pid > 0)
            kill(pid, SIGKILL);
        pid = next_daemon(node, pid);
        CU_ASSERT_NOT_EQUAL(pid, 0);
        if (i % 4 != 3)
            continue;
        nap_ms(rand() % 300); /* kill the next one, too, while it takes over */
        kill(pid, SIGKILL);
        CU_ASSERT_NOT_EQUAL(next_daemon(node, pid), 0);
    }
    CU_ASSERT(goes_on(&between, STEP_OPS));
    CU_ASSERT(goes_on(&within, STEP_OPS));
    CU_ASSERT(ledger_stop(&between));
    CU_ASSERT(ledger_stop(&within));
    CU_ASSERT(requester_stop(&requester));
    printf("\n    %llu operations, of %llu nobody knows; %llu rounds of requests, of %llu ",
           (unsigned long long)(ledger_ended(&between) + ledger_ended(&within)),
           (unsigned long long)(ledger_aborted(&between) + ledger_aborted(&within)),
           (unsigned long long)requester.rounds, (unsigned long long)requester.aborted);
    for (int n = 0; n < 2; n++)
        CU_ASSERT(look_node_returns_to(&cluster.nodes[n], &before[n]));
    CU_ASSERT(cluster_runs(&cluster));
}

/* Registers memory that nobody uses, to measure hand-overs with it. */
static void register_much(struct rank *r, size_t bytes)
{
    CU_ASSERT_EQUAL_FATAL(
        rank_attach(r, cluster.nodes[0].socket, "much", 0, 1, bytes > 0 ? bytes : 4096), 0);
    for (size_t at = 0; at < bytes; at += 4096)
        r->memory[at] = 1;
}

static void hand_over(unsigned node, struct ledger *between)
{
    pid_t pid = cluster_kept(&cluster, node);
    struct holdings after;

    CU_ASSERT(goes_on(between, STEP_OPS));
    (void)ledger_gap_ns(between);
    CU_ASSERT_EQUAL(kill(cluster.nodes[node].pid, SIGUSR2), 0);
    /* For a moment the keeper has both as children: wait until the old one has ended. */
    for (time_t end = time(NULL) + LIMIT_S; kill(pid, 0) == 0 && time(NULL) < end;)
        nap_ms(1);
    CU_ASSERT_TRUE(look_node_holdings(&cluster.nodes[node], &after));
    CU_ASSERT(goes_on(between, STEP_OPS));
    printf("%lld ms ", (long long)(ledger_gap_ns(between) / 1000000));
    fflush(stdout);
}

static void test_handed_over(void)
{
    static struct ledger between, within;
    static struct requester requester;
    struct holdings before[2];

    for (int n = 0; n < 2; n++)
        CU_ASSERT_TRUE_FATAL(look_node_holdings(&cluster.nodes[n], &before[n]));
    CU_ASSERT_EQUAL_FATAL(requester_start(&requester, cluster.nodes[0].socket, "asks", false), 0);
    start_both(&between, &within, "handed");
    printf("\n    longest pause: ");
    for (unsigned i = 0; i < hand_overs && !between.failed; i++)
        hand_over(i % 2, &between);
    CU_ASSERT(goes_on(&within, STEP_OPS));
    CU_ASSERT(ledger_stop(&between));
    CU_ASSERT(ledger_stop(&within));
    CU_ASSERT(requester_stop(&requester));
    CU_ASSERT_EQUAL(ledger_aborted(&between) + ledger_aborted(&within), 0);
    for (int n = 0; n < 2; n++)
        CU_ASSERT(look_node_returns_to(&cluster.nodes[n], &before[n]));
    CU_ASSERT(cluster_runs(&cluster));
}

/* Measures the pauses of two ranks that are alone on the machine, with this much memory registered.
 * The first figure is without a hand-over. */
static void measure_with(size_t gib)
{
    static struct ledger between;
    const char *const apart[] = {cluster.nodes[0].socket, cluster.nodes[1].socket};
    struct rank much;

    register_much(&much, gib << 30);
    CU_ASSERT_EQUAL_FATAL(ledger_start(&between, "measured", apart), 0);
    CU_ASSERT(goes_on(&between, STEP_OPS));
    (void)ledger_gap_ns(&between);
    nap_ms(500);
    printf("\n    %zu GiB: %lld ms; ", gib, (long long)(ledger_gap_ns(&between) / 1000000));
    for (unsigned i = 0; i < MEASURED; i++)
        hand_over(0, &between);
    CU_ASSERT(ledger_stop(&between));
    rank_detach(&much);
}

static void test_measured(void)
{
    for (size_t gib = 0; gib <= registered; gib = gib ? 4 * gib : 1)
        measure_with(gib);
}

/* ---- ranks that wait, and processes that die ------------------------------------------------- */

static void kill_daemon(unsigned node)
{
    pid_t pid = cluster_kept(&cluster, node);

    CU_ASSERT_FATAL(pid > 0);
    kill(pid, SIGKILL);
    CU_ASSERT_NOT_EQUAL(next_daemon(node, pid), 0);
}

struct waiting {
    struct rank rank;
    _Atomic pid_t thread; /* of wait_for_event */
    int result;
};

/* Sleeps on the descriptor, because pwc_wait looks once a second by itself. */
static void *wait_for_event(void *argument)
{
    struct waiting *w = argument;
    struct pollfd polled = {.fd = pwc_fd(w->rank.ctx), .events = POLLIN};
    struct pwc_event event;

    w->thread = (pid_t)syscall(SYS_gettid);
    do {
        w->result = pwc_probe(w->rank.ctx, PWC_ANY, PWC_REMOTE, &event);
    } while (w->result == 0 && poll(&polled, 1, RANK_WAIT_MS) == 1);
    return NULL;
}

static void *wait_for_all(void *argument)
{
    struct waiting *w = argument;

    w->result = pwc_barrier(w->rank.ctx);
    return NULL;
}

static void open_two(struct waiting *a, struct waiting *b, const char *job)
{
    CU_ASSERT_EQUAL_FATAL(rank_attach(&a->rank, cluster.nodes[0].socket, job, 0, 2, 4096), 0);
    CU_ASSERT_EQUAL_FATAL(rank_attach(&b->rank, cluster.nodes[1].socket, job, 1, 2, 4096), 0);
    CU_ASSERT_EQUAL_FATAL(rank_bind(&b->rank, &a->rank), 0);
}

static void test_sleeper_wakes(void)
{
    struct waiting a = {.thread = 0}, b;
    pthread_t thread;

    open_two(&a, &b, "sleeps");
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, wait_for_event, &a), 0);
    for (int i = 0; i < RANK_WAIT_MS && !(a.thread && thread_sleeps_in(a.thread, SYS_poll)); i++)
        nap_ms(1);
    CU_ASSERT(thread_sleeps_in(a.thread, SYS_poll));
    kill_daemon(0);
    CU_ASSERT_EQUAL(pwc_put(b.rank.remote, 0, b.rank.memory, 8, pwc_cid_u64(1), pwc_cid_u64(2), 0),
                    0);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(a.result, 1);
    rank_detach(&a.rank);
    rank_detach(&b.rank);
}

/* Both nodes, one of which is the job's home, are restarted while one rank waits in a barrier. */
static void barrier_over(void (*restart)(unsigned node))
{
    struct waiting a, b;
    pthread_t thread;

    open_two(&a, &b, "meets");
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, wait_for_all, &a), 0);
    nap_ms(20);
    restart(0);
    restart(1);
    wait_for_all(&b);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(a.result, 0);
    CU_ASSERT_EQUAL(b.result, 0);
    rank_detach(&a.rank);
    rank_detach(&b.rank);
}

static void ask_to_hand_over(unsigned node)
{
    pid_t pid = cluster_kept(&cluster, node);
    char command[400];
    int next = 0;
    FILE *said;

    snprintf(command, sizeof(command), "%s --socket %s upgrade", pwcctl,
             cluster.nodes[node].socket);
    said = popen(command, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(said);
    CU_ASSERT_EQUAL(fscanf(said, "process %d takes over", &next), 1);
    CU_ASSERT_EQUAL(pclose(said), 0);
    for (time_t end = time(NULL) + LIMIT_S; kill(pid, 0) == 0 && time(NULL) < end;)
        nap_ms(1);
    CU_ASSERT_EQUAL(cluster_kept(&cluster, node), next);
}

static void test_barrier(void)
{
    barrier_over(ask_to_hand_over);
    barrier_over(kill_daemon);
}

/* A rank that makes calls that wait, round by round, until `stop` is set. */
struct caller_that_waits {
    struct rank rank;
    _Atomic bool *stop;
    _Atomic unsigned rounds;
    _Atomic int result;
};

/* One round, with remotes that are bound at their first use. Returns 0, or the first error. */
static int wait_in_round(struct caller_that_waits *c, pwc_remote *other, uint64_t round)
{
    uint64_t there = 0;
    int rc = pwc_put_wait(other, 0, &round, sizeof(round), PWC_CID_NONE, PWC_NO_RCE);

    for (unsigned i = 0; i < 50 && rc == 0; i++)
        rc = pwc_put(other, 8, &round, sizeof(round), PWC_CID_NONE, PWC_CID_NONE,
                     PWC_NO_LCE | PWC_NO_RCE | PWC_WAIT);
    if (rc == 0)
        rc = pwc_barrier(c->rank.ctx);
    if (rc == 0)
        rc = pwc_get_wait(other, 0, &there, sizeof(there), PWC_CID_NONE, PWC_NO_RCE);
    if (rc == 0 && (there != round || memcmp(c->rank.memory, &round, sizeof(round)) != 0))
        rc = -EBADMSG;
    return rc == 0 ? pwc_flush(c->rank.ctx, PWC_ANY, RANK_WAIT_MS) : rc;
}

static void *wait_in_rounds(void *argument)
{
    struct caller_that_waits *c = argument;
    pwc_ctx *ctx = c->rank.ctx;
    int rc = 0;

    for (uint64_t round = 1; rc == 0; round++, c->rounds++) {
        uint8_t stop = *c->stop, stops[2] = {0};
        pwc_remote *remotes[2];

        rc = pwc_exchange(ctx, &stop, 1, stops);
        if (rc < 0 || stops[0])
            break;
        rc = pwc_bind_all(ctx, c->rank.region, remotes);
        if (rc == 0)
            rc = wait_in_round(c, remotes[1 - c->rank.number], round);
        for (unsigned i = 0; i < 2 && rc == 0; i++)
            rc = pwc_unbind(remotes[i]);
    }
    c->result = rc;
    return NULL;
}

/* Both nodes are restarted, in both ways, during calls that wait: all of these succeed. */
static void test_calls_that_wait(void)
{
    static void (*const restarts[])(unsigned node) = {kill_daemon, ask_to_hand_over};
    _Atomic bool stop = false;
    struct caller_that_waits callers[2] = {{.stop = &stop}, {.stop = &stop}};
    pthread_t threads[2];

    for (unsigned n = 0; n < 2; n++) {
        CU_ASSERT_EQUAL_FATAL(
            rank_attach(&callers[n].rank, cluster.nodes[n].socket, "waits", n, 2, 4096), 0);
    }
    for (unsigned n = 0; n < 2; n++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[n], NULL, wait_in_rounds, &callers[n]), 0);
    for (unsigned i = 0; i < 8; i++) {
        unsigned before = callers[0].rounds;

        restarts[i / 2 % 2](i % 2);
        for (time_t end = time(NULL) + LIMIT_S; callers[0].rounds < before + 3 &&
                                                callers[0].result == 0 && callers[1].result == 0 &&
                                                time(NULL) < end;)
            nap_ms(1);
        CU_ASSERT(callers[0].rounds >= before + 3);
    }
    stop = true;
    for (unsigned n = 0; n < 2; n++) {
        pthread_join(threads[n], NULL);
        CU_ASSERT_EQUAL(callers[n].result, 0);
        rank_detach(&callers[n].rank);
    }
}

/* Each node's daemon is killed, and hands over, during collectives, and while the last rank has not
 * called. */
static void test_collectives(void)
{
    const char *const sockets[] = {cluster.nodes[0].socket, cluster.nodes[1].socket};
    unsigned restarts = 0, wanted = kills > 8 ? kills : 8;
    static struct summers summers;
    struct holdings before[2];

    for (int n = 0; n < 2; n++)
        CU_ASSERT_TRUE_FATAL(look_node_holdings(&cluster.nodes[n], &before[n]));
    CU_ASSERT_EQUAL_FATAL(summers_start(&summers, "sums", sockets), 0);
    for (; summers_end_lap(&summers) && restarts < wanted; restarts++) {
        bool held = restarts / 4 % 2;

        if (held)
            summers_hold(&summers);
        nap_ms(rand() % 20);
        if (restarts / 2 % 2)
            ask_to_hand_over(restarts % 2);
        else
            kill_daemon(restarts % 2);
        if (held)
            summers_release(&summers);
    }
    CU_ASSERT_EQUAL(restarts, wanted);
    CU_ASSERT(summers_stop(&summers));
    printf("\n    %llu collectives ", (unsigned long long)summers.calls);
    for (int n = 0; n < 2; n++)
        CU_ASSERT(look_node_returns_to(&cluster.nodes[n], &before[n]));
    CU_ASSERT(cluster_runs(&cluster));
}

/* ---- neighbours that are left quiet -----------------------------------------------------------
 */

enum { CALLERS = 9, CALLERS_EARLY = 6, QUIET_MS = 50 };

struct caller {
    pwc_ctx *ctx;
    pwc_remote *remote;
};

static void add_caller(struct caller *c, struct rank *from, struct rank *to)
{
    struct pwc_event event;

    CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(from->client, NULL, &c->ctx), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(c->ctx, pwc_ctx_peer(to->ctx), NULL, &c->remote), 0);
    /* The probe lets the two contexts meet before the test begins. */
    CU_ASSERT_EQUAL(pwc_probe(to->ctx, PWC_ANY, PWC_REMOTE, &event), 0);
}

/* Waits until all callers are quiet. Then each of them puts, and one probe must find the put; where
 * puts go through the daemon, a wait must. */
static void be_called(struct rank *to, struct caller *callers, int count)
{
    int64_t until = now_ms() + QUIET_MS;
    struct pwc_event event;

    do {
        CU_ASSERT_EQUAL_FATAL(pwc_probe(to->ctx, PWC_ANY, PWC_REMOTE, &event), 0);
    } while (now_ms() < until);
    for (int i = 0; i < count; i++) {
        CU_ASSERT_EQUAL(pwc_put(callers[i].remote, 0, NULL, 0, pwc_cid_u64(0),
                                pwc_cid_u64((uint64_t)i), PWC_NO_LCE),
                        0);
        CU_ASSERT_EQUAL(directly ? pwc_probe(to->ctx, PWC_ANY, PWC_REMOTE, &event)
                                 : pwc_wait(to->ctx, PWC_ANY, PWC_REMOTE, &event, RANK_WAIT_MS),
                        1);
        CU_ASSERT_EQUAL(event.id, (uint64_t)i);
    }
}

/* Quiet callers are still noticed after restarts, and callers that come later have bits of their
 * own. */
static void test_quiet_callers(void)
{
    struct caller callers[CALLERS];
    struct rank to, from;

    CU_ASSERT_EQUAL_FATAL(rank_attach(&to, cluster.nodes[0].socket, "calls", 0, 2, 4096), 0);
    CU_ASSERT_EQUAL_FATAL(rank_attach(&from, cluster.nodes[0].socket, "calls", 1, 2, 4096), 0);
    for (int i = 0; i < CALLERS_EARLY; i++)
        add_caller(&callers[i], &from, &to);
    be_called(&to, callers, CALLERS_EARLY);
    kill_daemon(0);
    be_called(&to, callers, CALLERS_EARLY);
    for (int i = CALLERS_EARLY; i < CALLERS - 1; i++)
        add_caller(&callers[i], &from, &to);
    be_called(&to, callers, CALLERS - 1);
    ask_to_hand_over(0);
    add_caller(&callers[CALLERS - 1], &from, &to);
    be_called(&to, callers, CALLERS);
    rank_detach(&from);
    rank_detach(&to);
}

/* A client dies while no daemon runs: the next daemon notices its death. */
static void test_client_dies_meanwhile(void)
{
    struct holdings before;
    int ready[2], status;
    pid_t pid;
    char byte;

    CU_ASSERT_TRUE_FATAL(look_node_holdings(&cluster.nodes[0], &before));
    CU_ASSERT_EQUAL_FATAL(pipe(ready), 0);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        struct rank r;

        alarm(RANK_WAIT_MS / 1000);
        if (rank_attach(&r, cluster.nodes[0].socket, "dies", 0, 1, 4096) == 0 &&
            write(ready[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    CU_ASSERT_EQUAL(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    kill(cluster_kept(&cluster, 0), SIGKILL);
    kill(pid, SIGKILL);
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    CU_ASSERT(look_node_returns_to(&cluster.nodes[0], &before));
}

/* A daemon refuses an arena that a daemon with another configuration has left: the clients in it
 * end, and new ones are served. */
static void test_refused(void)
{
    struct pwc_event event;
    struct rank r;
    FILE *file;

    CU_ASSERT_EQUAL_FATAL(rank_attach(&r, cluster.nodes[0].socket, "old", 0, 1, 4096), 0);
    file = fopen(configuration, "we");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs("packed-max = 2048\n", file);
    fclose(file);
    kill_daemon(0);
    CU_ASSERT_EQUAL(pwc_wait(r.ctx, PWC_ANY, 0, &event, RANK_WAIT_MS), -ESHUTDOWN);
    rank_detach(&r);
    CU_ASSERT_EQUAL_FATAL(rank_attach(&r, cluster.nodes[0].socket, "old", 0, 1, 4096), 0);
    rank_detach(&r);
}

/* When a keeper is killed, its daemon ends in order. */
static void test_keeper_dies(void)
{
    pid_t pid = cluster_kept(&cluster, 1);
    struct pwc_event event;
    struct rank r;

    CU_ASSERT_EQUAL_FATAL(rank_attach(&r, cluster.nodes[1].socket, "alone", 0, 1, 4096), 0);
    cluster_kill(&cluster, 1);
    CU_ASSERT_EQUAL(pwc_wait(r.ctx, PWC_ANY, 0, &event, RANK_WAIT_MS), -ESHUTDOWN);
    rank_detach(&r);
    for (time_t end = time(NULL) + LIMIT_S; kill(pid, 0) == 0 && time(NULL) < end;)
        nap_ms(1);
    CU_ASSERT_EQUAL(cluster_restart(&cluster, 1), 0);
    CU_ASSERT_EQUAL_FATAL(rank_attach(&r, cluster.nodes[1].socket, "alone", 0, 1, 4096), 0);
    rank_detach(&r);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"handed over", test_handed_over},
                           {"killed", test_killed},
                           {"a sleeper wakes", test_sleeper_wakes},
                           {"a barrier", test_barrier},
                           {"calls that wait", test_calls_that_wait},
                           {"collectives", test_collectives},
                           {"quiet neighbours", test_quiet_callers},
                           {"a client dies meanwhile", test_client_dies_meanwhile},
                           {"the keeper dies", test_keeper_dies},
                           {"another configuration", test_refused},
                           CU_TEST_INFO_NULL};
    CU_TestInfo measured[] = {{"pauses", test_measured}, CU_TEST_INFO_NULL};
    /* A long deadline, so that no peer is given up where a busy machine takes long to start a
     * daemon. */
    static const char *more[MORE_MAX] = {
        "--keep", "--client-memory", "8G",         "--peer-deadline-ms",
        "20000",  "--config",        configuration};
    struct cluster_options options = {.nodes = 2, .more = more};
    int status = 1, file;

    if (argc < 4 || argc > 7 + (int)MORE_MAX - 8) {
        fprintf(stderr, "usage: %s PWCD PWCCTL PROVIDER [KILLS [HAND_OVERS [GIB [ARGUMENT...]]]]\n",
                argv[0]);
        return 2;
    }
    options.pwcd = argv[1];
    pwcctl = argv[2];
    options.provider = argv[3];
    if (argc > 4)
        kills = (unsigned)strtoul(argv[4], NULL, 10);
    if (argc > 5)
        hand_overs = (unsigned)strtoul(argv[5], NULL, 10);
    if (argc > 6)
        registered = (unsigned)strtoul(argv[6], NULL, 10);
    for (int i = 7; i < argc; i++) {
        more[i] = argv[i]; /* placed after the arguments above */
        directly = directly && strcmp(argv[i], "off") != 0;
    }
    file = mkstemp(configuration);
    if (file < 0)
        return 1;
    close(file);
    if (cluster_open(&cluster, &options) == 0)
        status = suite_run("restart", registered > 0 ? measured : tests);
    status = cluster_end(&cluster, status);
    unlink(configuration);
    return status;
}
