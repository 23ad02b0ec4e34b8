/*
 * Ranks that end: their submitted operations are completed, and other ranks get an event of their
 * end.
 *
 * Rank 0 is a child process, on node 0; rank 1 is this process, on the last node.
 *
 *     test_ends PWCD PROVIDER NODES [--KEY VALUE]...
 */
#include <errno.h>
#include <poll.h>
#include <pwc/am.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include "tests/suite.h"
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"
#include "tests/lib/process.h"

enum {
    CHILD,
    HERE,
    RANKS,
    PUTS = 2000,
    LARGE = 1 << 20,
    REGION = 2 * LARGE,
};

/* Set by main before the tests run. */
static struct cluster cluster;

static int attach(struct rank *r, uint32_t number, const char *job)
{
    const struct cluster_node *node =
        &cluster.nodes[number == CHILD ? 0 : cluster.options.nodes - 1];
    int rc = rank_attach(r, node->socket, job, number, RANKS, REGION);

    if (rc == 0)
        rc = rank_bind_other(r);
    return rc < 0 ? rc : pwc_barrier(r->ctx);
}

/* Runs `part` as rank 0 in a process of its own. Its result is the process's exit status. */
static pid_t start_child(int (*part)(struct rank *r), const char *job)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        struct rank r;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(RANK_WAIT_MS / 1000);
        _exit(attach(&r, CHILD, job) == 0 ? part(&r) : 100);
    }
    CU_ASSERT_FATAL(pid > 0);
    return pid;
}

static int status_of(pid_t pid)
{
    int status = -1;

    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    return status;
}

/* ---- submitted operations -------------------------------------------------------------------- */

/* Submits puts, and finalizes at once. */
static int put_and_finalize(struct rank *r)
{
    for (uint64_t i = 0; i < PUTS; i++) {
        uint64_t value = i + 1;
        int rc;

        while ((rc = pwc_put(r->remote, 8 * i, &value, 8, PWC_CID_NONE, pwc_cid_u64(i),
                             PWC_NO_LCE)) == -EAGAIN)
            (void)pwc_probe(r->ctx, PWC_ANY, PWC_LOCAL, &(struct pwc_event){0});
        if (rc != 0)
            return 1;
    }
    rank_fill(r->memory, LARGE, 7);
    if (pwc_put(r->remote, LARGE, r->memory, LARGE, PWC_CID_NONE, PWC_CID_NONE,
                PWC_NO_LCE | PWC_NO_RCE) != 0)
        return 2;
    return pwc_finalize(r->client) == 0 ? 0 : 3;
}

/* When pwc_finalize has returned 0, each put of the rank has been placed, and all events arrive. */
static void test_finalize_completes(void)
{
    struct rank r;
    struct pwc_event event;
    pid_t child = start_child(put_and_finalize, "completes");

    CU_ASSERT_EQUAL_FATAL(attach(&r, HERE, "completes"), 0);
    for (uint64_t i = 0; i < PUTS; i++) {
        CU_ASSERT_EQUAL_FATAL(pwc_wait(r.ctx, PWC_ANY, PWC_REMOTE, &event, RANK_WAIT_MS), 1);
        CU_ASSERT_EQUAL_FATAL(event.id, i);
    }
    CU_ASSERT_EQUAL(status_of(child), 0);
    for (uint64_t i = 0; i < PUTS; i++)
        CU_ASSERT_EQUAL_FATAL(((uint64_t *)(void *)r.memory)[i], i + 1);
    CU_ASSERT_EQUAL(rank_check(r.memory + LARGE, LARGE, 7), 0);
    rank_detach(&r);
}

/* ---- peers that end -------------------------------------------------------------------------- */

enum { LAST_WORDS = 500 };
static const unsigned all_kinds = PWC_LOCAL | PWC_REMOTE | PWC_PEER;

/* Puts some words, also large payloads, and dies with more under way. */
static int speak_and_die(struct rank *r)
{
    for (uint64_t i = 0; i < LAST_WORDS; i++) {
        int rc;

        while ((rc = pwc_put(r->remote, 8 * i, &i, 8, PWC_CID_NONE, pwc_cid_u64(i), PWC_NO_LCE)) ==
               -EAGAIN)
            (void)pwc_probe(r->ctx, PWC_ANY, PWC_LOCAL, &(struct pwc_event){0});
        if (rc != 0)
            return 1;
    }
    if (pwc_flush(r->ctx, PWC_ANY, RANK_WAIT_MS) != 0)
        return 2;
    return raise(SIGKILL);
}

static int speak(struct rank *r)
{
    uint64_t word = 1;

    return pwc_put(r->remote, 0, &word, 8, PWC_CID_NONE, pwc_cid_u64(0), PWC_NO_LCE);
}

static int speak_and_finalize(struct rank *r)
{
    if (speak(r) != 0)
        return 1;
    return pwc_finalize(r->client) == 0 ? 0 : 2;
}

static int speak_and_wait(struct rank *r)
{
    if (speak(r) != 0)
        return 1;
    pause();
    return 2;
}

static int speak_and_unbind(struct rank *r)
{
    if (speak(r) != 0 || pwc_unbind(r->remote) != 0)
        return 1;
    pause();
    return 2;
}

/* Attaches rank 1, which rank 0 has bound; with `binds`, rank 1 binds rank 0, too. */
static int attach_to_speaker(struct rank *r, const char *job, bool binds)
{
    int rc = attach(r, HERE, job);

    if (rc == 0 && !binds) {
        rc = pwc_unbind(r->remote);
        r->remote = NULL;
    }
    return rc;
}

/* Checks that there is one event of the peer's end, after all that it has sent. Afterwards a wait
 * for this peer fails at once, and a wait for any peer still waits. */
static void expect_end(struct rank *r, uint64_t words, int status)
{
    const unsigned all = all_kinds;
    struct pwc_event event = {0};

    for (uint64_t i = 0; i < words; i++) {
        CU_ASSERT_EQUAL_FATAL(pwc_wait(r->ctx, PWC_ANY, all, &event, RANK_WAIT_MS), 1);
        CU_ASSERT_EQUAL_FATAL(event.kind, PWC_REMOTE);
        CU_ASSERT_EQUAL_FATAL(event.id, i);
    }
    CU_ASSERT_EQUAL_FATAL(pwc_wait(r->ctx, PWC_ANY, all, &event, RANK_WAIT_MS), 1);
    CU_ASSERT_EQUAL(event.kind, PWC_PEER);
    CU_ASSERT_EQUAL(event.status, status);
    CU_ASSERT_EQUAL(event.peer, pwc_peer_of(CHILD, 0));
    CU_ASSERT_EQUAL(pwc_probe(r->ctx, PWC_ANY, all, &event), 0);
    for (unsigned kinds = 0; kinds <= all; kinds++)
        if ((kinds & ~all) == 0)
            CU_ASSERT_EQUAL(pwc_wait(r->ctx, pwc_peer_of(CHILD, 0), kinds, &event, RANK_WAIT_MS),
                            -EHOSTDOWN);
    CU_ASSERT_EQUAL(pwc_wait(r->ctx, PWC_ANY, all, &event, 1), 0);
    CU_ASSERT_EQUAL(pwc_wait(r->ctx, pwc_ctx_peer(r->ctx), all, &event, 1), 0);
}

/* A rank is killed: a context that has bound it, and one that only receives, see the end. */
static void test_death(void)
{
    for (int binds = 0; binds < 2; binds++) {
        const char *job = binds ? "death-bound" : "death-receiver";
        struct rank r;
        pid_t child = start_child(speak_and_die, job);

        CU_ASSERT_EQUAL_FATAL(attach_to_speaker(&r, job, binds), 0);
        expect_end(&r, LAST_WORDS, -EHOSTDOWN);
        CU_ASSERT(WIFSIGNALED(status_of(child)));
        rank_detach(&r);
    }
}

static void test_end_in_order(void)
{
    for (int binds = 0; binds < 2; binds++) {
        const char *job = binds ? "order-bound" : "order-receiver";
        struct rank r;
        pid_t child = start_child(speak_and_finalize, job);

        CU_ASSERT_EQUAL_FATAL(attach_to_speaker(&r, job, binds), 0);
        expect_end(&r, 1, 0);
        CU_ASSERT_EQUAL(status_of(child), 0);
        rank_detach(&r);
    }
}

/* A program that polls by waits of no time learns the end, too, without asking for its event. */
static void test_end_without_time(void)
{
    struct pwc_event event = {0};
    struct rank r;
    pid_t child = start_child(speak_and_finalize, "without-time");
    time_t limit;
    int words = 0, rc;

    CU_ASSERT_EQUAL_FATAL(attach_to_speaker(&r, "without-time", true), 0);
    limit = time(NULL) + RANK_WAIT_MS / 1000;
    do {
        rc = pwc_wait(r.ctx, pwc_peer_of(CHILD, 0), 0, &event, 0);
        words += rc == 1;
    } while (rc >= 0 && time(NULL) < limit);
    CU_ASSERT_EQUAL(rc, -EHOSTDOWN);
    CU_ASSERT_EQUAL(words, 1);
    CU_ASSERT_EQUAL(status_of(child), 0);
    rank_detach(&r);
}

/* A peer that only unbinds does not count as ended. */
static void test_unbinds(void)
{
    struct pwc_event event = {0};
    struct rank r;
    pid_t child = start_child(speak_and_unbind, "unbinds");

    CU_ASSERT_EQUAL_FATAL(attach_to_speaker(&r, "unbinds", false), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_wait(r.ctx, PWC_ANY, all_kinds, &event, RANK_WAIT_MS), 1);
    CU_ASSERT_EQUAL(event.kind, PWC_REMOTE);
    CU_ASSERT_EQUAL(pwc_wait(r.ctx, pwc_peer_of(CHILD, 0), all_kinds, &event, 20), 0);
    CU_ASSERT_EQUAL(kill(child, SIGKILL), 0);
    CU_ASSERT(WIFSIGNALED(status_of(child)));
    rank_detach(&r);
}

/* Starts rank 0 of a job once more: it binds rank 1, notifies it, and dies. */
static pid_t start_again(const char *job)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        struct rank r;

        alarm(RANK_WAIT_MS / 1000);
        if (rank_attach(&r, cluster.nodes[0].socket, job, CHILD, RANKS, REGION) != 0 ||
            pwc_bind(r.ctx, pwc_peer_of(HERE, 0), NULL, &r.remote) != 0 ||
            pwc_put(r.remote, 0, NULL, 0, PWC_CID_NONE, pwc_cid_u64(0), PWC_NO_LCE) != 0 ||
            pwc_flush(r.ctx, PWC_ANY, RANK_WAIT_MS) != 0)
            _exit(1);
        raise(SIGKILL);
    }
    CU_ASSERT_FATAL(pid > 0);
    return pid;
}

/* A rank that has ended and is started again counts as alive, and its next end is reported, too. */
static void test_comes_again(void)
{
    const struct cluster_node *node = &cluster.nodes[cluster.options.nodes - 1];
    struct rank r;

    CU_ASSERT_EQUAL_FATAL(rank_attach(&r, node->socket, "again", HERE, RANKS, REGION), 0);
    for (int round = 0; round < 3; round++) {
        pid_t child = start_again("again");

        expect_end(&r, 1, -EHOSTDOWN);
        CU_ASSERT(WIFSIGNALED(status_of(child)));
    }
    rank_detach(&r);
}

/* Starts rank 0 of that job: it binds rank 1, sends nothing, and waits to be killed. */
static pid_t start_silent(const char *job)
{
    int bound[2];
    char byte;
    pid_t pid;

    CU_ASSERT_EQUAL_FATAL(pipe(bound), 0);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        struct rank r;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(RANK_WAIT_MS / 1000);
        if (rank_attach(&r, cluster.nodes[0].socket, job, CHILD, RANKS, REGION) != 0 ||
            pwc_bind(r.ctx, pwc_peer_of(HERE, 0), NULL, &r.remote) != 0 ||
            write(bound[1], "", 1) != 1)
            _exit(1);
        pause();
        _exit(2);
    }
    CU_ASSERT_FATAL(pid > 0);
    close(bound[1]);
    CU_ASSERT_EQUAL_FATAL(read(bound[0], &byte, 1), 1);
    close(bound[0]);
    return pid;
}

/* A rank that has ended and is started again counts as alive, even if it only binds: waits for it
 * do not fail until it ends again. */
static void test_comes_again_silently(void)
{
    const struct cluster_node *node = &cluster.nodes[cluster.options.nodes - 1];
    struct pwc_event event;
    struct rank r;
    pid_t child;

    CU_ASSERT_EQUAL_FATAL(rank_attach(&r, node->socket, "silent", HERE, RANKS, REGION), 0);
    child = start_again("silent");
    expect_end(&r, 1, -EHOSTDOWN);
    CU_ASSERT(WIFSIGNALED(status_of(child)));
    for (int round = 0; round < 2; round++) {
        child = start_silent("silent");
        CU_ASSERT_EQUAL(pwc_wait(r.ctx, pwc_peer_of(CHILD, 0), all_kinds, &event, 20), 0);
        CU_ASSERT_EQUAL(kill(child, SIGKILL), 0);
        expect_end(&r, 0, -EHOSTDOWN);
        CU_ASSERT(WIFSIGNALED(status_of(child)));
    }
    rank_detach(&r);
}

static int wait_to_be_killed(struct rank *r)
{
    (void)r;
    pause();
    return 1;
}

/* Starts rank 0 of that job again, without the others' calls. */
static pid_t start_alone(const char *job)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        struct rank r;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(RANK_WAIT_MS / 1000);
        if (rank_attach(&r, cluster.nodes[0].socket, job, CHILD, RANKS, REGION) != 0)
            _exit(1);
        rank_detach(&r);
        _exit(0);
    }
    CU_ASSERT_FATAL(pid > 0);
    return pid;
}

static bool ends_within(pid_t pid, int ms)
{
    struct pollfd ended = {.fd = pidfd_open(pid, 0), .events = POLLIN};
    bool yes = poll(&ended, 1, ms) == 1;

    close(ended.fd);
    return yes;
}

/* A killed rank is started again while its daemon still holds the old one: another node's daemon is
 * stopped, so the old region cannot be given back. The new rank's attach waits for that. */
static void test_starts_again_at_once(void)
{
    pid_t stopped = cluster.nodes[1].pid, child, again;
    struct rank r;

    if (cluster.options.nodes == 1)
        return;
    child = start_child(wait_to_be_killed, "at-once");
    CU_ASSERT_EQUAL_FATAL(attach(&r, HERE, "at-once"), 0);
    CU_ASSERT_TRUE(process_stop(stopped));
    CU_ASSERT_EQUAL(kill(child, SIGKILL), 0);
    CU_ASSERT(WIFSIGNALED(status_of(child)));
    again = start_alone("at-once");
    CU_ASSERT_FALSE(ends_within(again, 200));
    CU_ASSERT_EQUAL(kill(stopped, SIGCONT), 0);
    CU_ASSERT_EQUAL(status_of(again), 0);
    rank_detach(&r);
}

/* Rank 0 of test_calls_that_wait: takes part in both pwc_bind_all, and dies. */
static int bind_all_and_die(struct rank *r)
{
    pwc_remote *used[RANKS], *unused[RANKS];

    if (pwc_bind_all(r->ctx, r->region, used) != 0 ||
        pwc_bind_all(r->ctx, r->region, unused) != 0 || pwc_barrier(r->ctx) != 0)
        return 1;
    return raise(SIGKILL);
}

/* Calls that wait end when the peer has ended: over a remote that was used before, and over a late
 * remote. */
static void test_calls_that_wait(void)
{
    pwc_remote *used[RANKS], *unused[RANKS];
    struct pwc_event event;
    uint64_t word = 1;
    struct rank r;
    pid_t child = start_child(bind_all_and_die, "calls-wait");
    int rc;

    CU_ASSERT_EQUAL_FATAL(attach(&r, HERE, "calls-wait"), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind_all(r.ctx, r.region, used), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind_all(r.ctx, NULL, unused), 0);
    CU_ASSERT_EQUAL(pwc_put_wait(used[CHILD], 8, &word, 8, PWC_CID_NONE, PWC_NO_RCE), 0);
    word = 0;
    CU_ASSERT_EQUAL(pwc_get_wait(used[CHILD], 8, &word, 8, PWC_CID_NONE, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(word, 1);
    CU_ASSERT_EQUAL(pwc_put_wait(used[HERE], 8, &word, 8, PWC_CID_NONE, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(pwc_barrier(r.ctx), 0);
    CU_ASSERT(WIFSIGNALED(status_of(child)));
    CU_ASSERT_EQUAL_FATAL(pwc_wait(r.ctx, PWC_ANY, PWC_PEER, &event, RANK_WAIT_MS), 1);
    CU_ASSERT_EQUAL(pwc_put_wait(used[CHILD], 8, &word, 8, PWC_CID_NONE, 0), -EHOSTDOWN);
    CU_ASSERT_EQUAL(pwc_get_wait(used[CHILD], 8, &word, 8, PWC_CID_NONE, 0), -EHOSTDOWN);
    CU_ASSERT_EQUAL(pwc_remote_len(unused[CHILD]), REGION);
    rc = pwc_put_wait(unused[CHILD], 8, &word, 8, PWC_CID_NONE, 0);
    CU_ASSERT(rc == -EHOSTUNREACH || rc == -EHOSTDOWN);
    rank_detach(&r);
}

/* Restarts the cluster with this deadline for peers, which is shorter than that of the other
 * tests. */
static void be_impatient(int ms)
{
    static char deadline[12];
    static const char *const keys[] = {"--peer-deadline-ms", deadline, NULL};
    struct cluster_options options = cluster.options;

    snprintf(deadline, sizeof(deadline), "%d", ms);
    options.more = keys;
    CU_ASSERT_EQUAL(cluster_close(&cluster), 0);
    CU_ASSERT_EQUAL_FATAL(cluster_open(&cluster, &options), 0);
}

/* Starts the child, and attaches rank 1. Returns whether the child's word has come: then the child
 * has left the barrier, and needs its daemon no longer. */
static bool meet_speaker(struct rank *r, pid_t *child)
{
    struct pwc_event event = {0};

    *child = start_child(speak_and_wait, "lost");
    return attach_to_speaker(r, "lost", false) == 0 &&
           pwc_wait(r->ctx, PWC_ANY, all_kinds, &event, RANK_WAIT_MS) == 1 &&
           event.kind == PWC_REMOTE;
}

/* Ends both ranks. Returns the child's status. */
static int part_from_speaker(struct rank *r, pid_t child)
{
    rank_detach(r);
    CU_ASSERT_EQUAL(kill(child, SIGKILL), 0);
    return status_of(child);
}

/* The other node's daemon is killed: its ranks have ended when the node is given up. On a busy
 * machine a node may be given up before the ranks have met: then the deadline was too short. */
static void test_node_is_lost(void)
{
    struct rank r;
    pid_t child;
    bool met = false;

    if (cluster.options.nodes == 1)
        return;
    for (int ms = 1000; !met && ms <= RANK_WAIT_MS / 2; ms *= 2) {
        be_impatient(ms);
        met = meet_speaker(&r, &child);
        if (!met)
            (void)part_from_speaker(&r, child);
    }
    CU_ASSERT_TRUE_FATAL(met);
    cluster_kill(&cluster, 0);
    expect_end(&r, 0, -EHOSTDOWN);
    CU_ASSERT(WIFSIGNALED(part_from_speaker(&r, child)));
}

/* ---- barriers -------------------------------------------------------------------------------- */

enum {
    MESSAGES = 30000, /* more events than ring and spill hold */
    HANDLER = 3,
    SHORT_MS = 200,
};

static uint64_t handled; /* messages that rank 1 has handled */

static void count_message(pwc_ctx *ctx, const struct pwc_am *message, void *argument)
{
    (void)ctx;
    (void)message;
    (void)argument;
    handled++;
}

/* Sends more messages and puts than the rings of rank 1 hold, while rank 1 waits in a barrier: all
 * of them end meanwhile. Then enters the barrier. */
static int flood_and_come(struct rank *r)
{
    const struct pwc_am_send message = {
        .index = HANDLER, .lid = PWC_CID_NONE, .flags = PWC_NO_LCE | PWC_AM_NO_REPLY};

    for (uint64_t i = 0; i < MESSAGES; i++) {
        int rc;

        do {
            rc = i % 8 == 0 ? pwc_put(r->remote, 0, &i, 8, PWC_CID_NONE, pwc_cid_u64(i), PWC_NO_LCE)
                            : pwc_am_short(r->remote, &message);
            (void)pwc_probe(r->ctx, PWC_ANY, PWC_LOCAL, &(struct pwc_event){0});
        } while (rc == -EAGAIN);
        if (rc != 0)
            return 1;
    }
    if (pwc_flush(r->ctx, PWC_ANY, RANK_WAIT_MS) != 0)
        return 2;
    return pwc_barrier(r->ctx) == 0 ? 0 : 3;
}

static void test_barrier_works(void)
{
    struct pwc_event event;
    struct rank r;
    pid_t child;
    const struct cluster_node *node = &cluster.nodes[cluster.options.nodes - 1];

    handled = 0;
    child = start_child(flood_and_come, "barrier");
    CU_ASSERT_EQUAL_FATAL(rank_attach(&r, node->socket, "barrier", HERE, RANKS, REGION), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_am_register(r.ctx, HANDLER, count_message, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(rank_bind_other(&r), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_barrier(r.ctx), 0); /* the one in start_child */
    CU_ASSERT_EQUAL(pwc_barrier(r.ctx), 0);
    CU_ASSERT(handled > 0);
    while (handled < MESSAGES - MESSAGES / 8) /* some may arrive after the barrier */
        CU_ASSERT_EQUAL_FATAL(pwc_wait(r.ctx, PWC_ANY, PWC_MESSAGE, &event, RANK_WAIT_MS), 1);
    for (uint64_t i = 0; i < MESSAGES; i += 8) {
        CU_ASSERT_EQUAL_FATAL(pwc_wait(r.ctx, PWC_ANY, PWC_REMOTE, &event, RANK_WAIT_MS), 1);
        CU_ASSERT_EQUAL_FATAL(event.id, i);
    }
    CU_ASSERT_EQUAL(status_of(child), 0);
    rank_detach(&r);
}

/* Attaches one of three ranks. */
static int attach_third(pwc_client **client, pwc_ctx **ctx, uint32_t number, const char *job,
                        int timeout_ms)
{
    const struct pwc_attr attr = {
        .socket = cluster.nodes[number % 2 == 0 ? 0 : cluster.options.nodes - 1].socket,
        .job = job,
        .rank = number,
        .size = 3,
        .timeout_ms = timeout_ms};
    int rc = pwc_init(&attr, client);

    if (rc == 0 && (rc = pwc_ctx_create(*client, NULL, ctx)) < 0)
        (void)pwc_abort(*client);
    return rc;
}

/* Attaches with a short timeout, for the barrier. A busy machine may need longer to attach, so that
 * is tried again. */
static int attach_shortly(pwc_client **client, pwc_ctx **ctx, uint32_t number, const char *job)
{
    int rc = -ETIMEDOUT;

    for (int ms = SHORT_MS; rc < 0 && ms < RANK_WAIT_MS; ms *= 2)
        rc = attach_third(client, ctx, number, job, ms);
    return rc;
}

/* When one rank gives up a barrier, the barrier fails at once for ranks that would wait longer, and
 * for ranks that call later. The text names the missing ranks. */
static void test_barrier_fails_for_all(void)
{
    pwc_client *client, *late;
    pwc_ctx *ctx, *late_ctx;
    char text[256];
    pid_t child;

    fflush(NULL);
    child = fork();
    CU_ASSERT_FATAL(child >= 0);
    if (child == 0) { /* its own timeout is longer than the test */
        alarm(RANK_WAIT_MS / 1000);
        if (attach_third(&client, &ctx, 0, "lacks", 2 * RANK_WAIT_MS) != 0)
            _exit(1);
        if (pwc_barrier(ctx) != -ETIMEDOUT)
            _exit(2);
        pwc_error_text(client, text, sizeof(text));
        _exit(strstr(text, "given") ? 0 : 3);
    }
    CU_ASSERT_EQUAL_FATAL(attach_shortly(&client, &ctx, 1, "lacks"), 0);
    CU_ASSERT_EQUAL(pwc_barrier(ctx), -ETIMEDOUT);
    pwc_error_text(client, text, sizeof(text));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "rank 1 has given up after its timeout; not there: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "2"));
    CU_ASSERT_EQUAL(status_of(child), 0);
    CU_ASSERT_EQUAL_FATAL(attach_third(&late, &late_ctx, 2, "lacks", 2 * RANK_WAIT_MS), 0);
    CU_ASSERT_EQUAL(pwc_barrier(late_ctx), -ETIMEDOUT);
    pwc_error_text(late, text, sizeof(text));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "another rank has given it up"));
    CU_ASSERT_EQUAL(pwc_abort(client), 0);
    CU_ASSERT_EQUAL(pwc_abort(late), 0);
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"--peer-deadline-ms", "60000", NULL};
    struct cluster_options options = {.more = keys, .nodes = 2};
    CU_TestInfo tests[] = {
        {"finalize completes", test_finalize_completes},
        {"a rank is killed", test_death},
        {"a rank ends in order", test_end_in_order},
        {"waits of no time", test_end_without_time},
        {"a rank unbinds", test_unbinds},
        {"a rank comes again", test_comes_again},
        {"a rank comes again and only binds", test_comes_again_silently},
        {"a rank is started again at once", test_starts_again_at_once},
        {"calls that wait", test_calls_that_wait},
        {"a barrier runs handlers and keeps events", test_barrier_works},
        {"a barrier that one rank gives up", test_barrier_fails_for_all},
        {"a node is lost", test_node_is_lost},
        CU_TEST_INFO_NULL,
    };

    if (!cluster_arguments(&options, argc, argv))
        return 2;
    if (cluster_open(&cluster, &options) < 0) {
        fprintf(stderr, "%s\n", cluster.failure);
        return 1;
    }
    return cluster_end(&cluster, suite_run("ends", tests));
}
