/*
 * Ranks of one node that exchange active messages and puts without the daemon: one of them dies;
 * and one sleeps until the other wakes it.
 *
 *     test_neighbour_wakes PWCD [--KEY VALUE]...
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "proto/pair_abi.h"
#include "tests/lib/message.h"
#include "tests/lib/process.h"
#include "tests/suite.h"
#include "tests/system/lib/two.h"

#define ROUNDS     3
#define ROUNDS_MAX 20  /* while no wake-up comes soon */
#define SOON_MS    500 /* woken within this time; without a wake-up a nap takes a second */

/* Set by main before the tests run. */
static struct cluster cluster;

static void pause_ms(int ms)
{
    const struct timespec time = {0, ms * 1000000};

    nanosleep(&time, NULL);
}

/* ---- death ----------------------------------------------------------------------------------- */

static void ignore(pwc_ctx *ctx, const struct pwc_am *m, void *argument)
{
    (void)ctx, (void)m, (void)argument;
}

/* Rank 1: waits until the other rank closes the pipe, sends requests, and dies. */
static void ask_and_die(const int go[2])
{
    uint64_t number = 1;
    char byte;
    struct rank r;

    close(go[1]);
    if (two_attach(&cluster, &r, "dead", 1) != 0 ||
        pwc_am_register(r.ctx, TWO_REPLY, ignore, NULL) != 0 || rank_bind_other(&r) != 0 ||
        pwc_barrier(r.ctx) != 0 || read(go[0], &byte, 1) != 0)
        _exit(1);
    for (int i = 0; i < 10; i++)
        if (message_request(PWC_AM_SHORT, r.remote, 0, message_of(TWO_REQUEST, &number)) != 0)
            _exit(2);
    raise(SIGKILL);
}

static void reply_late(pwc_ctx *ctx, const struct pwc_am *m, void *argument)
{
    int *replies = argument;
    int rc =
        message_reply(PWC_AM_SHORT, ctx, m->token, NULL, 0, message_of(TWO_REPLY, m->arguments));

    *replies += rc == 0;
}

static void test_requester_dies(void)
{
    int64_t limit = now_ns() + TWO_WAIT_NS;
    int replies = 0, status, go[2];
    struct pwc_event event;
    struct rank r;
    pid_t child;

    CU_ASSERT_EQUAL_FATAL(pipe(go), 0);
    child = fork();
    if (child == 0)
        ask_and_die(go);
    close(go[0]);
    CU_ASSERT_EQUAL_FATAL(two_attach(&cluster, &r, "dead", 0), 0);
    CU_ASSERT_EQUAL(pwc_am_register(r.ctx, TWO_REQUEST, reply_late, &replies), 0);
    CU_ASSERT_EQUAL_FATAL(rank_bind_other(&r), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_barrier(r.ctx), 0);
    CU_ASSERT_EQUAL(pwc_probe(r.ctx, PWC_ANY, PWC_REMOTE, &event), 0); /* maps the pair */
    close(go[1]); /* not a barrier, which would run the handler before the death */
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT(WIFSIGNALED(status));
    while (!(two_pairs().gone & PAIR_ORIGIN_GONE) && now_ns() < limit)
        pause_ms(1);
    CU_ASSERT_EQUAL(two_pairs().sent, 10);
    for (int ended = 0; ended < 10; ended++) {
        CU_ASSERT_EQUAL_FATAL(pwc_wait(r.ctx, PWC_ANY, PWC_LOCAL, &event, RANK_WAIT_MS), 1);
        CU_ASSERT_EQUAL(event.status, -EHOSTDOWN);
    }
    CU_ASSERT_EQUAL(replies, 10);
    rank_detach(&r);
}

/* Rank 1: never replies, and waits to be killed. */
static void die_unanswered(void)
{
    struct pwc_event event;
    struct rank r;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (two_attach(&cluster, &r, "mute", 1) != 0 ||
        pwc_am_register(r.ctx, TWO_REQUEST, reply_late, &event) != 0 || rank_bind_other(&r) != 0 ||
        pwc_barrier(r.ctx) != 0 || pwc_probe(r.ctx, PWC_ANY, PWC_REMOTE, &event) != 0 ||
        pwc_barrier(r.ctx) != 0)
        _exit(1);
    pause();
    _exit(0);
}

static void test_replier_dies(void)
{
    int64_t limit = now_ns() + TWO_WAIT_NS;
    struct pwc_event event = {0};
    uint64_t number = 5;
    int asked = 0, rc = 0;
    struct rank r;
    pid_t child = fork();

    if (child == 0)
        die_unanswered();
    CU_ASSERT_EQUAL_FATAL(two_attach(&cluster, &r, "mute", 0), 0);
    CU_ASSERT_EQUAL_FATAL(rank_bind_other(&r), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_barrier(r.ctx), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_barrier(r.ctx), 0);
    while (rc == 0 && asked < 1000) {
        rc = message_request(PWC_AM_SHORT, r.remote, 0, message_of(TWO_REQUEST, &number));
        asked += rc == 0;
    }
    CU_ASSERT_EQUAL(rc, -EAGAIN); /* no room for more replies */
    CU_ASSERT(asked > 4);
    CU_ASSERT(two_pairs().sent > 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    while (event.status == 0 && now_ns() < limit) {
        rc = message_request(PWC_AM_SHORT, r.remote, 0, message_of(TWO_REQUEST, &number));
        CU_ASSERT_FATAL(rc == 0 || rc == -EAGAIN);
        (void)pwc_wait(r.ctx, PWC_ANY, PWC_LOCAL, &event, 10);
    }
    CU_ASSERT_EQUAL(event.status, -EHOSTDOWN);
    CU_ASSERT_EQUAL(pwc_flush(r.ctx, PWC_ANY, -1), 0);
    CU_ASSERT_EQUAL(pwc_unbind(r.remote), 0);
    rank_detach(&r);
}

/* ---- sleep ----------------------------------------------------------------------------------- */

/* A thread that waits at a. */
struct sleeper {
    struct two *two;
    unsigned kinds;
    bool by_poll;
    /* The awaited event was caused; before that, the thread may be woken for other reasons. */
    _Atomic bool done;
    _Atomic pid_t thread;
    int rc;
    int64_t woken;
};

static void *sleep_at_a(void *argument)
{
    struct sleeper *s = argument;
    pwc_ctx *ctx = s->two->a.ctx;
    struct pollfd polled = {.events = POLLIN};
    struct pwc_event event;

    s->thread = (pid_t)syscall(SYS_gettid);
    if (s->by_poll) {
        polled.fd = pwc_fd(ctx);
        do
            s->rc = pwc_probe(ctx, PWC_ANY, s->kinds, &event) == 0 ? poll(&polled, 1, RANK_WAIT_MS)
                                                                   : -EIO;
        while (s->rc == 1 && !s->done);
    } else {
        s->rc = pwc_wait(ctx, PWC_ANY, s->kinds, &event, RANK_WAIT_MS);
    }
    s->woken = now_ns();
    return NULL;
}

static pthread_t fall_asleep(struct sleeper *s)
{
    long call = s->by_poll ? SYS_poll : SYS_futex;
    pthread_t thread;
    int asleep = 0;

    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, sleep_at_a, s), 0);
    /* Counts only a thread that was asleep in 50 looks in a row. */
    for (int i = 0; i < RANK_WAIT_MS && asleep < 50; i++) {
        pause_ms(1);
        asleep = s->thread && thread_sleeps_in(s->thread, call) ? asleep + 1 : 0;
    }
    CU_ASSERT_EQUAL(asleep, 50);
    s->done = true;
    return thread;
}

/* Whether a test that has made so many rounds makes another one: a busy machine delays wake-ups,
 * and one that comes soon is enough, because a missing one costs a second each time. */
static bool measures_on(int rounds, int64_t best)
{
    return rounds < ROUNDS || (best >= SOON_MS * INT64_C(1000000) && rounds < ROUNDS_MAX);
}

/* Measures how long the thread takes to wake, and lowers `best`. */
static void woken_after(struct sleeper *s, pthread_t thread, int64_t *best)
{
    int64_t from = now_ns();

    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(s->rc, 1);
    if (s->woken - from < *best)
        *best = s->woken - from;
}

static void test_reply_wakes(void)
{
    for (int by_poll = 0; by_poll < 2; by_poll++) {
        uint64_t number = 1;
        int64_t best = INT64_MAX;
        struct two t;

        two_open(&t, &cluster, "wake");
        two_take(&t, PWC_LOCAL);
        for (int round = 0; measures_on(round, best); round++) {
            struct sleeper s = {.two = &t, .kinds = PWC_MESSAGE, .by_poll = by_poll};
            struct pwc_event event;
            pthread_t thread;

            t.seen = number;
            CU_ASSERT_EQUAL_FATAL(
                message_request(PWC_AM_SHORT, t.a.remote, 0, message_of(TWO_REQUEST, &number)), 0);
            thread = fall_asleep(&s);
            CU_ASSERT_EQUAL(pwc_wait(t.b.ctx, PWC_ANY, PWC_MESSAGE, &event, RANK_WAIT_MS), 1);
            woken_after(&s, thread, &best);
            (void)pwc_probe(t.a.ctx, PWC_ANY, PWC_LOCAL, &event);
            t.back = 0;
        }
        CU_ASSERT(best < SOON_MS * INT64_C(1000000));
        CU_ASSERT(t.right);
        CU_ASSERT(two_pairs().sent > 0);
        two_close(&t);
    }
}

/* A rank that waits for room in a full ring by pwc_fd is woken when there is room. */
static void room_wakes(int64_t *best)
{
    struct sleeper s = {.kinds = PWC_LOCAL, .by_poll = true};
    struct pwc_event event;
    pthread_t thread;
    struct two t;
    int rc;

    two_open(&t, &cluster, "room");
    s.two = &t;
    two_take(&t, PWC_LOCAL); /* b maps the pair */
    for (uint64_t n = 0;; n++) {
        rc = pwc_put(t.a.remote, 0, t.a.memory, 8, pwc_cid_u64(0), pwc_cid_u64(n), PWC_NO_LCE);
        if (rc < 0)
            break;
    }
    CU_ASSERT_EQUAL(rc, -EAGAIN);
    thread = fall_asleep(&s);
    while (pwc_probe(t.b.ctx, PWC_ANY, PWC_REMOTE, &event) == 1)
        two_check(&t, event.id == t.seen++);
    woken_after(&s, thread, best);
    CU_ASSERT(t.right);
    CU_ASSERT_EQUAL(t.seen, PAIR_LINES);
    CU_ASSERT_EQUAL(
        pwc_put(t.a.remote, 0, t.a.memory, 8, pwc_cid_u64(0), pwc_cid_u64(0), PWC_NO_LCE), 0);
    two_close(&t);
}

static void test_room_wakes(void)
{
    int64_t best = INT64_MAX;

    for (int round = 0; measures_on(round, best); round++)
        room_wakes(&best);
    CU_ASSERT(best < SOON_MS * INT64_C(1000000));
}

/* Rank 1: maps the pair, and dies when it reads a byte. */
static void meet_and_die(int die)
{
    struct pwc_event event;
    struct rank r;
    char byte;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (two_attach(&cluster, &r, "full", 1) != 0 || rank_bind_other(&r) != 0 ||
        pwc_barrier(r.ctx) != 0 || pwc_probe(r.ctx, PWC_ANY, PWC_LOCAL, &event) != 0 ||
        pwc_barrier(r.ctx) != 0)
        _exit(1);
    (void)!read(die, &byte, 1);
    raise(SIGKILL);
}

/* A rank that waits by pwc_fd for room towards a peer is woken by the peer's death. */
static void test_death_wakes(void)
{
    struct two t = {.right = true};
    struct sleeper s = {.two = &t, .kinds = PWC_LOCAL, .by_poll = true};
    int die[2], rc = 0, status;
    int64_t took = INT64_MAX;
    pthread_t thread;
    pid_t child;

    CU_ASSERT_EQUAL_FATAL(pipe(die), 0);
    child = fork();
    if (child == 0)
        meet_and_die(die[0]);
    CU_ASSERT_EQUAL_FATAL(two_attach(&cluster, &t.a, "full", 0), 0);
    CU_ASSERT_EQUAL_FATAL(rank_bind_other(&t.a), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_barrier(t.a.ctx), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_barrier(t.a.ctx), 0);
    for (uint64_t n = 0; rc == 0 && n <= PAIR_LINES; n++)
        rc = pwc_put(t.a.remote, 0, t.a.memory, 8, pwc_cid_u64(0), pwc_cid_u64(n), PWC_NO_LCE);
    CU_ASSERT_EQUAL(rc, -EAGAIN);
    thread = fall_asleep(&s);
    CU_ASSERT_EQUAL(write(die[1], "", 1), 1);
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT(WIFSIGNALED(status));
    woken_after(&s, thread, &took); /* no nap ends a poll: without a wake-up it would not return */
    rank_detach(&t.a);
    close(die[0]);
    close(die[1]);
}

static int run(void)
{
    CU_TestInfo tests[] = {
        {"a requester dies", test_requester_dies}, {"a replier dies", test_replier_dies},
        {"a reply wakes", test_reply_wakes},       {"room wakes", test_room_wakes},
        {"a death wakes", test_death_wakes},       CU_TEST_INFO_NULL};

    return suite_run("neighbour_wakes", tests);
}

int main(int argc, char **argv)
{
    return two_main(&cluster, argc, argv, run);
}
