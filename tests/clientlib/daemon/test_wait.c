/* Waiting in every way, flushing, and the end of the daemon, against a daemon on a thread. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>
#include "clientlib/attach/deadline.h"
#include "tests/clientlib/daemon/client_world.h"
#include "tests/suite.h"

static void *release_later(void *argument)
{
    struct world *w = argument;
    struct doorbell_word *bell = &w->daemon.contexts[0].session.shared->event_bell;

    while (atomic_load(&bell->armed) == 0) /* waits until the main thread sleeps, or is about to */
        usleep(100);
    fake_hold(&w->daemon, false);
    return NULL;
}

static void test_wait_sleeps(void)
{
    struct world *w = world_new();

    for (int round = 0; round < 20; round++) {
        pthread_t thread;

        fake_hold(&w->daemon, true);
        CU_ASSERT_EQUAL(put(w, 0, w->memory, 8, 7, PWC_NO_RCE), 0);
        CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, release_later, w), 0);
        (void)expect(w, PWC_LOCAL, 7, 0);
        pthread_join(thread, NULL);
    }
    world_free(w);
}

static void test_wait_times_out(void)
{
    struct world *w = world_new();
    struct pwc_event event;

    CU_ASSERT_EQUAL(pwc_wait(w->ctx, PWC_ANY, 0, &event, 0), 0);
    CU_ASSERT_EQUAL(pwc_wait(w->ctx, PWC_ANY, 0, &event, 20), 0);
    CU_ASSERT_EQUAL(pwc_wait(w->ctx, PWC_ANY, 1u << 6, &event, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_probe(w->ctx, PWC_ANY, 1u << 6, &event), -EINVAL);
    /* Events of the other kind do not keep it awake, and are not lost. */
    CU_ASSERT_EQUAL(put(w, 0, w->memory, 8, 1, 0), 0);
    (void)expect(w, PWC_LOCAL, 1, 0);
    CU_ASSERT_EQUAL(pwc_wait(w->ctx, PWC_ANY, PWC_LOCAL, &event, 20), 0);
    CU_ASSERT_EQUAL(pwc_wait(w->ctx, 5, 0, &event, 20), 0);
    (void)expect(w, PWC_REMOTE, ~UINT64_C(1), 0);
    world_free(w);
}

static void test_descriptor(void)
{
    struct world *w = world_new();
    struct pollfd readable = {.fd = pwc_fd(w->ctx), .events = POLLIN};
    struct pwc_event event;

    CU_ASSERT_TRUE(readable.fd >= 0);
    CU_ASSERT_EQUAL(pwc_probe(w->ctx, PWC_ANY, 0, &event), 0);
    CU_ASSERT_EQUAL(poll(&readable, 1, 0), 0);
    for (uint64_t round = 0; round < 50; round++) {
        int events = 0, rc;

        CU_ASSERT_EQUAL(put(w, 0, w->memory, 8, round, 0), 0);
        while (events < 2) {
            CU_ASSERT_EQUAL_FATAL(poll(&readable, 1, WAIT_MS), 1);
            while ((rc = pwc_probe(w->ctx, PWC_ANY, 0, &event)) == 1)
                events++;
            CU_ASSERT_EQUAL(rc, 0);
        }
        CU_ASSERT_EQUAL(events, 2);
        CU_ASSERT_EQUAL(poll(&readable, 1, 0), 0);
    }
    /* A wait in between arms the bell for itself; afterwards the descriptor is armed again. */
    CU_ASSERT_EQUAL(pwc_wait(w->ctx, PWC_ANY, 0, &event, 5), 0);
    CU_ASSERT_EQUAL(put(w, 0, w->memory, 8, 1, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(poll(&readable, 1, WAIT_MS), 1);
    (void)expect(w, PWC_LOCAL, 1, 0);

    fake_daemon_stop(&w->daemon);
    CU_ASSERT_EQUAL(poll(&readable, 1, WAIT_MS), 1);
    CU_ASSERT_EQUAL(pwc_probe(w->ctx, PWC_ANY, 0, &event), -ESHUTDOWN);
    CU_ASSERT_EQUAL(pwc_abort(w->client), 0);
    free(w);
}

static void *stop_daemon(void *argument)
{
    fake_daemon_stop(argument);
    return NULL;
}

/* A client notices the death of a daemon that has sent nothing, even while the client sleeps. */
static void test_daemon_dies(void)
{
    struct world *w = world_new();
    struct pwc_event event;
    pwc_region *region;
    pthread_t thread;

    fake_hold(&w->daemon, true);
    CU_ASSERT_EQUAL(put(w, 0, w->memory, 8, 1, 0), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, stop_daemon, &w->daemon), 0);
    CU_ASSERT_EQUAL(pwc_wait(w->ctx, PWC_ANY, 0, &event, -1), -ESHUTDOWN);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(put(w, 0, w->memory, 8, 1, 0), -ESHUTDOWN);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, -1), -ESHUTDOWN);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, 0, -1), -ESHUTDOWN);
    CU_ASSERT_EQUAL(pwc_alloc(w->client, 8, PWC_REMOTE_RW, &region), 0 - ESHUTDOWN);
    CU_ASSERT_EQUAL(pwc_barrier(w->ctx), -ESHUTDOWN);
    CU_ASSERT_EQUAL(pwc_region_free(w->region), 0);
    CU_ASSERT_EQUAL(pwc_unbind(w->remote), 0);
    CU_ASSERT_EQUAL(pwc_ctx_destroy(w->ctx), 0);
    CU_ASSERT_EQUAL(pwc_abort(w->client), 0);
    free(w);
}

static void ignore(int signal)
{
    (void)signal;
}

/* Begins, or with 0 ends, a signal each `period_us`, which interrupts the sleeps of this thread. */
static void signal_each(int period_us)
{
    const struct sigaction action = {.sa_handler = ignore};
    const struct itimerval timer = {{0, period_us}, {0, period_us}};

    CU_ASSERT_EQUAL_FATAL(sigaction(SIGALRM, &action, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

/* Guards that signals that end each sleep do not hide the daemon's death. */
static void test_daemon_dies_beside_signals(void)
{
    struct world *w = world_new();
    struct pwc_event event;
    int64_t late;

    fake_hold(&w->daemon, true);
    CU_ASSERT_EQUAL(put(w, 0, w->memory, 8, 1, 0), 0);
    fake_daemon_stop(&w->daemon);
    signal_each(100000);
    late = deadline_after_ms(WAIT_MS / 2);
    CU_ASSERT_EQUAL(pwc_wait(w->ctx, PWC_ANY, 0, &event, WAIT_MS), -ESHUTDOWN);
    CU_ASSERT_TRUE(clock_now() < late); /* the last sleep before the timeout may find it, too */
    signal_each(0);
    CU_ASSERT_EQUAL(pwc_abort(w->client), 0);
    free(w);
}

/* A thread that flushes notices the daemon's death, too. */
static void test_daemon_dies_in_flush(void)
{
    struct world *w = world_new();
    pthread_t thread;

    fake_hold(&w->daemon, true);
    CU_ASSERT_EQUAL(put(w, 0, w->memory, 8, 1, 0), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, stop_daemon, &w->daemon), 0);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, -1), -ESHUTDOWN);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(pwc_abort(w->client), 0);
    free(w);
}

static void test_flush(void)
{
    struct world *w = world_new();
    struct pwc_event event;
    pwc_remote *second;

    CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, -1), 0);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, 5, -1), 0); /* no remote leads to that peer */
    for (uint64_t i = 0; i < 1000; i++)
        CU_ASSERT_EQUAL(put(w, i, &i, 1, i, PWC_NO_RCE | (i % 2 ? PWC_NO_LCE : 0)), 0);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, 0, -1), 0);
    CU_ASSERT_EQUAL(fake_executed(&w->daemon), 1001); /* the puts and the flush */
    for (uint64_t i = 0; i < 1000; i += 2) {
        CU_ASSERT_EQUAL_FATAL(pwc_probe(w->ctx, PWC_ANY, 0, &event), 1);
        CU_ASSERT_EQUAL(event.id, i);
    }
    CU_ASSERT_EQUAL(pwc_probe(w->ctx, PWC_ANY, 0, &event), 0);

    /* An operation that the daemon holds back does not end within the timeout. However often it is
     * tried, only one flush is submitted. */
    fake_hold(&w->daemon, true);
    CU_ASSERT_EQUAL(put(w, 0, w->memory, 8, 7, 0), 0);
    for (int timeout_ms = 0; timeout_ms < 20; timeout_ms++) {
        CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, timeout_ms), -ETIMEDOUT);
        CU_ASSERT_EQUAL(pwc_flush(w->ctx, 0, timeout_ms), -ETIMEDOUT);
    }
    fake_hold(&w->daemon, false);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, 0, WAIT_MS), 0);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, 0), 0);
    CU_ASSERT_EQUAL(fake_executed(&w->daemon), 1003);
    CU_ASSERT_EQUAL(pwc_probe(w->ctx, PWC_ANY, PWC_LOCAL, &event), 1);
    CU_ASSERT_EQUAL(event.id, 7);

    /* pwc_unbind waits for the operations that went through the remote. */
    CU_ASSERT_EQUAL_FATAL(pwc_bind(w->ctx, 9, NULL, &second), 0);
    CU_ASSERT_EQUAL(pwc_put(second, 0, NULL, 0, pwc_cid_u64(4), pwc_cid_u64(0), 0), 0);
    CU_ASSERT_EQUAL(pwc_unbind(second), 0);
    CU_ASSERT_EQUAL(fake_executed(&w->daemon), 1005);
    CU_ASSERT_EQUAL(pwc_probe(w->ctx, 9, PWC_LOCAL, &event), 1);
    CU_ASSERT_EQUAL(event.id, 4);
    world_free(w);
}

/* pwc_unbind waits for operations through the remote, but no longer than the client's timeout. */
static void test_unbind_times_out(void)
{
    struct world *w = world_new();

    fake_hold(&w->daemon, true);
    world_limit(w, 20);
    CU_ASSERT_EQUAL(put(w, 0, w->memory, 8, 7, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(pwc_unbind(w->remote), -ETIMEDOUT);
    world_limit(w, WAIT_MS);
    CU_ASSERT_EQUAL(put(w, 0, w->memory, 8, 8, PWC_NO_RCE), 0);
    fake_hold(&w->daemon, false);
    (void)expect(w, PWC_LOCAL, 7, 0);
    (void)expect(w, PWC_LOCAL, 8, 0);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, WAIT_MS), 0);
    CU_ASSERT_EQUAL(pwc_unbind(w->remote), 0);
    world_free(w);
}

/* A flush that finds no room in the ring has flushed nothing: the end of an earlier flush must not
 * be taken for its own. */
static void test_flush_without_room(void)
{
    struct world *w = world_new();
    uint64_t puts = 0;
    int rc;

    CU_ASSERT_EQUAL(put(w, 0, w->memory, 8, 0, PWC_NO_RCE | PWC_NO_LCE), 0);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, 0, WAIT_MS), 0);
    fake_hold(&w->daemon, true);
    while ((rc = put(w, 0, NULL, 0, 0, PWC_NO_LCE)) == 0) /* as long a record as a flush */
        puts++;
    CU_ASSERT_EQUAL(rc, -EAGAIN);
    CU_ASSERT(puts > 0);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, 0, 0), -ETIMEDOUT);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, 0, 5), -ETIMEDOUT);
    fake_hold(&w->daemon, false);
    CU_ASSERT_EQUAL(pwc_flush(w->ctx, 0, WAIT_MS), 0);
    world_free(w);
}

static const struct session_waits *waits_of(const struct fake_daemon *daemon)
{
    return &daemon->contexts[0].session.shared->waits;
}

/* Waits until the context sleeps, and has said by then that the daemon need not fence for it.
 * Returns the kind of call that it sleeps in. */
static enum session_wait asleep_in(const struct fake_daemon *daemon)
{
    const struct session_waits *waits = waits_of(daemon);

    while (atomic_load(&waits->asleep_since) == 0)
        usleep(100);
    CU_ASSERT_EQUAL(atomic_load(&waits->fenced), 1);
    return (enum session_wait)atomic_load(&waits->call);
}

/* Notes what pwcctl would show of the context while its thread sleeps, then lets the daemon
 * continue. */
static void *look_then_release(void *argument)
{
    struct world *w = argument;
    enum session_wait seen = asleep_in(&w->daemon);

    fake_hold(&w->daemon, false);
    return (void *)(uintptr_t)seen;
}

/* Answers an exchange only after the context was seen asleep. */
static bool late_exchange(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    if (request->body_case == PWC__CLIENT_REQUEST__BODY_EXCHANGE)
        while (daemon->hold)
            usleep(100);
    return false;
}

static int wait_event(struct world *w)
{
    struct pwc_event event;

    return pwc_wait(w->ctx, PWC_ANY, PWC_LOCAL, &event, WAIT_MS) - 1;
}

static int wait_flush(struct world *w)
{
    return pwc_flush(w->ctx, PWC_ANY, WAIT_MS);
}

static int wait_barrier(struct world *w)
{
    return pwc_barrier(w->ctx);
}

static int wait_exchange(struct world *w)
{
    uint64_t mine = 1, all[2];

    return pwc_exchange(w->ctx, &mine, sizeof(mine), all);
}

/* While a call waits, its session shows which call it is, and how long it has waited and slept.
 * After the call, and in a call that need not wait, the session shows no wait. */
static void test_waits_shown(void)
{
    static const struct {
        int (*call)(struct world *w);
        enum session_wait shown;
    } rows[] = {
        {wait_event, SESSION_WAITS_EVENT},
        {wait_flush, SESSION_WAITS_FLUSH},
        {wait_barrier, SESSION_WAITS_BARRIER},
        {wait_exchange, SESSION_WAITS_EXCHANGE},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool collective = rows[i].shown >= SESSION_WAITS_BARRIER;
        struct world *w = collective ? world_new_sized(0, late_exchange) : world_new();
        const struct session_waits *waits = waits_of(&w->daemon);
        int64_t before = clock_now();
        uint64_t waited, asleep;
        pthread_t thread;
        void *seen;

        CU_ASSERT_EQUAL(atomic_load(&waits->waited_ns), 0);
        fake_hold(&w->daemon, true);
        CU_ASSERT_EQUAL(put(w, 0, w->memory, 8, 7, PWC_NO_RCE), 0);
        atomic_store(&w->daemon.contexts[0].session.shared->waits.fenced, 0);
        CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, look_then_release, w), 0);
        CU_ASSERT_EQUAL(rows[i].call(w), 0);
        pthread_join(thread, &seen);
        CU_ASSERT_EQUAL((uintptr_t)seen, rows[i].shown);
        CU_ASSERT_EQUAL(atomic_load(&waits->call), SESSION_WAITS_NOT);
        CU_ASSERT_EQUAL(atomic_load(&waits->asleep_since), 0);
        waited = atomic_load(&waits->waited_ns);
        asleep = atomic_load(&waits->asleep_ns);
        CU_ASSERT(asleep > 0 && asleep <= waited);
        CU_ASSERT(waited <= (uint64_t)(clock_now() - before));
        CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, WAIT_MS), 0);
        waited = atomic_load(&waits->waited_ns);
        CU_ASSERT_EQUAL(pwc_flush(w->ctx, PWC_ANY, WAIT_MS), 0);
        CU_ASSERT_EQUAL(atomic_load(&waits->waited_ns), waited);
        world_free(w);
    }
}

/* A wait for a peer that neither side has bound is no error: the peer may still bind us. */
static void test_peer_that_may_come(void)
{
    struct world *w = world_new();
    struct pwc_event event;

    CU_ASSERT_EQUAL(pwc_wait(w->ctx, pwc_peer_of(1000, 0), PWC_REMOTE, &event, 20), 0);
    world_free(w);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"wait sleeps and is woken", test_wait_sleeps},
        {"wait times out", test_wait_times_out},
        {"what a wait shows", test_waits_shown},
        {"the descriptor", test_descriptor},
        {"the daemon dies", test_daemon_dies},
        {"the daemon dies beside signals", test_daemon_dies_beside_signals},
        {"the daemon dies in a flush", test_daemon_dies_in_flush},
        {"flush and unbind", test_flush},
        {"unbinding does not wait for ever", test_unbind_times_out},
        {"a flush that finds no room", test_flush_without_room},
        {"a peer that may still come", test_peer_that_may_come},
        CU_TEST_INFO_NULL,
    };

    return suite_run("wait", tests);
}
